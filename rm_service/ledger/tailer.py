"""The tailer: follows the outbox and hands each event, in order and once, to whoever subscribed.

The numbers of events have no gaps and become visible in their order, so whoever has read up to one of them
needs to remember nothing else. All subscribers with the same cursor are given the same page.
"""

import select
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Event as Flag
from threading import Lock, Thread

import psycopg
import structlog
from sqlalchemy.exc import SQLAlchemyError

from rm_service.domain.application import Instant
from rm_service.ledger.commits import Commit, RecentCommits
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.outbox import PAGE, Outbox
from rm_service.ledger.queries.events import LabelledEvent, last_seq

POLL_SECONDS = 1.0
"""How long nothing is looked for without a word that there is something."""

LINGER_SECONDS = 0.01
"""Least time between two readings of the database: what others commit one by one is then read together."""

RETRY_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Pauses before the database is tried again; the last one from then on."""

_log = structlog.get_logger(__name__)

Callback = Callable[[Sequence[LabelledEvent]], object]


@dataclass(eq=False, slots=True)
class Subscription:
    """One reader of the outbox; `cursor` is the number of the last event that it was given.

    The callback runs on the tailer's thread, so it must be quick. If it raises, the subscription ends.
    Everything here may be called from any thread.
    """

    callback: Callback
    cursor: int
    wake: Callable[[], None]
    since: Instant = 0
    """No event after the cursor is older: a reader may leave out the partitions before."""
    paused: bool = False
    closed: bool = False

    @property
    def is_open(self) -> bool:
        return not (self.paused or self.closed)

    def pause(self) -> None:
        """Give nothing more until `resume`, which goes on after the cursor, however old it is by then."""
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        self.wake()

    def close(self) -> None:
        """End it. Only a callback that is running already may still go on."""
        self.closed = True
        self.wake()

    def give(self, events: Sequence[LabelledEvent], cursor: int) -> None:
        """For the tailer: hand over the page that ends at `cursor`."""
        self.cursor = cursor
        if not events:
            return
        self.since = events[-1].event.time
        try:
            self.callback(events)
        except Exception:  # noqa: BLE001 - one subscriber must not stop the others
            _log.exception("subscriber_failed", cursor=cursor)
            self.closed = True


class Tailer:
    """Follows the outbox on one thread, from `start` to `stop`.

    What this process commits it is told, and hands on without reading anything. What others have committed
    it reads: when PostgreSQL says that there is something, when an own commit shows that numbers are missing
    before it, and each second. Without subscribers it does not look at all and keeps no connection.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._subscriptions: list[Subscription] = []
        self._lock = Lock()
        self._outbox: Outbox | None = None
        self._recent = RecentCommits()
        self._session: int | None = None  # of this process' writer: its word of a commit is no news
        self._head = 0  # number of the last event that is known to be there
        self._word = False  # whether there may be more than that
        self._next_read = 0.0
        self._failures = 0
        self._stopping = Flag()
        self._rung = False
        self._ear, self._bell = socket.socketpair()
        self._thread = Thread(target=self._run, name="outbox-tailer", daemon=True)
        ledger.on_commit(self._committed)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Feed nobody any more. Returns when a callback that is running has returned."""
        self._stopping.set()
        self._wake()
        if self._thread.is_alive():
            self._thread.join()
        self._ear.close()
        self._bell.close()

    def subscribe(self, callback: Callback, after: int, *, paused: bool = False) -> Subscription:
        """Have `callback` called with the events after number `after`: pages in order, each event once.

        `paused`: nothing before the first `resume`.
        """
        subscription = Subscription(callback, after, self._wake, paused=paused)
        with self._lock:
            self._subscriptions.append(subscription)
        self._word = True
        self._wake()
        return subscription

    def head(self) -> int:
        """Number of the last event. Raises SQLAlchemyError."""
        with self._ledger.readers.connect() as connection:
            return last_seq(connection)

    def _committed(self, commit: Commit) -> None:
        """On the writer's thread."""
        self._session = commit.session
        if not self._subscriptions:
            return
        if commit.events:
            self._recent.add(commit.events)
        else:
            self._word = True
        self._wake()

    def _wake(self) -> None:
        if not self._rung:
            self._rung = True
            with suppress(OSError):  # stopped meanwhile
                self._bell.send(b"\0")

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._sleep(self._look())
                self._failures = 0
            except Exception as error:  # noqa: BLE001 - whoever subscribed relies on this thread
                self._put_off(error)
        self._disconnect()

    def _look(self) -> float | None:
        """Give everybody who is behind one page. Seconds until the next look; None: when there is word."""
        groups = self._groups()
        if not self._subscriptions:
            self._disconnect()
            return None
        outbox = self._connect()
        self._head = max(self._head, self._recent.last)
        behind = {
            cursor: group for cursor, group in groups.items() if not self._give_recent(outbox, cursor, group)
        }
        now = time.monotonic()
        if self._word or any(cursor < self._head for cursor in behind):
            if now < self._next_read:
                return self._next_read - now
            if not self._read(outbox, behind):
                self._next_read = now + LINGER_SECONDS
        is_behind = any(each.is_open and each.cursor < self._head for each in self._subscriptions)
        return 0.0 if is_behind else POLL_SECONDS

    def _groups(self) -> Mapping[int, Sequence[Subscription]]:
        """The open subscriptions by their cursors; the closed ones are forgotten."""
        groups: dict[int, list[Subscription]] = defaultdict(list)
        with self._lock:
            self._subscriptions = [each for each in self._subscriptions if not each.closed]
            for subscription in self._subscriptions:
                if subscription.is_open:
                    groups[subscription.cursor].append(subscription)
        return groups

    def _give_recent(self, outbox: Outbox, cursor: int, group: Sequence[Subscription]) -> bool:
        """One page out of memory for those of the same cursor, if it is there."""
        events = self._recent.after(cursor, PAGE)
        if events:
            _give(group, outbox.labelled(events), events[-1].seq)
        return bool(events)

    def _read(self, outbox: Outbox, behind: Mapping[int, Sequence[Subscription]]) -> bool:
        """One page out of the database for each cursor. Whether there is more to read at once."""
        if self._word:
            self._word = False
            self._head = max(self._head, outbox.head())
        head, more = self._head, False
        for cursor, group in behind.items():
            if cursor < head:
                # Up to the head and no further, so that they meet.
                events = outbox.page(cursor, max(each.since for each in group), head)
                reached = events[-1].event.seq if len(events) == PAGE else head
                _give(group, events, reached)
                more |= reached < head and any(each.is_open for each in group)
        return more

    def _sleep(self, seconds: float | None) -> None:
        """Until there may be something new, at most so long; None: as long as it takes."""
        outbox, poll = self._outbox, select.poll()
        poll.register(self._ear, select.POLLIN)
        if outbox is not None and outbox.listens:
            poll.register(outbox.fileno(), select.POLLIN)
        if (outbox is not None and outbox.heard(self._session)) or (
            not poll.poll(None if seconds is None else seconds * 1000) and seconds
        ):
            self._word = True
        if self._rung:
            self._ear.recv(64)
            self._rung = False
        if outbox is not None and outbox.heard(self._session):
            self._word = True

    def _put_off(self, error: Exception) -> None:
        """The database is away: told once, tried again after a while."""
        if not isinstance(error, SQLAlchemyError | psycopg.Error):
            _log.error("tailer_failed", exc_info=error)
        elif self._failures == 0:
            _log.warning("outbox_unreadable", error=str(error).strip())
        self._disconnect()
        self._word = True
        self._stopping.wait(RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)])
        self._failures += 1

    def _connect(self) -> Outbox:
        if self._outbox is None:
            self._outbox = Outbox(self._ledger.readers.connect(), self._ledger.labels)
            self._word = True  # nothing was heard before it listened
        return self._outbox

    def _disconnect(self) -> None:
        outbox, self._outbox = self._outbox, None
        if outbox is not None:
            with suppress(SQLAlchemyError, psycopg.Error):
                outbox.close()


def _give(group: Sequence[Subscription], events: Sequence[LabelledEvent], reached: int) -> None:
    for subscription in group:
        if subscription.is_open:
            subscription.give(events, reached)
