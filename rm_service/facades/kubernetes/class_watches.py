"""All watches of resource classes. They follow the outbox, and share one look at how the classes stand.

However many watches there are and however many events: while somebody watches, the standings are read when
something happened that may change them, a few times a second at most; else not at all. Each reading is
compared with the one before, and what differs is told.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Condition, Thread

import structlog
from sqlalchemy.exc import SQLAlchemyError

from rm_service.facades.kubernetes.class_history import ClassHistory, History, concerns_classes
from rm_service.facades.kubernetes.watcher import (
    ADDED,
    DELETED,
    MODIFIED,
    Change,
    Lines,
    Wanted,
    Watcher,
)
from rm_service.hosting.streams import Stream
from rm_service.ledger.errors import LedgerUnavailableError
from rm_service.ledger.queries.events import LabelledEvent
from rm_service.ledger.tailer import Subscription, Tailer
from rm_service.services.resource_classes import ClassStanding, ClassStatus, Standings

LEAST_SECONDS = 0.25
"""Least time between two readings of the standings."""

RETRY_SECONDS = 1.0
"""How long it waits when the database cannot be read."""

LONGEST_SECONDS = 3600.0
"""How long it waits at a time for the end of a watch that has a very late one."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A class as it stood at the last reading. It has not changed behind event `changed`."""

    standing: ClassStanding
    changed: int


@dataclass(frozen=True, slots=True)
class _Reading:
    """The standings, read between two looks at the outbox.

    They hold everything up to event `version`, and nothing behind event `upper`.
    """

    version: int
    upper: int
    seen: Mapping[str, _Seen]
    changes: Sequence[Change]
    """What differs from the reading before."""


class ClassWatches:
    """Runs on one thread of its own, from `start` to `stop`; the rest may be called from any thread."""

    def __init__(
        self,
        standings: Callable[[], Standings],
        history: ClassHistory,
        tailer: Tailer,
        *,
        least_seconds: float = LEAST_SECONDS,
    ) -> None:
        self._standings = standings
        self._history = history
        self._tailer = tailer
        self._least_seconds = least_seconds
        self._changed = Condition()
        self._stopping = False
        self._due = False  # something happened since the last reading began
        self._reading = False
        self._reached = 0  # everything up to this event was told to those who have begun
        self._watchers: set[Watcher] = set()
        self._subscription: Subscription | None = None
        self._seen: Mapping[str, _Seen] = {}  # only the thread has it
        self._thread = Thread(target=self._run, name="class-watches", daemon=True)

    def __len__(self) -> int:
        return len(self._watchers)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Tell nobody anything any more. Returns when a reading that is under way is over."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()

    def open(self, wanted: Wanted, head: int) -> Stream:
        """A new watch. `head` is the number of an event that is there: what follows is heard of."""
        deadline = None if wanted.seconds is None else time.monotonic() + wanted.seconds
        watcher = Watcher(wanted, deadline=deadline, reached=lambda: self._reached, on_close=self._remove)
        with self._changed:
            if self._subscription is None or self._subscription.closed:
                self._subscription = self._tailer.subscribe(self._told, head)
            self._watchers.add(watcher)
            self._due = True
            self._changed.notify()
        return watcher.stream

    def _remove(self, watcher: Watcher) -> None:
        """A watch has ended; after the last one nothing is followed any more."""
        with self._changed:
            self._watchers.discard(watcher)
            if self._subscription is not None and not self._watchers:
                self._subscription.close()
                self._subscription = None
                self._due = False

    def _told(self, events: Sequence[LabelledEvent]) -> None:
        """On the tailer's thread."""
        concerned = any(concerns_classes(each) for each in events)
        with self._changed:
            if concerned and not self._due:
                self._due = True
                self._changed.notify()
            if not (self._due or self._reading):
                self._reached = max(self._reached, events[-1].event.seq)

    def _run(self) -> None:
        next_reading = 0.0
        while (watchers := self._await_due(next_reading)) is not None:
            next_reading = time.monotonic() + self._least_seconds
            try:
                self._read_and_tell(watchers)
            except (SQLAlchemyError, LedgerUnavailableError) as error:
                _log.warning("class_watches_wait", error=str(getattr(error, "orig", error)).strip())
                next_reading = time.monotonic() + RETRY_SECONDS
                self._settle(None)
            except Exception:  # noqa: BLE001 - whoever watches relies on this thread
                # A defect: the clients come back and begin anew, instead of waiting in vain.
                _log.exception("class_watches_failed")
                self._settle(None)
                for watcher in watchers:
                    watcher.stream.close()

    def _await_due(self, earliest: float) -> list[Watcher] | None:
        """Those who watch, when there is something to be read, not before `earliest`; None at the end."""
        with self._changed:
            while not self._stopping:
                now = time.monotonic()
                self._end_overdue(now)
                if self._due and now >= earliest:
                    self._due, self._reading = False, True
                    return list(self._watchers)
                moments = [each.deadline for each in self._watchers if each.deadline is not None]
                if self._due:
                    moments.append(earliest)
                self._changed.wait(min(min(moments) - now, LONGEST_SECONDS) if moments else None)
        return None

    def _end_overdue(self, now: float) -> None:
        for watcher in self._watchers:
            if watcher.deadline is not None and watcher.deadline <= now:
                watcher.deadline = None
                watcher.end()

    def _settle(self, reached: int | None) -> None:
        """The reading is over; None: in vain."""
        with self._changed:
            self._reading = False
            if reached is None:
                self._due = bool(self._watchers)
            else:
                self._reached = max(self._reached, reached)

    def _read_and_tell(self, watchers: Sequence[Watcher]) -> None:
        begun = [each for each in watchers if each.begun]
        new = [each for each in watchers if not each.begun]
        reading = self._read(self._seen if begun else {})
        after = [each.wanted.after for each in new if each.wanted.after is not None]
        history = self._history.read(min(after), reading.upper) if after else History()
        lines = Lines()
        for watcher in begun:
            self._tell(watcher, reading.changes, reading, lines)
        for watcher in new:
            self._begin(watcher, reading, history, lines)
        self._seen = reading.seen
        self._settle(reading.version)

    def _read(self, before: Mapping[str, _Seen]) -> _Reading:
        version = self._history.head()
        items = self._standings().items
        upper = self._history.head()
        seen, changes = {}, []
        for standing in items:
            name = standing.resource_class.name
            known = before.get(name)
            if known is not None and known.standing.resource_class.uid != standing.resource_class.uid:
                changes.append(Change(DELETED, known.standing))
                known = None
            if known is None or known.standing.status != standing.status:
                changes.append(Change(ADDED if known is None else MODIFIED, standing))
                known = _Seen(standing, upper)
            seen[name] = known
        gone = [Change(DELETED, known.standing) for name, known in before.items() if name not in seen]
        return _Reading(version, upper, seen, [*gone, *changes])

    def _begin(self, watcher: Watcher, reading: _Reading, history: History, lines: Lines) -> None:
        """Tell a new one how it stands, or what is different since it looked last."""
        wanted = watcher.wanted
        changes = _everything(reading) if wanted.after is None else _since(wanted.after, reading, history)
        self._tell(watcher, changes, reading, lines)
        if wanted.initial_end:
            watcher.tell(watcher.bookmark(reading.version, end_of_initial=True))
        watcher.begun = True

    def _tell(self, watcher: Watcher, changes: Iterable[Change], reading: _Reading, lines: Lines) -> None:
        shown = watcher.wanted.shown(changes)
        watcher.tell(lines.of(watcher.wanted.form, shown, max(0, reading.version - 1), reading.version))


def _everything(reading: _Reading) -> Iterable[Change]:
    return [Change(ADDED, known.standing) for known in reading.seen.values()]


def _since(after: int, reading: _Reading, history: History) -> Iterable[Change]:
    """What is different since event `after`; a class that may have changed is told."""
    changes = []
    for removed in history.removed:
        known = reading.seen.get(removed.resource_class.name)
        there = known is not None and known.standing.resource_class.uid == removed.resource_class.uid
        if removed.seq > after >= removed.resource_class.version and not there:
            changes.append(Change(DELETED, ClassStanding(removed.resource_class, ClassStatus())))
    for known in reading.seen.values():
        if known.standing.resource_class.version > after:
            changes.append(Change(ADDED, known.standing))
        elif known.changed > after < history.quiet_since:
            changes.append(Change(MODIFIED, known.standing))
    return changes
