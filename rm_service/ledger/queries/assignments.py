"""Which devices of a node are held by whom: what its agent sets up and takes down."""

from dataclasses import dataclass

from sqlalchemy import Connection, select

from rm_service.domain.application import State
from rm_service.domain.device_selection import Held
from rm_service.domain.devices import read_held
from rm_service.domain.tags import Tags
from rm_service.ledger import tables
from rm_service.ledger.queries.events import last_seq


@dataclass(frozen=True, slots=True)
class Assignment:
    """The devices of one node that one application holds."""

    application_id: str
    state: State
    tags: Tags
    devices: tuple[Held, ...]


def read_assignments(connection: Connection, label_id: int) -> tuple[int, list[Assignment]]:
    """All of a node's, by application, as of the event of this number or a little later.

    Index: ix_application_device_label_id.
    """
    seq = last_seq(connection)
    claim, application = tables.application_device.c, tables.application.c
    holders = select(claim.application_id).where(claim.label_id == label_id).distinct()
    rows = connection.execute(
        select(application.id, application.state, application.tags, application.devices)
        .where(application.id.in_(holders))
        .order_by(application.id)
    )
    return seq, [Assignment(str(row.id), State(row.state), row.tags, read_held(row.devices)) for row in rows]
