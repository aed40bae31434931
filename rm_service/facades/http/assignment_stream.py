"""A node's assignments as they change: `GET /api/v1/nodes/{instance}/assignments` with `text/event-stream`.

Each message is the whole list, the first one as it is now; then one follows whenever another list has come to
be. What comes about in quick succession, or while the client does not read, is one message. So nothing has to
be resumed: who comes back gets the list, whatever `Last-Event-ID` it sends.

The events of the outbox only say which nodes to look at again. The looking is done by one thread, for all of
these nodes at once and at most every `PAUSE_SECONDS`, and not at all while nobody follows a node.
"""

import re
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import islice
from threading import Condition, Thread

import structlog
from sqlalchemy.exc import SQLAlchemyError

from rm_service.domain.outcomes import Code
from rm_service.facades.http.device_rendering import assignments_document
from rm_service.facades.http.endpoints import API, Call
from rm_service.facades.http.event_stream import (
    FIRST,
    HEADERS,
    KEEP_ALIVE,
    MEDIA_TYPE,
    Authorize,
    answer_to,
    database_away,
    read_given,
)
from rm_service.facades.http.json_text import write_json
from rm_service.facades.http.paths import instance
from rm_service.facades.http.problems import ProblemError
from rm_service.facades.http.reading import load
from rm_service.facades.http.request_schemas import PartitionQuery
from rm_service.hosting.answer import Answer
from rm_service.hosting.streams import Stream, StreamRequest, StreamRoute
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.assignments import Assignment, Assignments, read_assignments
from rm_service.ledger.queries.events import LabelledEvent
from rm_service.ledger.queries.nodes import read_node
from rm_service.ledger.tailer import Subscription, Tailer

PAUSE_SECONDS = 0.05
"""Least time between two looks at what has changed."""
RETRY_SECONDS = 1.0
"""Pause before the database is tried again."""
TOGETHER = 500
"""Nodes that are looked at in one statement."""
BUFFER_LIMIT = 64 * 2**20
"""Bytes: more than any list. A client that does not read has one list and keep-alives waiting."""

_PATH = re.compile(rf"{API}/nodes/([^/]+)/assignments")
_log = structlog.get_logger(__name__)


class _Reader:
    """A stream, and up to which event its client was told. Touched only with the streams' lock held."""

    def __init__(self, on_drain: Callable[["_Reader"], None], on_close: Callable[["_Reader"], None]) -> None:
        self.told = -1
        self.behind = False
        """Whether something that was sent has not been handed on."""
        self.stream = Stream(
            HEADERS,
            keep_alive=KEEP_ALIVE,
            buffer_limit=BUFFER_LIMIT,
            on_drain=partial(on_drain, self),
            on_close=partial(on_close, self),
        )
        self.stream.push(FIRST)


class _Node:
    """A node that is followed, and its assignments as they were seen last. Likewise only under the lock."""

    def __init__(self, name: str) -> None:
        self.readers: set[_Reader] = set()
        self._name = name
        self._seq = -1
        """The event up to which it was seen."""
        self._changed = -1
        """The event at which its list was seen to be another one."""
        self._items: Sequence[Assignment] | None = None
        self._message = b""

    def see(self, found: Assignments) -> None:
        """Take in what was read, unless something newer was before, and tell all who do not know it."""
        if found.seq > self._seq:
            self._seq = found.seq
            if found.removed:
                self._end()
            elif found.items != self._items:
                self._changed, self._items = found.seq, found.items
                self._message = _message(found.seq, "assignments", assignments_document(found))
        for reader in self.readers:
            self.tell(reader)

    def tell(self, reader: _Reader) -> None:
        if self._items is not None and reader.told < self._changed and not reader.behind:
            reader.told, reader.behind = self._changed, True
            reader.stream.push(self._message)

    def _end(self) -> None:
        """Nothing more is to be told of it: a client that comes back learns that there is no such node."""
        self._items = None
        message = _message(self._seq, "node.removed", {"seq": self._seq, "instance": self._name})
        for reader in self.readers:
            reader.stream.push(message)
            reader.stream.close()


class AssignmentStreams:
    """All open streams of assignments. `route` is what the HTTP server is given."""

    def __init__(self, ledger: Ledger, tailer: Tailer, *, authorize: Authorize) -> None:
        self.route = StreamRoute(_matches, self._open)
        self._ledger = ledger
        self._tailer = tailer
        self._authorize = authorize
        self._word = Condition()  # its lock guards everything below
        self._nodes: dict[int, _Node] = {}
        self._moved: set[int] = set()
        self._subscription: Subscription | None = None
        self._looking = False

    def _open(self, request: StreamRequest) -> Stream | Answer:
        try:
            self._authorize(request)
            return self._follow(*_read(request))
        except ProblemError as error:
            return answer_to(error)
        except SQLAlchemyError:
            return answer_to(database_away())

    def _follow(self, name: str, partition: str) -> Stream:
        """A stream that has its first message; what happens after that is read finds the stream there."""
        with self._ledger.readers.connect() as connection:
            record = read_node(connection, self._ledger.book(), name, partition)
        if record is None:
            raise ProblemError(Code.UNKNOWN_NODE, f"no node {name} is registered")
        label_id, head = record.node.label_id, self._tailer.head()
        reader = _Reader(partial(self._on_drain, label_id), partial(self._remove, label_id))
        with self._word:
            self._nodes.setdefault(label_id, _Node(name)).readers.add(reader)
            if self._subscription is None or self._subscription.closed:
                self._subscription = self._tailer.subscribe(self._mark, head)
            if not self._looking:
                self._looking = True
                Thread(target=self._run, name="assignments", daemon=True).start()
        try:
            self._look((label_id,))
        except BaseException:
            self._remove(label_id, reader)
            raise
        return reader.stream

    def _mark(self, events: Sequence[LabelledEvent]) -> None:
        """Note which nodes may have other assignments. On the tailer's thread."""
        nodes = self._nodes
        moved = {label_id for each in events for label_id in each.event.label_ids if label_id in nodes}
        if moved:
            with self._word:
                self._moved |= moved
                self._word.notify()

    def _run(self) -> None:
        """Look at the nodes that moved, for as long as any is followed."""
        while True:
            with self._word:
                self._word.wait_for(lambda: self._moved or not self._nodes)
                if not self._nodes:
                    self._looking = False
                    return
                moved = set(islice(self._moved, TOGETHER))
                self._moved -= moved
            try:
                self._look(moved)
            except SQLAlchemyError as error:
                _log.warning("assignments_unreadable", error=str(error).strip())
                with self._word:
                    self._moved |= moved & self._nodes.keys()
                time.sleep(RETRY_SECONDS)
            except Exception:  # noqa: BLE001 - a defect: who follows these nodes comes back, and all others go on
                _log.exception("assignments_failed")
                self._end(moved)
            time.sleep(PAUSE_SECONDS)

    def _look(self, label_ids: Collection[int]) -> None:
        """Raises SQLAlchemyError."""
        with self._ledger.readers.connect() as connection:
            found = read_assignments(connection, label_ids)
        for label_id, assignments in found.items():
            with self._word:
                node = self._nodes.get(label_id)
                if node is not None:
                    node.see(assignments)

    def _on_drain(self, label_id: int, reader: _Reader) -> None:
        with self._word:
            reader.behind = False
            node = self._nodes.get(label_id)
            if node is not None:
                node.tell(reader)

    def _remove(self, label_id: int, reader: _Reader) -> None:
        """Forget a stream that has ended; after the last one nothing is followed any more."""
        with self._word:
            node = self._nodes.get(label_id)
            if node is not None:
                node.readers.discard(reader)
                if not node.readers:
                    del self._nodes[label_id]
                    self._moved.discard(label_id)
            if self._subscription is not None and not self._nodes:
                self._subscription.close()
                self._subscription = None
            self._word.notify()

    def _end(self, label_ids: Collection[int]) -> None:
        with self._word:
            nodes = [self._nodes[label_id] for label_id in label_ids if label_id in self._nodes]
            for reader in [reader for node in nodes for reader in node.readers]:
                reader.stream.close()


def _matches(request: StreamRequest) -> bool:
    return (
        request.method == "GET"
        and MEDIA_TYPE in request.headers.get("accept", "")
        and _PATH.fullmatch(request.path) is not None
    )


def _read(request: StreamRequest) -> tuple[str, str]:
    """The node's name and its partition. Raises ProblemError."""
    path = _PATH.fullmatch(request.path)
    if path is None:
        raise ValueError(request.path)  # only what matches is opened
    query = load(PartitionQuery(), read_given(request))
    return instance(Call(path={"instance": path[1]}, query=query, body={}, caller="")), query["partition"]


def _message(seq: int, kind: str, document: object) -> bytes:
    return f"id: {seq}\nevent: {kind}\ndata: ".encode() + write_json(document) + b"\n\n"
