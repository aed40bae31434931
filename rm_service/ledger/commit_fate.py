"""What became of a turn whose connection broke: its first event tells, if it is there.

PostgreSQL's own answer, `pg_xact_status`, cannot be used: after a crash it gives the numbers of transactions
that were lost to others, and then calls the lost ones committed.
"""

from enum import Enum, auto

from sqlalchemy import Engine, select, text
from sqlalchemy.exc import SQLAlchemyError
from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from rm_service.domain.events import Event
from rm_service.ledger import tables
from rm_service.ledger.statements import POSTGRES

ASK_SECONDS = 5.0
"""How long to go on asking while the database is away."""


class Fate(Enum):
    COMMITTED = auto()
    ABORTED = auto()
    UNKNOWN = auto()


def fate_of(engine: Engine, first: Event) -> Fate:
    """Ask what became of the turn whose first event this is; UNKNOWN if nobody can say in time."""
    retrying = Retrying(
        stop=stop_after_delay(ASK_SECONDS),
        wait=wait_fixed(0.2),
        retry=retry_if_exception_type(SQLAlchemyError),
    )
    try:
        return Fate.COMMITTED if retrying(_has_event, engine, first) else Fate.ABORTED
    except RetryError:
        return Fate.UNKNOWN


def _has_event(engine: Engine, first: Event) -> bool:
    """Look for the event. Another turn's with the same number is another event."""
    event = tables.event
    same = (
        (event.c.seq == first.seq)
        & (event.c.time == first.time)
        & (event.c.kind == first.kind.value)
        & (event.c.subject == first.subject)
    )
    with engine.connect() as connection:
        connection.execute(text(POSTGRES.take))  # waits until that turn has ended, one way or the other
        return connection.execute(select(event.c.seq).where(same)).first() is not None
