"""The rows of resource classes and of the signatures of devices."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select

from rm_service.domain.class_book import ResourceClass
from rm_service.domain.device_attributes import Attributes, read_attributes
from rm_service.domain.resource_classes import read_spec, write_spec
from rm_service.ledger import tables

CHUNK = 1_000
"""So many names in one question."""


@dataclass(slots=True)
class Known:
    """What a process has met of devices and classes. Neither ever changes, so a copy cannot be wrong."""

    signatures: dict[str, Attributes] = field(default_factory=dict)
    classes: dict[str, ResourceClass] = field(default_factory=dict)
    """By uid."""


def read_classes(connection: Connection, known: Known) -> dict[str, ResourceClass]:
    """All classes by name, in the order of their names; only those not met before are read whole."""
    table = tables.resource_class
    rows = connection.execute(select(table.c.uid, table.c.name).order_by(table.c.name)).all()
    missing = [str(row.uid) for row in rows if str(row.uid) not in known.classes]
    for first in range(0, len(missing), CHUNK):
        chunk = table.c.uid.in_(missing[first : first + CHUNK])
        for row in connection.execute(select(table).where(chunk)).mappings():
            known.classes[str(row["uid"])] = class_of(dict(row))
    return {row.name: known.classes[str(row.uid)] for row in rows}


def read_class(connection: Connection, name: str) -> ResourceClass | None:
    table = tables.resource_class
    row = connection.execute(select(table).where(table.c.name == name)).mappings().one_or_none()
    return None if row is None else class_of(dict(row))


def count_classes(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(tables.resource_class)).scalar_one()


def class_document(known: ResourceClass) -> dict[str, object]:
    """A class as its row and its events have it; `class_of` reads it back."""
    return {
        "name": known.name,
        "uid": known.uid,
        "spec": write_spec(known.spec),
        "labels": dict(known.labels),
        "annotations": dict(known.annotations),
        "created_at": known.created_at,
        "version": known.version,
    }


def class_of(document: Mapping[str, Any]) -> ResourceClass:
    return ResourceClass(**{**document, "uid": str(document["uid"]), "spec": read_spec(document["spec"])})


def insert_class(connection: Connection, created: ResourceClass) -> None:
    connection.execute(insert(tables.resource_class).values(**class_document(created)))


def delete_class(connection: Connection, name: str) -> None:
    table = tables.resource_class
    connection.execute(delete(table).where(table.c.name == name))


def learn_signatures(
    connection: Connection, known: dict[str, Attributes], names: Iterable[str] | None = None
) -> None:
    """Add to those that are known these signatures, or all there are."""
    table = tables.device_signature
    if names is None:
        if connection.execute(select(func.count()).select_from(table)).scalar_one() == len(known):
            return
        names = connection.execute(select(table.c.name)).scalars().all()
    missing = [name for name in names if name not in known]
    for first in range(0, len(missing), CHUNK):
        chunk = table.c.name.in_(missing[first : first + CHUNK])
        for row in connection.execute(select(table.c.name, table.c.attributes).where(chunk)):
            known[row.name] = read_attributes(row.attributes, "attributes")
