"""The row of a client: its present registration, and what it said about itself."""

from sqlalchemy import Connection, insert, select, update

from rm_service.domain import operations as op
from rm_service.domain.application import SECOND
from rm_service.domain.clients import ClientState
from rm_service.ledger import tables
from rm_service.ledger.turn import Head


def note_registration(connection: Connection, operation: op.RegisterClient, head: Head) -> int:
    """Write the row anew; the number of the registration, from 1.

    From the second one on the client has to report again what it has.
    """
    table = tables.si_client
    known = connection.execute(
        select(table.c.registration).where(table.c.rm_id == operation.id)
    ).scalar_one_or_none()
    values = {
        "registration": 1 if known is None else known + 1,
        "state": ClientState.RUNNING,
        "seen_at": head.now,
        "registered_seq": head.seq + 1,
        "registered_at": head.now,
        "version": operation.version,
        "policy_group": operation.policy_group,
        "build_info": dict(operation.build_info),
        "config": operation.config,
        "extra_config": dict(operation.extra_config),
        "resync_until": None if known is None else head.now + operation.resync_seconds * SECOND,
    }
    if known is None:
        connection.execute(insert(table).values(rm_id=operation.id, **values))
        return 1
    connection.execute(update(table).where(table.c.rm_id == operation.id).values(**values))
    return int(known) + 1
