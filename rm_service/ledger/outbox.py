"""One connection that reads the outbox page by page and hears, on PostgreSQL, when others have committed."""

from collections.abc import Sequence
from typing import Any

from psycopg import Notify
from sqlalchemy import Connection, select

from rm_service.domain.application import Instant
from rm_service.domain.events import Event
from rm_service.ledger import tables
from rm_service.ledger.queries.events import LabelledEvent, last_seq
from rm_service.ledger.queries.rows import EVENT, event_of
from rm_service.ledger.rulebook import Labels

PAGE = 256
"""Events that are read at a time."""

CHANNEL = "rm_ledger"


class Outbox:
    """Takes the connection over: it never goes back to its pool."""

    def __init__(self, connection: Connection, labels: Labels) -> None:
        driver: Any = connection.connection.driver_connection
        connection.detach()
        self._connection = connection
        self._driver = driver
        self._labels = labels
        self._senders: set[int] = set()
        self.listens = connection.dialect.name == "postgresql"
        if self.listens:
            driver.autocommit = True
            # A plan made while the table was small must not read it whole when it has grown.
            driver.execute("SET enable_seqscan = off")
            driver.add_notify_handler(self._hear)
            driver.execute(f"LISTEN {CHANNEL}")

    def fileno(self) -> int:
        """Of the socket; readable when there may be word of a commit."""
        number: int = self._driver.fileno()
        return number

    def heard(self, own: int | None) -> bool:
        """Whether there was word of a commit since the last time, but for those of the session `own`.

        Raises psycopg.OperationalError.
        """
        if not self.listens:
            return False
        self._driver.pgconn.consume_input()
        while (word := self._driver.pgconn.notifies()) is not None:
            self._senders.add(word.be_pid)
        others = self._senders - {own}
        self._senders.clear()
        return bool(others)

    def head(self) -> int:
        """Number of the last event."""
        with self._connection.begin():
            return last_seq(self._connection)

    def page(self, after: int, since: Instant, head: int) -> list[LabelledEvent]:
        """The next events after number `after` up to `head`; none of them may be older than `since`.

        Index: primary key, in the partitions from `since` on.
        """
        event = tables.event.c
        query = select(*EVENT).where(event.seq > after, event.seq <= head, event.time >= since)
        with self._connection.begin():
            rows = self._connection.execute(query.order_by(event.seq).limit(PAGE)).mappings()
            return self._labelled([event_of(row) for row in rows])

    def labelled(self, events: Sequence[Event]) -> list[LabelledEvent]:
        """These events with their labels; the database is asked for those that were never met here."""
        if all(self._labels.tags_of(label_id) is not None for each in events for label_id in each.label_ids):
            return self._labelled(events)
        with self._connection.begin():
            return self._labelled(events)

    def _labelled(self, events: Sequence[Event]) -> list[LabelledEvent]:
        ids = {label_id for each in events for label_id in each.label_ids}
        known = self._labels.of_ids(self._connection, ids)
        return [
            LabelledEvent(
                each, tuple([known[label_id][1] for label_id in each.label_ids if label_id in known])
            )
            for each in events
        ]

    def close(self) -> None:
        self._connection.close()

    def _hear(self, word: Notify) -> None:
        self._senders.add(word.pid)
