"""The desk that resource managers come to: real streams over a real outbox, with no scheduler behind.

The test decides what becomes of a request, and writes the answers into the outbox itself: as this process'
ledger would, or as another replica's.
"""

import queue
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Self, cast

import grpc
from flask import Flask
from google.protobuf.message import Message
from sqlalchemy import Connection, insert, select, text, update

from rm_service.domain import answers
from rm_service.domain.events import Event, Kind
from rm_service.facades.si.answer_feed import AnswerFeed
from rm_service.facades.si.handlers import SchedulerHandlers
from rm_service.facades.si.http_twin import HttpTwin
from rm_service.facades.si.intake import KINDS_OF, METHODS, Intake
from rm_service.facades.si.proto import si_pb2 as si
from rm_service.facades.si.proto import si_v0_pb2 as si_v0
from rm_service.hosting.authentication import Authentication
from rm_service.hosting.grpc_server import GrpcServer
from rm_service.hosting.request_log import RequestLog
from rm_service.hosting.server import HttpServer
from rm_service.ledger import tables
from rm_service.ledger.answers import AnswerLog
from rm_service.ledger.commits import Commit, session_of
from rm_service.ledger.database import reader_engine
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.rulebook import Labels
from rm_service.ledger.tailer import Tailer
from rm_service.services.si.errors import NotRegisteredError, RegistrationRefusedError
from rm_service.services.si.requests import Registration, Update

PATIENCE = 15.0  # seconds that a test waits for what must happen; nothing waits this long when all is well

RESPONSES: Mapping[str, type[Message]] = {
    "UpdateAllocation": si.AllocationResponse,
    "UpdateApplication": si.ApplicationResponse,
    "UpdateNode": si.NodeResponse,
    "Update": si_v0.UpdateResponse,
}


class WrittenOutbox:
    """What a tailer sees of a ledger: the test commits the events itself."""

    def __init__(self, url: str) -> None:
        self.readers = reader_engine(url)
        self._elsewhere = reader_engine(url)
        self.labels = Labels()
        self._callbacks: list[Callable[[Commit], object]] = []
        self._lock = threading.Lock()

    def on_commit(self, callback: Callable[[Commit], object]) -> None:
        self._callbacks.append(callback)

    def commit(self, *rows: tuple[Kind, str, answers.Answer | None], foreign: bool = False) -> int:
        """Events of these kinds, about these resource managers; the number of the last one."""
        head = tables.ledger_head
        engine = self._elsewhere if foreign else self.readers
        with self._lock:
            with engine.begin() as connection:
                connection.execute(update(head).values(one=1))  # take the turn
                seq, then = connection.execute(select(head.c.seq, head.c.time)).one()
                now = max(then, time.time_ns() // 1000)
                events = [
                    Event(seq + place, now, kind, rm_id, client=rm_id if answer else None, answer=answer)
                    for place, (kind, rm_id, answer) in enumerate(rows, 1)
                ]
                values = [{each.name: getattr(event, each.name) for each in _EVENT} for event in events]
                connection.execute(insert(tables.event), values)
                connection.execute(update(head).values(seq=events[-1].seq, time=now))
                for event in events:
                    if event.kind is Kind.CLIENT_REGISTERED:
                        self._write_client(connection, event)
                if connection.dialect.name == "postgresql":
                    connection.execute(text("SELECT pg_notify('rm_ledger', '')"))
                session = session_of(connection)
            for callback in () if foreign else self._callbacks:
                callback(Commit(events, session))
        return events[-1].seq

    def accept_nodes(self, rm_id: str, *nodes: str, foreign: bool = False) -> int:
        """Answer that these nodes were accepted; the number of the last row."""
        rows = [(Kind.NODE_REGISTERED, rm_id, answers.accepted_node(node)) for node in nodes]
        return self.commit(*rows, foreign=foreign)

    def grant(self, rm_id: str, *keys: str) -> int:
        """Answer that these asks were granted."""
        rows = [(Kind.APPLICATION_USED, rm_id, {"kind": "new", "app": "a", "key": key}) for key in keys]
        return self.commit(*rows)

    def register(self, rm_id: str, *, foreign: bool = False) -> int:
        """What a registration leaves behind; the number of its event."""
        return self.commit((Kind.CLIENT_REGISTERED, rm_id, None), foreign=foreign)

    def is_registered(self, rm_id: str) -> bool:
        query = select(tables.si_client.c.rm_id).where(tables.si_client.c.rm_id == rm_id)
        with self.readers.connect() as connection:
            return connection.execute(query).one_or_none() is not None

    def delivered(self, rm_id: str, stream: str) -> int | None:
        """The last row that such a stream is known to have handed on."""
        row = tables.si_delivery.c
        query = select(row.seq).where(row.rm_id == rm_id, row.stream == stream)
        with self.readers.connect() as connection:
            return connection.execute(query).scalar_one_or_none()

    def close(self) -> None:
        self.readers.dispose()
        self._elsewhere.dispose()

    def _write_client(self, connection: Connection, event: Event) -> None:
        client = tables.si_client
        known = client.c.rm_id == event.subject
        again = {"registered_seq": event.seq, "registration": client.c.registration + 1}
        if connection.execute(update(client).where(known).values(**again)).rowcount == 0:
            row: dict[str, Any] = dict.fromkeys(("version", "policy_group", "config"), "")
            row |= {"rm_id": event.subject, "registration": 1, "registered_seq": event.seq}
            row |= {"registered_at": event.time, "build_info": {}, "extra_config": {}}
            connection.execute(insert(client).values(**row))


_EVENT = tuple(tables.event.c)


class FakeScheduler:
    """Notes what it is handed; everything is committed at once, unless it is told to hold back."""

    def __init__(self, outbox: WrittenOutbox) -> None:
        self.updates: list[Update] = []
        self.held: queue.SimpleQueue[Future[None]] = queue.SimpleQueue()
        self.hold = False
        self.refusal: Exception | None = None
        self._outbox = outbox

    def register(self, registration: Registration) -> None:
        if self.refusal is not None:
            raise self.refusal
        if not registration.rm_id:
            raise RegistrationRefusedError("one without a name")
        self._outbox.register(registration.rm_id)

    def at_hand(self, rm_id: str) -> bool:
        return self._outbox.is_registered(rm_id)

    def update(self, update: Update) -> Future[None]:
        if self.refusal is not None:
            raise self.refusal
        if not self._outbox.is_registered(update.rm_id):
            raise NotRegisteredError(update.rm_id)
        self.updates.append(update)
        future: Future[None] = Future()
        if self.hold:
            self.held.put(future)
        else:
            future.set_result(None)
        return future


@dataclass
class Desk:
    """Both doors, open, over one outbox."""

    outbox: WrittenOutbox
    authentication: Authentication = field(default_factory=lambda: Authentication(False, lambda _: None))
    keep_alive_seconds: float = 30.0
    max_message: int = 2**20

    def __post_init__(self) -> None:
        self.scheduler = FakeScheduler(self.outbox)
        self.tailer = Tailer(cast("Ledger", self.outbox))
        log = AnswerLog(self.outbox.readers)
        self.feed = AnswerFeed(log, self.tailer, KINDS_OF)
        intake = Intake(self.scheduler, log.spoken)
        self.handlers = SchedulerHandlers(intake, self.feed, self.authentication)
        self.grpc = GrpcServer(
            [self.handlers.handler],
            bind="127.0.0.1:0",
            max_message=self.max_message,
            on_stop=self.handlers.end_streams,
        )
        twin = HttpTwin(intake, self.feed, self.authentication, RequestLog(self.note_request))
        self.http = HttpServer(
            Flask("elsewhere"),
            bind="127.0.0.1:0",
            threads=4,
            streams=[twin.route],
            keep_alive_seconds=self.keep_alive_seconds,
        )
        self.requests: list[tuple[str, str, int]] = []
        """Of each request over HTTP method, route and status, as the metrics are told."""
        self._stack = ExitStack()

    def note_request(self, method: str, route: str, status: int, seconds: float) -> None:
        assert seconds >= 0
        self.requests.append((method, route, status))

    def __enter__(self) -> Self:
        stack = self._stack
        self.tailer.start()
        stack.callback(self.tailer.stop)
        self.feed.start()
        stack.callback(self.feed.stop)
        self.grpc.start()
        stack.callback(self.handlers.stop)
        stack.callback(self.grpc.stop, 5.0)
        self.http.start()
        stack.callback(self.http.stop, 5.0)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def caller(self, *metadata: tuple[str, str]) -> "Caller":
        """A client of its own."""
        caller = Caller(self.grpc.address, metadata)
        self._stack.callback(caller.channel.close)
        return caller


class Caller:
    """A resource manager on gRPC."""

    def __init__(self, address: tuple[str, int], metadata: tuple[tuple[str, str], ...] = ()) -> None:
        host, port = address
        self.channel = grpc.insecure_channel(f"{host}:{port}")
        self._metadata = metadata

    def register(self, rm_id: str) -> None:
        request = si.RegisterResourceManagerRequest(rmID=rm_id)
        self.send(request.SerializeToString())

    def send(self, request: bytes) -> bytes:
        """A registration, as it stands on the wire."""
        call = self.channel.unary_unary("/si.v1.Scheduler/RegisterResourceManager", None, None)
        answer: bytes = call(request, metadata=self._metadata, timeout=PATIENCE)
        return answer

    def stream(self, method: str, **metadata: str) -> "Conversation":
        given = [(name.replace("_", "-"), value) for name, value in metadata.items()]
        return Conversation(self.channel, method, (*self._metadata, *given))


class Conversation:
    """One stream, as its client sees it."""

    def __init__(self, channel: grpc.Channel, method: str, metadata: tuple[tuple[str, str], ...]) -> None:
        self._said: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._response = RESPONSES[method]
        path = f"/si.v1.Scheduler/{method}"
        self._call: Any = channel.stream_stream(path, None, None)(
            iter(self._said.get, None), metadata=metadata
        )
        self._heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._reading = threading.Event()
        self._reading.set()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def say(self, message: Message | bytes) -> None:
        self._said.put(message if isinstance(message, bytes) else message.SerializeToString())

    def has_no_more_to_say(self) -> None:
        self._said.put(None)

    def hear(self) -> Any:
        """The next response."""
        heard = self._heard.get(timeout=PATIENCE)
        assert isinstance(heard, self._response), heard
        return heard

    def hear_nodes(self, count: int) -> list[str]:
        """So many accepted nodes, over as many responses as it takes."""
        nodes: list[str] = []
        while len(nodes) < count:
            response = self.hear()
            accepted = (
                response.acceptedNodes if isinstance(response, si_v0.UpdateResponse) else response.accepted
            )
            nodes += [each.nodeID for each in accepted]
        return nodes

    def hears_nothing(self) -> bool:
        return self._heard.empty()

    def end(self) -> tuple[str, str]:
        """Name and detail of the status with which it ends, after everything that was heard."""
        while isinstance(heard := self._heard.get(timeout=PATIENCE), self._response):
            continue
        code, detail = heard
        return code, detail

    def stop_reading(self) -> None:
        """What comes stays in the transport, after one more message."""
        self._reading.clear()

    def go_on_reading(self) -> None:
        self._reading.set()

    def leave(self) -> None:
        self._reading.set()
        self._call.cancel()
        self._reader.join(PATIENCE)

    def _read(self) -> None:
        try:
            for data in self._call:
                self._heard.put(self._response.FromString(data))
                self._reading.wait()
        except grpc.RpcError:
            pass  # its status says more
        self._heard.put((self._call.code().name, self._call.details()))


def request(method: str, rm_id: str, *names: str) -> Any:
    """A request by this method that names some things."""
    message: Any = METHODS[method].request(rmID=rm_id)
    for name in names:
        if isinstance(message, si.NodeRequest):
            message.nodes.add(nodeID=name, action=si.NodeInfo.CREATE)
        elif isinstance(message, si.AllocationRequest):
            message.asks.add(allocationKey=name, maxAllocations=1)
        elif isinstance(message, si_v0.UpdateRequest):
            message.newSchedulableNodes.add(nodeID=name)
        else:
            message.new.add(applicationID=name)
    return message


def until(true: Callable[[], object]) -> None:
    """Wait for what must come to pass."""
    pause = threading.Event()
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, "it did not come to pass"
        pause.wait(0.01)
