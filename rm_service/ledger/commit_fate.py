"""What became of a turn whose connection broke: its first event tells, if it is there.

PostgreSQL's own answer, `pg_xact_status`, cannot be used: after a crash it gives the numbers of transactions
that were lost to others, and then calls the lost ones committed.
"""

from enum import Enum, auto

from sqlalchemy import Engine, select, text
from sqlalchemy.exc import SQLAlchemyError
from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from rm_service.ledger import tables
from rm_service.ledger.turn import POSTGRES, Head

ASK_SECONDS = 5.0
"""How long to go on asking while the database is away."""


class Fate(Enum):
    COMMITTED = auto()
    ABORTED = auto()
    UNKNOWN = auto()


def fate_of(engine: Engine, head: Head) -> Fate:
    """Ask what became of the turn that began at `head`; UNKNOWN if nobody can say in time.

    A turn without any event counts as ABORTED: it told nobody of a change and can be repeated.
    """
    retrying = Retrying(
        stop=stop_after_delay(ASK_SECONDS),
        wait=wait_fixed(0.2),
        retry=retry_if_exception_type(SQLAlchemyError),
    )
    try:
        return Fate.COMMITTED if retrying(_has_event, engine, head) else Fate.ABORTED
    except RetryError:
        return Fate.UNKNOWN


def _has_event(engine: Engine, head: Head) -> bool:
    """Look for the turn's first event. Another turn's with the same number has another time."""
    event = tables.event
    first = select(event.c.seq).where(event.c.seq == head.seq + 1, event.c.time == head.now)
    with engine.connect() as connection:
        connection.execute(text(POSTGRES.take))  # waits until that turn has ended, one way or the other
        return connection.execute(first).first() is not None
