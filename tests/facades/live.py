"""A server with nothing but the streams, and clients that listen to it at the other end of a socket."""

import json
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from typing import Any

from flask import Flask
from sqlalchemy import event, select

from rm_service.domain import operations as op
from rm_service.facades.http.application_polls import ApplicationPolls
from rm_service.facades.http.assignment_stream import AssignmentStreams
from rm_service.facades.http.endpoints import API
from rm_service.facades.http.event_stream import EventStreams
from rm_service.facades.http.json_text import write_json
from rm_service.facades.http.problems import ProblemError
from rm_service.facades.http.rendering import event_document
from rm_service.hosting.answer import Answer
from rm_service.hosting.server import HttpServer
from rm_service.hosting.streams import StreamRequest
from rm_service.ledger import tables
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.events import LabelledEvent
from rm_service.ledger.tailer import Tailer

PATIENCE = 20.0  # seconds that a test waits for what must happen
EVENTS = f"{API}/events"


@dataclass
class Service:
    """A server with nothing but the streams, on a ledger; it notes what it is asked and what it encodes."""

    ledger: Ledger
    tailer: Tailer
    encoded: list[int] = field(default_factory=list)
    looks: list[object] = field(default_factory=list)
    """The parameters of each statement that read assignments."""
    opened: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    server: HttpServer = field(init=False)

    def __post_init__(self) -> None:
        self.events = EventStreams(self.tailer, authorize=self.authorize, event_json=self.event_json)
        self.polls = ApplicationPolls(self.ledger, self.tailer, authorize=self.authorize, render=self.render)
        self.assignments = AssignmentStreams(self.ledger, self.tailer, authorize=self.authorize)
        event.listen(self.ledger.readers, "before_cursor_execute", self._note_look)
        self.server = HttpServer(
            Flask("elsewhere"),
            bind="127.0.0.1:0",
            threads=4,
            streams=[self.events.route, self.polls.route, self.assignments.route],
            keep_alive_seconds=0.2,
        )

    def authorize(self, request: StreamRequest) -> None:
        if request.headers.get("authorization") == "Bearer wrong":
            raise ProblemError("unauthorized", "not in force", headers={"WWW-Authenticate": "Bearer"})

    def event_json(self, each: LabelledEvent) -> bytes:
        self.encoded.append(each.event.seq)
        return write_json(event_document(each.event, each.labels))

    def render(self, application_id: str) -> Answer:
        state = self.state(application_id)
        body = write_json({"id": application_id, "state": state})
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        return Answer(404 if state is None else 200, headers, body)

    def state(self, application_id: str) -> str | None:
        table = tables.application.c
        with self.ledger.readers.connect() as connection:
            found = connection.execute(select(table.state).where(table.id == application_id))
            return found.scalar_one_or_none()

    def apply(self, wait_seconds: int = 0, **tags: str) -> str:
        id_ = str(uuid.uuid4())
        self.ledger.submit([op.Apply(id_, tags, {"memory": 1}, wait_seconds=wait_seconds)])
        return id_

    def _note_look(
        self, _connection: object, _cursor: object, statement: str, parameters: object, *_: object
    ) -> None:
        if "application_device" in statement:
            self.looks.append(parameters)

    def apply_many(self, count: int) -> None:
        self.ledger.submit(
            [op.Apply(str(uuid.uuid4()), {"user": "many"}, {"memory": 1}) for _ in range(count)]
        )


@dataclass(frozen=True)
class Message:
    id: int
    event: str
    data: dict[str, Any]


class Client:
    """One connection."""

    def __init__(self, service: Service) -> None:
        host, port = service.server.address
        self.connection = HTTPConnection(host, port, timeout=PATIENCE)

    def get(self, target: str, **headers: str) -> HTTPResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request("GET", target, headers=named)
        return self.connection.getresponse()

    def stream(self, query: str = "", **headers: str) -> "Events":
        response = self.get(EVENTS + query, Accept="text/event-stream", **headers)
        assert response.status == 200, response.read()
        return Events(response)

    def assignments(self, node: str, query: str = "", **headers: str) -> "Events":
        target = f"{API}/nodes/{node}/assignments{query}"
        response = self.get(target, Accept="text/event-stream", **headers)
        assert response.status == 200, response.read()
        return Events(response)

    def problem(self, target: str, **headers: str) -> tuple[int, dict[str, Any]]:
        response = self.get(target, Accept="text/event-stream", **headers)
        return response.status, json.loads(response.read())


class Events:
    """A stream as a browser's EventSource reads it."""

    def __init__(self, response: HTTPResponse) -> None:
        self.response = response
        assert self._block() == ["retry: 1000"]

    def _block(self) -> list[str]:
        lines = []
        while line := self.response.readline().decode().rstrip("\n"):
            lines.append(line)
        return lines

    def comment(self) -> str:
        """The next block, which must be a comment."""
        (line,) = self._block()
        assert line.startswith(":")
        return line

    def next(self) -> Message:
        """The next event; comments are passed over."""
        while True:
            fields = dict(line.split(": ", 1) for line in self._block() if not line.startswith(":"))
            if fields:
                return Message(int(fields["id"]), fields["event"], json.loads(fields["data"]))

    def take(self, count: int) -> list[Message]:
        return [self.next() for _ in range(count)]

    def ended(self) -> bool:
        return self._block() == []


class Clients:
    def __init__(self, service: Service) -> None:
        self.service = service
        self.made: list[Client] = []

    def __call__(self) -> Client:
        self.made.append(Client(self.service))
        return self.made[-1]


def until(condition: Callable[[], bool]) -> None:
    """Wait for what nobody tells of."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline


def ids(messages: Sequence[Message]) -> list[int]:
    return [message.id for message in messages]
