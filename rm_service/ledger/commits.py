"""What this process has committed, kept for a while: who follows the outbox here need not read it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from sqlalchemy import Connection

from rm_service.domain.events import Event

KEPT = 4096
"""Events that are kept at least, if so many were committed here in a row; twice as many at most."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of this process."""

    events: Sequence[Event]
    """All that it wrote, in order; empty where only the database knows them."""
    session: int | None
    """The database session that committed: word of a commit (NOTIFY) names its sender so."""


@dataclass(slots=True)
class RecentCommits:
    """The last events that were committed here, without a gap. May be used from any thread."""

    _events: list[Event] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    @property
    def last(self) -> int:
        """The number of the last one, 0 without any."""
        events = self._events
        return events[-1].seq if events else 0

    def add(self, events: Sequence[Event]) -> None:
        """Keep the events of one commit. What was kept before goes, if others have committed in between."""
        with self._lock:
            if self._events and self._events[-1].seq != events[0].seq - 1:
                self._events = []
            elif len(self._events) > 2 * KEPT:
                self._events = self._events[-KEPT:]
            self._events.extend(events)

    def after(self, seq: int, limit: int) -> list[Event]:
        """The next events after number `seq`; none if the very next one is not kept."""
        with self._lock:
            start = seq + 1 - self._events[0].seq if self._events else -1
            return self._events[start : start + limit] if start >= 0 else []


def session_of(connection: Connection) -> int | None:
    """The number of a connection's session; None on SQLite, which has no sessions."""
    if connection.dialect.name == "sqlite":
        return None
    driver = connection.connection.driver_connection
    number: int | None = None if driver is None else driver.info.backend_pid
    return number
