"""The rows of resource classes and of the signatures of devices."""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from rm_service.domain.class_book import ResourceClass
from rm_service.domain.device_attributes import Attributes, read_attributes
from rm_service.domain.resource_classes import read_spec, write_spec
from rm_service.ledger import tables


def read_classes(connection: Connection) -> dict[str, ResourceClass]:
    """All classes by name, in the order of their names."""
    table = tables.resource_class
    rows = connection.execute(select(table).order_by(table.c.name)).mappings()
    return {row["name"]: class_of(dict(row)) for row in rows}


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
    return ResourceClass(**{**document, "spec": read_spec(document["spec"])})


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
    wanted = select(table.c.name, table.c.attributes).where(table.c.name.not_in(list(known)))
    if names is not None:
        missing = [name for name in names if name not in known]
        if not missing:
            return
        wanted = wanted.where(table.c.name.in_(missing))
    for row in connection.execute(wanted):
        known[row.name] = read_attributes(row.attributes, "attributes")
