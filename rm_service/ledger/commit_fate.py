"""What became of a transaction whose connection broke: PostgreSQL can be asked by its number."""

from enum import Enum, auto

from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError
from tenacity import (
    RetryError,
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    stop_after_delay,
    wait_fixed,
)

ASK_SECONDS = 5.0
"""How long to go on asking while the database is away or the transaction is still open."""


class Fate(Enum):
    COMMITTED = auto()
    ABORTED = auto()
    UNKNOWN = auto()


def fate_of(engine: Engine, number: str) -> Fate:
    """Ask what became of transaction `number`; UNKNOWN if nobody can say in time."""
    retrying = Retrying(
        stop=stop_after_delay(ASK_SECONDS),
        wait=wait_fixed(0.2),
        retry=retry_if_exception_type(SQLAlchemyError)
        | retry_if_result(lambda status: status == "in progress"),
    )
    try:
        status = retrying(_status, engine, number)
    except RetryError:
        return Fate.UNKNOWN
    return {"committed": Fate.COMMITTED, "aborted": Fate.ABORTED}.get(status or "", Fate.UNKNOWN)


def _status(engine: Engine, number: str) -> str | None:
    with engine.connect() as connection:
        status: str | None = connection.execute(
            text("SELECT pg_xact_status(CAST(:number AS xid8))"), {"number": number}
        ).scalar_one()
        return status
