"""Live events and long polls, seen from the other end of a socket, with a real ledger behind."""

import json
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
import yaml
from flask import Flask
from sqlalchemy import select

from rm_service.bundled import bundled
from rm_service.domain import operations as op
from rm_service.facades.http.application_polls import ApplicationPolls
from rm_service.facades.http.event_stream import EventStreams
from rm_service.facades.http.json_text import write_json
from rm_service.facades.http.problems import ProblemError
from rm_service.facades.http.rendering import event_document
from rm_service.hosting.answer import Answer
from rm_service.hosting.server import HttpServer
from rm_service.hosting.streams import StreamRequest
from rm_service.ledger import tables
from rm_service.ledger.database import reader_engine
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.outbox import PAGE
from rm_service.ledger.queries.events import LabelledEvent
from rm_service.ledger.schema import migrate
from rm_service.ledger.tailer import Tailer

PATIENCE = 20.0  # seconds that a test waits for what must happen
EVENTS = "/api/v1/events"


@dataclass
class Service:
    """A server with nothing but the streams, on a ledger; it notes what it is asked and what it encodes."""

    ledger: Ledger
    tailer: Tailer
    encoded: list[int] = field(default_factory=list)
    opened: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    server: HttpServer = field(init=False)

    def __post_init__(self) -> None:
        self.events = EventStreams(self.tailer, authorize=self.authorize, event_json=self.event_json)
        self.polls = ApplicationPolls(self.ledger, self.tailer, authorize=self.authorize, render=self.render)
        self.server = HttpServer(
            Flask("elsewhere"),
            bind="127.0.0.1:0",
            threads=4,
            streams=[self.events.route, self.polls.route],
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


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "rm.db"
    engine = reader_engine(f"sqlite:///{path}")
    migrate(engine)
    engine.dispose()
    document = yaml.safe_load(bundled("config/default.yaml").read_text(encoding="utf-8"))
    rules = {name: document[name] for name in ("conversions", "label_rules")}
    ledger = Ledger(LedgerSettings(f"sqlite:///{path}", rules=rules))
    ledger.open()
    ledger.close()
    return path


@pytest.fixture
def service(template: Path, tmp_path: Path) -> Iterator[Service]:
    for part in template.parent.iterdir():
        shutil.copy(part, tmp_path / part.name)
    ledger = Ledger(LedgerSettings(f"sqlite:///{tmp_path / template.name}"))
    ledger.open()
    tailer = Tailer(ledger)
    tailer.start()
    service = Service(ledger, tailer)
    service.server.start()
    yield service
    service.server.stop(grace=1.0)
    tailer.stop()
    ledger.close()


@pytest.fixture
def clients(service: Service) -> Iterator["Clients"]:
    clients = Clients(service)
    yield clients
    for client in clients.made:
        client.connection.close()


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


class TestStream:
    def test_what_happens_is_seen_as_it_is_in_the_list(self, service: Service, clients: Clients) -> None:
        events = clients().stream()
        id_ = service.apply(user="alice")
        message = events.next()
        assert message.event == "application.locked"
        assert message.data["seq"] == message.id
        assert message.data["subject"] == id_
        assert message.data["tags"] == {"user": "alice"}
        assert {"user": "alice"} in message.data["labels"]

    def test_without_a_number_it_begins_now(self, service: Service, clients: Clients) -> None:
        service.apply(user="before")
        events = clients().stream()
        service.apply(user="after")
        assert events.next().data["tags"] == {"user": "after"}

    def test_it_tells_caches_and_proxies_to_keep_out(self, clients: Clients) -> None:
        headers = clients().stream().response.headers
        assert headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Accel-Buffering"] == "no"

    @pytest.mark.parametrize("resume", [("?after=2", {}), ("", {"Last_Event_ID": "2"}), ("?cursor=2", {})])
    def test_it_resumes_after_a_number(
        self, service: Service, clients: Clients, resume: tuple[str, dict[str, str]]
    ) -> None:
        service.apply_many(5)
        query, headers = resume
        assert ids(clients().stream(query, **headers).take(2)) == [3, 4]

    def test_the_header_of_a_returning_client_wins(self, service: Service, clients: Clients) -> None:
        service.apply_many(5)
        assert clients().stream("?after=0", Last_Event_ID="4").next().id == 5

    def test_a_long_history_comes_whole_and_goes_over_into_the_present(
        self, service: Service, clients: Clients
    ) -> None:
        for _ in range(5):
            service.apply_many(PAGE)
        events = clients().stream("?after=0")
        first = events.take(100)
        service.apply_many(50)
        rest = events.take(1 + 5 * PAGE + 50 - 100)
        assert ids([*first, *rest]) == list(range(1, 5 * PAGE + 52))
        service.apply()
        assert events.next().id == 5 * PAGE + 52

    def test_who_joins_in_the_middle_of_a_page_gets_only_the_rest_of_it(
        self, service: Service, clients: Clients
    ) -> None:
        first = clients().stream()
        blocked, go_on = threading.Event(), threading.Event()

        def block(_: Sequence[LabelledEvent]) -> None:
            blocked.set()
            go_on.wait(PATIENCE)

        service.tailer.subscribe(block, service.tailer.head())
        service.apply()
        assert blocked.wait(PATIENCE)
        service.apply_many(5)  # the next page begins before the second stream does
        second = clients().stream()
        service.apply(user="last")
        go_on.set()
        assert [first.take(7)[-1].data["tags"], second.next().data["tags"]] == [{"user": "last"}] * 2

    def test_a_client_that_comes_back_misses_nothing_and_sees_nothing_twice(
        self, service: Service, clients: Clients
    ) -> None:
        events = clients().stream("?after=1")
        service.apply_many(10)
        seen = ids(events.take(4))
        events.response.close()
        service.apply_many(10)
        again = clients().stream(Last_Event_ID=str(seen[-1]))
        assert seen + ids(again.take(16)) == list(range(2, 22))

    def test_while_nothing_happens_it_says_that_it_lives(self, clients: Clients) -> None:
        assert clients().stream().comment() == ": keep-alive"

    def test_a_selector_and_a_kind_choose(self, service: Service, clients: Clients) -> None:
        alices = clients().stream("?selector=user%3Dalice")
        nodes = clients().stream("?kind=node.")
        service.apply(user="bob")
        service.ledger.submit([op.RegisterNode("h1", "Memory", {"memory": 1})])
        service.apply(user="alice")
        assert alices.next().data["tags"] == {"user": "alice"}
        assert nodes.next().event == "node.registered"

    def test_history_is_chosen_from_in_the_same_way(self, service: Service, clients: Clients) -> None:
        service.apply(user="alice")
        service.apply_many(3 * PAGE)
        service.apply(user="alice")
        found = clients().stream("?after=0&selector=user%3Dalice").take(2)
        assert ids(found) == [2, 3 + 3 * PAGE]

    def test_each_event_is_encoded_once_for_all(self, service: Service, clients: Clients) -> None:
        streams = [clients().stream() for _ in range(10)]
        filtered = [clients().stream("?kind=application") for _ in range(10)]
        service.apply()  # from here on all have caught up
        (began,) = {events.next().id for events in [*streams, *filtered]}
        service.encoded.clear()
        for _ in range(3):
            service.apply()
        assert {tuple(ids(events.take(3))) for events in [*streams, *filtered]} == {
            (began + 1, began + 2, began + 3)
        }
        assert service.encoded == [began + 1, began + 2, began + 3]

    def test_what_no_stream_shows_is_not_encoded(self, service: Service, clients: Clients) -> None:
        events = clients().stream("?kind=node")
        service.apply_many(20)
        service.ledger.submit([op.RegisterNode("h1", "Memory", {"memory": 1})])
        message = events.next()
        assert message.event == "node.registered"
        assert service.encoded == [message.id]

    def test_the_end_of_the_server_is_a_clean_end(self, service: Service, clients: Clients) -> None:
        events = clients().stream()
        service.server.stop(grace=1.0)
        assert events.ended()


class TestRefusals:
    @pytest.mark.parametrize(
        ("query", "name"),
        [
            ("?after=x", "after"),
            ("?after=-1", "after"),
            ("?after=99999", "after"),
            ("?after=1&after=2", "after"),
            ("?cursor=x", "cursor"),
            ("?selector=a%3D%3D%3D", "selector"),
            ("?since=1", "since"),
        ],
    )
    def test_what_cannot_be_is_named(self, clients: Clients, query: str, name: str) -> None:
        status, problem = clients().problem(EVENTS + query)
        assert status == 422
        assert problem["code"] == "invalid_fields"
        assert list(problem["errors"]) == [name]

    def test_a_dead_last_event_id_is_named(self, clients: Clients) -> None:
        status, problem = clients().problem(EVENTS, Last_Event_ID="nonsense")
        assert status == 422
        assert list(problem["errors"]) == ["Last-Event-ID"]

    def test_who_may_not_ask_is_told_so(self, clients: Clients) -> None:
        status, problem = clients().problem(EVENTS, Authorization="Bearer wrong")
        assert (status, problem["code"]) == (401, "unauthorized")

    def test_who_wants_json_is_not_streamed_to(self, clients: Clients) -> None:
        assert clients().get(EVENTS, Accept="application/json").status == 404, "it went to the application"


class TestLongPoll:
    @pytest.fixture
    def waiting(self, service: Service) -> tuple[str, str]:
        """The ids of one that holds all there is, and of one that waits for it."""
        service.ledger.submit([op.RegisterNode("h1", "Memory", {"memory": 1})])
        holder = service.apply(node="h1")
        waiter = service.apply(node="h1", wait_seconds=600)
        assert (service.state(holder), service.state(waiter)) == ("locked", "waiting")
        return holder, waiter

    def poll(self, client: Client, id_: str, wait: int) -> tuple[int, Any]:
        response = client.get(f"/api/v1/applications/{id_}?wait={wait}")
        return response.status, json.loads(response.read())

    def test_who_waits_no_more_is_answered_at_once(self, clients: Clients, waiting: tuple[str, str]) -> None:
        status, answer = self.poll(clients(), waiting[0].upper(), 300)
        assert (status, answer) == (200, {"id": waiting[0], "state": "locked"})

    def test_an_unknown_application_is_not_waited_for(self, clients: Clients) -> None:
        assert self.poll(clients(), str(uuid.uuid4()), 300)[0] == 404

    def test_it_is_answered_when_the_waiting_ends(
        self, service: Service, clients: Clients, waiting: tuple[str, str]
    ) -> None:
        holder, waiter = waiting
        answers: list[tuple[int, Any]] = []
        client = clients()
        thread = threading.Thread(target=lambda: answers.append(self.poll(client, waiter, 300)))
        thread.start()
        until(lambda: service.server.open_streams == 1)
        service.ledger.submit([op.Release(holder)])
        thread.join(PATIENCE)
        assert answers == [(200, {"id": waiter, "state": "locked"})]
        until(lambda: service.server.open_streams == 0)

    def test_many_wait_on_few_threads(
        self, service: Service, clients: Clients, waiting: tuple[str, str]
    ) -> None:
        holder, waiter = waiting
        polls = [clients() for _ in range(50)]  # the server has 4 threads
        for client in polls:
            client.connection.request("GET", f"/api/v1/applications/{waiter}?wait=300")
        until(lambda: service.server.open_streams == len(polls))
        service.ledger.submit([op.Release(holder)])
        answers = [json.loads(client.connection.getresponse().read()) for client in polls]
        assert {answer["state"] for answer in answers} == {"locked"}

    def test_when_the_time_is_over_the_state_is_told_as_it_is(
        self, clients: Clients, waiting: tuple[str, str]
    ) -> None:
        assert self.poll(clients(), waiting[1], 1) == (200, {"id": waiting[1], "state": "waiting"})

    def test_a_server_that_stops_answers(
        self, service: Service, clients: Clients, waiting: tuple[str, str]
    ) -> None:
        client = clients()
        client.connection.request("GET", f"/api/v1/applications/{waiting[1]}?wait=300")
        until(lambda: service.server.open_streams == 1)
        service.server.stop(grace=5.0)
        assert json.loads(client.connection.getresponse().read())["state"] == "waiting"

    def test_a_client_that_leaves_is_forgotten(
        self, service: Service, clients: Clients, waiting: tuple[str, str]
    ) -> None:
        client = clients()
        client.connection.request("GET", f"/api/v1/applications/{waiting[1]}?wait=300")
        until(lambda: service.server.open_streams == 1)
        client.connection.close()
        until(lambda: service.server.open_streams == 0)
        assert service.polls._polls == {}

    @pytest.mark.parametrize("query", ["wait=0", "wait=301", "wait=x", "wait=5&also=1", "", "state=used"])
    def test_everything_else_is_an_ordinary_request(
        self, clients: Clients, waiting: tuple[str, str], query: str
    ) -> None:
        response = clients().get(f"/api/v1/applications/{waiting[1]}?{query}")
        assert response.status == 404, "it went to the application, which knows nothing"

    def test_who_may_not_ask_is_told_so(self, clients: Clients, waiting: tuple[str, str]) -> None:
        response = clients().get(f"/api/v1/applications/{waiting[1]}?wait=5", Authorization="Bearer wrong")
        assert response.status == 401
