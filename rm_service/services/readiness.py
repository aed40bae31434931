"""Readiness: whether this process can do its work just now."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from rm_service.ledger.schema import WrongRevisionError, check_revision

OK = "ok"
SWEEPS_MISSED = 3
"""After so many intervals without a sweep that got through, the process is not ready."""
GRACE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Readiness:
    """Looks at the database, its schema and the sweeper."""

    readers: Engine
    last_sweep: Callable[[], float | None]
    """`time.monotonic()` of the last sweep that got through."""
    sweep_seconds: float

    def checks(self) -> dict[str, str]:
        """What was looked at; `ok`, or what is wrong."""
        return {**self._database(), "sweeper": self._sweeper()}

    def _database(self) -> dict[str, str]:
        try:
            check_revision(self.readers)
        except WrongRevisionError as error:
            return {"database": OK, "migrations": str(error)}
        except SQLAlchemyError:
            return {"database": "cannot be reached", "migrations": "not known"}
        return {"database": OK, "migrations": OK}

    def _sweeper(self) -> str:
        last = self.last_sweep()
        if last is None:
            return "has not swept yet"
        age = time.monotonic() - last
        if age > SWEEPS_MISSED * self.sweep_seconds + GRACE_SECONDS:
            return f"last got through {age:.0f} s ago"
        return OK
