"""Whether a client is there: its row, and in the head's row the list of those that are not."""

from collections.abc import Iterable

from sqlalchemy import Connection, Engine, select, update

from rm_service.domain import operations as op
from rm_service.domain.accounts import GATE_KEY
from rm_service.domain.application import Instant
from rm_service.domain.clients import ClientState
from rm_service.domain.tags import label_key
from rm_service.ledger import tables
from rm_service.ledger.documents import to_json
from rm_service.ledger.due import host_or_database_time

_CLIENT = tables.si_client


def set_client_state(connection: Connection, operation: op.SetClientState, now: Instant) -> bool:
    """Write the state down within a turn; whether it is another one than before."""
    changed = update(_CLIENT).where(_CLIENT.c.rm_id == operation.id, _CLIENT.c.state != operation.state)
    if operation.state is ClientState.RUNNING:  # one that was stopped has to register
        changed = changed.where(_CLIENT.c.state == ClientState.PAUSED)
        changed = changed.values(state=operation.state, seen_at=now)
    elif operation.unseen_since is None:
        changed = changed.values(state=operation.state)
    else:
        changed = changed.where(_CLIENT.c.seen_at < operation.unseen_since).values(state=operation.state)
    if operation.give_up:
        changed = changed.values(registration=_CLIENT.c.registration + 1, resync_until=now)
    if connection.execute(changed).rowcount == 0:
        return False
    note_who_is_away(connection)
    return True


def note_who_is_away(connection: Connection) -> None:
    """Bring the head's list up to date: each turn goes by it."""
    away = select(_CLIENT.c.rm_id).where(_CLIENT.c.state != ClientState.RUNNING).order_by(_CLIENT.c.rm_id)
    ids = list(connection.execute(away).scalars())
    connection.execute(update(tables.ledger_head).values(away=to_json(ids)))


def wake_gate(connection: Connection, client: str) -> set[int]:
    """Mark the queue of what waits for a client to be there."""
    label, balance = tables.label, tables.balance
    gate = select(label.c.id).where(label.c.key == label_key({GATE_KEY: client}))
    marked = update(balance).where(balance.c.label_id.in_(gate), balance.c.first_priority.is_not(None))
    return set(connection.execute(marked.values(wake=True).returning(balance.c.label_id)).scalars())


def note_signs_of_life(engine: Engine, clients: Iterable[str]) -> list[str]:
    """Note that these clients are there; those of them whom the ledger takes for away."""
    ids = sorted(clients)
    if not ids:
        return []
    with engine.begin() as connection:
        seen = (
            update(_CLIENT).where(_CLIENT.c.rm_id.in_(ids)).values(seen_at=host_or_database_time(connection))
        )
        states = connection.execute(seen.returning(_CLIENT.c.rm_id, _CLIENT.c.state)).all()
    return [row.rm_id for row in states if row.state == ClientState.PAUSED]
