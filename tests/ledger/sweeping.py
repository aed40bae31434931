"""What the sweeper finds and leaves behind, in short forms."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import func, select, update

from rm_service.domain import operations as op
from rm_service.domain.application import SECOND
from rm_service.domain.outcomes import Done
from rm_service.ledger import tables
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.sweeper import SweepSettings
from tests.ledger.asking import GIB

PATIENCE = 20.0  # seconds that a test waits for what must happen
SETTINGS = SweepSettings(sweep_seconds=5, checkpoint_seconds=3600)


@contextmanager
def opened(url: str) -> Iterator[Ledger]:
    ledger = Ledger(LedgerSettings(url))
    ledger.open()
    try:
        yield ledger
    finally:
        ledger.close()


def lock(ledger: Ledger, count: int = 1, *, wait_seconds: int = 0, **tags: str) -> list[str]:
    """Ids of applications that were granted (or wait)."""
    applies = [
        op.Apply(
            str(uuid.uuid4()),
            {"user": "alice", **tags},
            {"memory": GIB},
            lock_seconds=60,
            wait_seconds=wait_seconds,
        )
        for _ in range(count)
    ]
    outcomes = ledger.submit(applies)
    assert all(isinstance(outcome, Done) for outcome in outcomes), outcomes
    return [apply.id for apply in applies]


def node(ledger: Ledger, name: str, *, memory: int = 10_000 * GIB) -> None:
    ledger.submit([op.RegisterNode(name, "LoadInstance", {"memory": memory})])


def pass_time(ledger: Ledger, seconds: int, *, unswept: bool = False) -> None:
    """As if so much time had passed: everything noted is so much older. `unswept`: also the last sweep."""
    past = seconds * SECOND
    with ledger.readers.begin() as connection:
        for table in (tables.application, tables.node, tables.engine):
            older = update(table).where(table.c.deadline.is_not(None))
            connection.execute(older.values(deadline=table.c.deadline - past))
        connection.execute(update(tables.ledger_head).values(time=tables.ledger_head.c.time - past))
        if unswept:
            sweep = tables.sweep
            connection.execute(update(sweep).values(succeeded_at=sweep.c.succeeded_at - past))


def states(ledger: Ledger) -> dict[str, tuple[str, str | None]]:
    columns = (tables.application.c.id, tables.application.c.state, tables.application.c.reason)
    with ledger.readers.connect() as connection:
        return {id_: (state, reason) for id_, state, reason in connection.execute(select(*columns))}


def events(ledger: Ledger, kind: str) -> list[str]:
    """Subjects of the events of a kind."""
    table = tables.event
    with ledger.readers.connect() as connection:
        return list(connection.execute(select(table.c.subject).where(table.c.kind == kind)).scalars())


def held(ledger: Ledger) -> int:
    """How many applications the balances count."""
    with ledger.readers.connect() as connection:
        count: int = connection.execute(select(func.sum(tables.balance.c.applications))).scalar_one()
        return count
