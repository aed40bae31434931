"""Which devices of a node are held by whom: what its agent sets up and takes down."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, and_, select

from rm_service.domain.application import State
from rm_service.domain.device_selection import Held
from rm_service.domain.devices import read_held
from rm_service.domain.tags import Tags
from rm_service.ledger import tables


@dataclass(frozen=True, slots=True)
class Assignment:
    """The devices of one node that one application holds."""

    application_id: str
    state: State
    tags: Tags
    devices: tuple[Held, ...]


@dataclass(frozen=True, slots=True)
class Assignments:
    """All of a node's, by application, exactly as they were after the event of this number."""

    seq: int
    items: tuple[Assignment, ...] = ()
    removed: bool = False
    """Whether no such node is registered (any more)."""


def read_assignments(connection: Connection, label_ids: Collection[int]) -> Mapping[int, Assignments]:
    """The assignments of each of the nodes with these labels.

    One statement, so that all of it is of one moment. Indexes: primary keys,
    ix_application_device_label_id.
    """
    rows = connection.execute(_query(list(label_ids))).all()
    items: dict[int, list[Assignment]] = {row.label_id: [] for row in rows if row.label_id is not None}
    for row in rows:
        if row.id is not None:
            found = Assignment(str(row.id), State(row.state), row.tags, read_held(row.devices))
            items[row.label_id].append(found)
    seq: int = rows[0].seq
    return {
        label_id: Assignments(seq, tuple(items.get(label_id, ())), removed=label_id not in items)
        for label_id in label_ids
    }


def _query(label_ids: list[int]) -> Select[tuple[Any, ...]]:
    """A row for each assignment; at least one for each registered node, and one where there is none."""
    head, node, application = tables.ledger_head, tables.node, tables.application.c
    claim = tables.application_device.c
    claimed = select(claim.label_id, claim.application_id).where(claim.label_id.in_(label_ids))
    held = claimed.distinct().subquery()
    found = (
        head.outerjoin(node, and_(node.c.label_id.in_(label_ids), ~node.c.removed))
        .outerjoin(held, held.c.label_id == node.c.label_id)
        .outerjoin(tables.application, application.id == held.c.application_id)
    )
    columns = (application.id, application.state, application.tags, application.devices)
    query = select(head.c.seq, node.c.label_id, *columns).select_from(found)
    return query.order_by(node.c.label_id, application.id)
