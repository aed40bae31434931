"""The answers to resource managers: each stream is given its rows of the outbox, in order and each once.

A stream reads the database until it has caught up; from then on it is given what passes by in the one
subscription that all streams share. One whose client does not read falls behind, and reads the database
again when its client does: it neither holds up the others nor loses anything.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum, auto
from threading import Lock

import structlog
from sqlalchemy.exc import SQLAlchemyError

from rm_service.domain.events import Kind
from rm_service.facades.si.deliveries import Deliveries
from rm_service.ledger.answers import AnswerLog, Row, Standing
from rm_service.ledger.queries.events import LabelledEvent
from rm_service.ledger.tailer import Subscription, Tailer
from rm_service.services.si.errors import NotRegisteredError

MOST_BUFFERED = 10_000
"""Rows that wait in memory for the client of one stream."""
PAGE = 1_000
"""Rows that are read at a time."""
READERS = 4
"""Streams that may read the database at the same time."""

_log = structlog.get_logger(__name__)


class RowAheadError(ValueError):
    """A stream is to go on after a row (`after`) that is not there yet; `head` is the last one."""

    def __init__(self, after: int, head: int) -> None:
        self.after = after
        self.head = head
        super().__init__(f"no row has the number {after} yet; the last one is {head}")


class End(Enum):
    """Why a stream gets no more answers, although its client is there."""

    REGISTERED_ANEW = auto()
    """Its resource manager has registered again since: it is to begin anew, with new streams."""
    UNREADABLE = auto()
    """The database cannot be read. The client may come back and go on."""


class AnswerStream:
    """The answers of one stream. `AnswerFeed.open` makes it; its methods may be called from any thread."""

    def __init__(self, feed: "AnswerFeed", rm_id: str, name: str, on_ready: Callable[[], object]) -> None:
        self.rm_id = rm_id
        self.name = name
        self.standing: Standing | None = None
        self.end: End | None = None
        self._feed = feed
        self._on_ready = on_ready
        self._lock = Lock()
        self._buffer: deque[Row] = deque()
        self._read_to = 0  # up to this number everything is in the buffer, or was
        self._live = False
        self._reading = True  # until `begin`
        self._passed_by: list[Row] | None = None  # while the database is read
        self._registered = 0
        self._silent = False

    def begin(self, standing: Standing, after: int) -> None:
        """For the feed: give what comes after row `after`."""
        with self._lock:
            self.standing = standing
            self._read_to = after
            self._reading = False
        self.registered(self._registered)
        self._catch_up_if_needed()

    def take(self, limit: int) -> list[Row]:
        """The next rows; without any, `on_ready` is called when there are some, or an `end`."""
        with self._lock:
            taken = [self._buffer.popleft() for _ in range(min(limit, len(self._buffer)))]
        self._catch_up_if_needed()
        return taken

    def handed_on(self, row: int) -> None:
        """All rows up to this number were handed to the transport: a later stream goes on behind it."""
        self._feed.deliveries.note((self.rm_id, self.name), row)

    def close(self) -> None:
        """The stream has ended; nothing more is called."""
        self.silence()
        self._feed.remove(self)

    def silence(self) -> None:
        """Give nothing more: a newer stream of the same name has taken over."""
        with self._lock:
            self._silent = True
            self._buffer.clear()

    def registered(self, seq: int) -> None:
        """For the feed: the resource manager has registered, by the event of this number."""
        with self._lock:
            self._registered = max(self._registered, seq)
            standing = self.standing
        if standing is not None and standing.registered < self._registered:
            self.finish(End.REGISTERED_ANEW)

    def finish(self, end: End) -> None:
        """Nothing more comes, for this reason."""
        with self._lock:
            self.end = self.end or end
        self.silence()
        self._on_ready()

    def offer(self, rows: Sequence[Row]) -> None:
        """For the feed: these rows passed by. On the tailer's thread."""
        with self._lock:
            if self._passed_by is not None:
                self._passed_by.extend(rows)
                if len(self._passed_by) > MOST_BUFFERED:
                    self._passed_by = None
            if self._live and not self._silent:
                self._append(rows)
                self._live = len(self._buffer) <= MOST_BUFFERED
            ready = bool(self._buffer)
        if ready:
            self._on_ready()

    def catch_up(self) -> None:
        """For the feed: read a page. On one of its threads."""
        with self._lock:
            self._passed_by = []
            after = self._read_to
        # What is committed from here on passes by; what was committed before is read.
        try:
            rows, reached = self._feed.log.page(self.rm_id, after, PAGE)
        except Exception as error:  # noqa: BLE001 - whatever it is, this stream cannot go on
            if not isinstance(error, SQLAlchemyError):
                _log.error("answers_unreadable", rm_id=self.rm_id, exc_info=error)
            self.finish(End.UNREADABLE)
            return
        with self._lock:
            passed_by, self._passed_by = self._passed_by, None
            self._reading = False
            if not self._silent:
                self._append(rows)
                self._read_to = reached
                if len(rows) < PAGE and passed_by is not None:
                    self._append(passed_by)
                    self._live = True
            ready = bool(self._buffer)
        if ready:
            self._on_ready()
        else:
            self._catch_up_if_needed()

    def _append(self, rows: Sequence[Row]) -> None:
        kinds = self._feed.kinds_of[self.name]
        for row in rows:
            if row[0] > self._read_to:
                self._read_to = row[0]
                if row[1]["kind"] in kinds:
                    self._buffer.append(row)

    def _catch_up_if_needed(self) -> None:
        with self._lock:
            if self._live or self._silent or self._reading or len(self._buffer) > PAGE:
                return
            self._reading = True
        self._feed.run(self.catch_up)


class AnswerFeed:
    """All streams of answers of this process, from `start` to `stop`.

    `kinds_of` says which kinds of answers each named stream shows.
    """

    def __init__(
        self,
        log: AnswerLog,
        tailer: Tailer,
        kinds_of: Mapping[str, Collection[str]],
        heard: Callable[[str], object] = lambda _: None,
        registered: Callable[[str, int], object] = lambda _, __: None,
    ) -> None:
        """`heard` is told of a resource manager that opens a stream, `registered` of a registration that was
        found: whose, and by which event.
        """
        self.log = log
        self.kinds_of = kinds_of
        self.deliveries = Deliveries(log.delivered)
        self._tailer = tailer
        self._heard = heard
        self._found_registered = registered
        self._lock = Lock()
        self._streams: dict[str, list[AnswerStream]] = defaultdict(list)
        self._subscription: Subscription | None = None
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="si-answers")

    def start(self) -> None:
        self.deliveries.start()

    def stop(self) -> None:
        """After all streams were closed: what they delivered is written down."""
        self._threads.shutdown(cancel_futures=True)
        self.deliveries.stop()

    def rm_ids(self) -> list[str]:
        """The resource managers that have a stream open here."""
        with self._lock:
            return list(self._streams)

    def __len__(self) -> int:
        return sum(map(len, self._streams.values()))

    def open(
        self, rm_id: str, name: str, on_ready: Callable[[], object], after: int | None = None
    ) -> AnswerStream:
        """The answers after row `after`; None: after the last one that such a stream has delivered.

        An older stream of the same name gets nothing more. `on_ready` is called, on any thread, when there
        is something to take, or the end; it must not block. Close the stream when it has ended.
        Raises NotRegisteredError, RowAheadError, SQLAlchemyError.
        """
        stream = AnswerStream(self, rm_id, name, on_ready)
        head = self._tailer.head()
        with self._lock:
            if self._subscription is None or self._subscription.closed:
                self._subscription = self._tailer.subscribe(self._spread, head)
            self._streams[rm_id].append(stream)
        try:
            standing = self._standing(rm_id, name, after)
        except BaseException:
            self.remove(stream)
            raise
        self._take_over(stream)
        delivered = max(standing.delivered, self.deliveries.noted((rm_id, name)))
        self._heard(rm_id)
        self._found_registered(rm_id, standing.registered)
        stream.begin(standing, max(delivered, standing.registered) if after is None else after)
        return stream

    def run(self, job: Callable[[], None]) -> None:
        """For a stream: have something done that may block. It must not raise."""
        try:
            self._threads.submit(job)
        except RuntimeError:  # stopped: whoever still asks for something is about to be closed
            return

    def remove(self, stream: AnswerStream) -> None:
        """For a stream that has ended; after the last one nothing is followed any more."""
        with self._lock:
            streams = self._streams[stream.rm_id]
            if stream in streams:
                streams.remove(stream)
            if not streams:
                del self._streams[stream.rm_id]
            if self._subscription is not None and not self._streams:
                self._subscription.close()
                self._subscription = None
        self.deliveries.hurry()

    def _standing(self, rm_id: str, name: str, after: int | None) -> Standing:
        standing = self.log.standing(rm_id, name)
        if standing is None:
            raise NotRegisteredError(rm_id)
        if after is not None and after > standing.head:
            raise RowAheadError(after, standing.head)
        return standing

    def _take_over(self, stream: AnswerStream) -> None:
        """The last one that was opened is the one that is given answers."""
        with self._lock:
            streams = tuple(self._streams[stream.rm_id])
        for older in streams[: streams.index(stream)]:
            if older.name == stream.name:
                older.silence()

    def _spread(self, events: Sequence[LabelledEvent]) -> None:
        """Give each stream what is its resource manager's. On the tailer's thread."""
        try:
            rows: dict[str, list[Row]] = defaultdict(list)
            for each in events:
                event = each.event
                if event.client is not None and event.answer is not None:
                    rows[event.client].append((event.seq, event.answer))
                if event.kind is Kind.CLIENT_REGISTERED:
                    self._found_registered(event.subject, event.seq)
                    for stream in self._streams_of(event.subject):
                        stream.registered(event.seq)
            for rm_id, theirs in rows.items():
                for stream in self._streams_of(rm_id):
                    stream.offer(theirs)
        except Exception:
            for rm_id in tuple(self._streams):
                for stream in self._streams_of(rm_id):
                    stream.finish(End.UNREADABLE)
            raise

    def _streams_of(self, rm_id: str) -> Sequence[AnswerStream]:
        with self._lock:
            return tuple(self._streams.get(rm_id, ()))
