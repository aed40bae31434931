"""The HTTP twin of the Scheduler Interface, from the other end of a socket."""

import json
import logging
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from rm_service.domain import answers
from rm_service.domain.events import Kind
from rm_service.hosting import request_log
from rm_service.hosting.authentication import Authentication
from rm_service.ledger.errors import LedgerClosedError, LedgerUnavailableError, OutcomeUnknownError
from rm_service.services.si.errors import RegistrationRefusedError
from rm_service.services.si.requests import Dialect
from tests.facades.si.desk import PATIENCE, Desk, WrittenOutbox, until

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def desk(outbox: WrittenOutbox) -> Iterator[Desk]:
    with Desk(outbox, keep_alive_seconds=0.2) as desk:
        yield desk


def ask(
    desk: Desk, method: str, path: str, body: str = "", headers: Mapping[str, str] = JSON
) -> tuple[int, Any, HTTPResponse]:
    with closing(HTTPConnection(*desk.http.address, timeout=PATIENCE)) as connection:
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        return response.status, json.loads(response.read()), response


def post(desk: Desk, name: str, body: object) -> tuple[int, Any]:
    status, document, _ = ask(desk, "POST", f"/si/v1/{name}", json.dumps(body))
    return status, document


class Lines:
    """A reader of responses."""

    def __init__(self, desk: Desk, rm_id: str, query: str = "") -> None:
        self._connection = HTTPConnection(*desk.http.address, timeout=PATIENCE)
        self._connection.connect()
        self._socket: socket.socket = self._connection.sock
        self._connection.request("GET", f"/si/v1/responses/{rm_id}{query}")
        self._response = self._connection.getresponse()
        assert self._response.status == 200, self._response.read()
        assert self._response.headers["Content-Type"] == "application/x-ndjson"
        self.blank_lines = 0

    def next(self) -> tuple[str, dict[str, Any]]:
        """The next message and the name of its type."""
        while (line := self._response.readline()) == b"\n":
            self.blank_lines += 1
        assert line, "the stream has ended"
        ((name, message),) = json.loads(line).items()
        return name, message

    def nodes(self, count: int) -> list[str]:
        found: list[str] = []
        while len(found) < count:
            found += [each["nodeID"] for each in self.next()[1]["accepted"]]
        return found

    def has_ended(self) -> bool:
        return set(self._response) <= {b"\n"}

    def leave(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._response.close()
        self._connection.close()


Listen = Callable[..., Lines]


@pytest.fixture
def listen(desk: Desk) -> Iterator[Listen]:
    """Makes readers, who leave at the end."""
    with ExitStack() as stack:

        def made(rm_id: str, query: str = "") -> Lines:
            lines = Lines(desk, rm_id, query)
            stack.callback(lines.leave)
            return lines

        yield made


class TestRequests:
    @pytest.fixture(autouse=True)
    def _registered(self, desk: Desk) -> None:
        assert post(desk, "RegisterResourceManager", {"rmID": "rm"}) == (200, {})

    def test_each_method_has_its_dialect(self, desk: Desk) -> None:
        for name, body in {
            "UpdateNode": {"rmID": "rm", "nodes": [{"nodeID": "n1", "action": "CREATE"}]},
            "UpdateApplication": {"rmID": "rm", "new": [{"applicationID": "a", "queueName": "q"}]},
            "UpdateAllocation": {"rmID": "rm", "asks": [{"allocationKey": "k", "maxAllocations": 1}]},
            "Update": {"rmID": "rm", "newSchedulableNodes": [{"nodeID": "n2"}]},
        }.items():
            assert post(desk, name, body) == (200, {})
        node, application, allocation, old = desk.scheduler.updates
        assert [each.node for each in (*node.nodes, *old.nodes)] == ["n1", "n2"]
        assert (application.applications[0].queue, allocation.asks[0].key) == ("q", "k")
        assert (allocation.dialect, old.dialect) == (Dialect.SEED, Dialect.OLD)

    def test_it_is_answered_when_it_is_committed(self, desk: Desk) -> None:
        desk.scheduler.hold = True
        with closing(HTTPConnection(*desk.http.address, timeout=PATIENCE)) as connection:
            connection.request("POST", "/si/v1/UpdateNode", '{"rmID": "rm"}', JSON)
            held = desk.scheduler.held.get(timeout=PATIENCE)
            assert not desk.scheduler.updates[0].nodes
            held.set_result(None)
            assert connection.getresponse().status == 200

    @pytest.mark.parametrize(
        ("body", "status", "code", "field"),
        [
            ("[", 400, "malformed_json", None),
            ("", 400, "malformed_json", None),
            ('{"rmID": "rm", "nods": []}', 422, "invalid_fields", "nods"),
            ('{"rmID": "rm", "nodes": [{"nodeID": 1}]}', 422, "invalid_fields", "nodes[0].nodeID"),
            ('{"nodes": []}', 422, "invalid_fields", "rmID"),
            ('{"rmID": "x"}', 404, "not_registered", None),
        ],
    )
    def test_what_cannot_be_taken_in_is_a_problem(
        self, desk: Desk, body: str, status: int, code: str, field: str | None
    ) -> None:
        answered, problem, response = ask(desk, "POST", "/si/v1/UpdateNode", body)
        assert (answered, problem["code"], problem["status"]) == (status, code, status)
        assert response.headers["Content-Type"] == "application/problem+json"
        assert list(problem.get("errors", {})) == ([] if field is None else [field])

    @pytest.mark.parametrize(
        ("error", "status", "code"),
        [
            (LedgerUnavailableError("host db:5432"), 503, "unavailable"),
            (OutcomeUnknownError(), 503, "outcome_unknown"),
            (LedgerClosedError(), 503, "closing"),
            (RegistrationRefusedError("no such queue"), 422, "registration_refused"),
            (ZeroDivisionError("secret"), 500, "internal"),
        ],
    )
    def test_what_cannot_be_committed_is_one_too(
        self, desk: Desk, error: Exception, status: int, code: str
    ) -> None:
        desk.scheduler.refusal = error
        for name in ("RegisterResourceManager", "UpdateNode"):
            answered, problem = post(desk, name, {"rmID": "rm"})
            assert (answered, problem["code"]) == (status, code)
            assert "secret" not in problem["detail"]
            assert "5432" not in problem["detail"]

    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [
            ("GET", "UpdateNode", 405),
            ("POST", "responses/rm", 405),
            ("POST", "UpdateNothing", 404),
            ("GET", "", 404),
        ],
    )
    def test_other_addresses_are_told_apart(self, desk: Desk, method: str, path: str, status: int) -> None:
        answered, problem, _ = ask(desk, method, f"/si/v1/{path}")
        assert (answered, problem["status"]) == (status, status)

    def test_a_body_is_json(self, desk: Desk) -> None:
        assert ask(desk, "POST", "/si/v1/UpdateNode", "{}", {"Content-Type": "text/plain"})[0] == 415

    def test_where_a_token_is_needed_none_is_no_answer(self, outbox: WrittenOutbox) -> None:
        with Desk(outbox, authentication=Authentication(needed=True, name_of={"good": "a"}.get)) as desk:
            status, problem, response = ask(desk, "POST", "/si/v1/UpdateNode", '{"rmID": "rm"}')
            assert (status, problem["code"]) == (401, "unauthorized")
            assert response.headers["WWW-Authenticate"].startswith("Bearer")
            token = JSON | {"Authorization": "Bearer good"}
            assert ask(desk, "POST", "/si/v1/UpdateNode", '{"rmID": "rm"}', token)[0] == 200


class TestResponses:
    def test_a_message_is_a_line_under_the_name_of_its_type(self, desk: Desk, listen: Listen) -> None:
        desk.outbox.register("rm")
        lines = listen("rm")
        last = desk.outbox.accept_nodes("rm", "n1", "n2")
        accepted = [{"nodeID": "n1"}, {"nodeID": "n2"}]
        assert lines.next() == ("NodeResponse", {"accepted": accepted, "rmRow": str(last)})
        desk.outbox.grant("rm", "k")
        name, message = lines.next()
        assert (name, message["new"][0]["allocationKey"]) == ("AllocationResponse", "k")

    def test_it_speaks_the_dialect_of_its_resource_manager(self, desk: Desk, listen: Listen) -> None:
        desk.outbox.register("rm")
        assert post(desk, "Update", {"rmID": "rm"}) == (200, {})
        lines = listen("rm")
        desk.outbox.accept_nodes("rm", "n1")
        name, message = lines.next()
        assert (name, message["acceptedNodes"]) == ("UpdateResponse", [{"nodeID": "n1"}])
        desk.outbox.register("rm")
        assert lines.next() == ("UpdateResponse", {"action": "RESYNC"})
        assert lines.has_ended()

    def test_its_dialect_is_remembered_by_the_next_process(self, desk: Desk) -> None:
        desk.outbox.register("rm")
        body = {"rmID": "rm", "asks": [{"allocationKey": "k"}]}
        assert post(desk, "UpdateAllocation", body) == (200, {})
        with Desk(desk.outbox) as later:
            lines = Lines(later, "rm")
            later.outbox.commit((Kind.CLIENT_REJECTED, "rm", answers.rejected_ask("a", "k", "no")))
            name, message = lines.next()
            assert (name, len(message["rejected"])) == ("AllocationResponse", 1), "where that dialect has it"
            lines.leave()

    def test_a_new_registration_ends_it(self, desk: Desk, listen: Listen) -> None:
        desk.outbox.register("rm")
        lines = listen("rm")
        desk.outbox.register("rm")
        assert lines.next() == ("RESYNC", {"reason": "the resource manager has registered again since"})
        assert lines.has_ended()

    def test_much_is_delivered_as_it_is_read(self, desk: Desk, listen: Listen) -> None:
        desk.outbox.register("rm")
        names = [f"{'n' * 1_000}{number}" for number in range(6_000)]
        for start in range(0, 3_000, 500):
            desk.outbox.accept_nodes("rm", *names[start : start + 500])
        lines = listen("rm")
        for start in range(3_000, 6_000, 500):
            desk.outbox.accept_nodes("rm", *names[start : start + 500])
        assert lines.nodes(6_000) == names

    def test_it_goes_on_where_the_last_one_stopped_or_where_it_is_told(
        self, desk: Desk, listen: Listen
    ) -> None:
        desk.outbox.register("rm")
        lines = listen("rm")
        row = desk.outbox.accept_nodes("rm", "n1")
        assert lines.nodes(1) == ["n1"]
        until(lambda: desk.feed.deliveries.noted(("rm", "responses")) == row)
        lines.leave()
        desk.outbox.accept_nodes("rm", "n2")
        assert listen("rm").nodes(1) == ["n2"]
        assert listen("rm", f"?after={row - 1}").nodes(2) == ["n1", "n2"]

    def test_when_there_is_nothing_to_say_it_is_kept_alive(self, desk: Desk, listen: Listen) -> None:
        desk.outbox.register("rm")
        lines = listen("rm")
        assert lines._response.readline() == b"\n"

    def test_a_reader_that_leaves_is_forgotten(self, desk: Desk, listen: Listen) -> None:
        desk.outbox.register("rm")
        lines = listen("rm")
        assert len(desk.feed) == 1
        lines.leave()
        until(lambda: len(desk.feed) == 0)

    @pytest.mark.parametrize(
        ("rest", "status", "code"),
        [
            ("x", 404, "not_registered"),
            ("", 404, "not_registered"),
            ("rm?after=x", 422, "invalid_fields"),
            ("rm?after=1&after=2", 422, "invalid_fields"),
            ("rm?after=100000", 422, "invalid_fields"),
            ("rm?limit=1", 422, "invalid_fields"),
        ],
    )
    def test_what_cannot_be_read_is_a_problem(self, desk: Desk, rest: str, status: int, code: str) -> None:
        desk.outbox.register("rm")
        answered, problem, _ = ask(desk, "GET", f"/si/v1/responses/{rest}")
        assert (answered, problem["code"]) == (status, code)


class TestCounting:
    """What the metrics and the request log are told."""

    @pytest.fixture(autouse=True)
    def _registered(self, desk: Desk) -> None:
        desk.outbox.register("rm")

    @pytest.fixture
    def logged(self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> list[Any]:
        """What is logged of requests, as a list that grows."""
        caplog.set_level(logging.DEBUG, "rm_service.hosting.request_log")
        capture = LogCapture()
        every_level = structlog.make_filtering_bound_logger(logging.DEBUG)
        log = structlog.wrap_logger(None, processors=[capture], wrapper_class=every_level)
        monkeypatch.setattr(request_log, "_log", log)
        return capture.entries

    @pytest.mark.parametrize(
        ("method", "name", "route", "status"),
        [
            ("POST", "RegisterResourceManager", "/si/v1/RegisterResourceManager", 200),
            ("POST", "UpdateNode", "/si/v1/UpdateNode", 200),
            ("POST", "Update", "/si/v1/Update", 200),
            ("GET", "responses/rm?after=100000", "/si/v1/responses/<rmID>", 422),
            ("GET", "responses/nobody", "/si/v1/responses/<rmID>", 404),
            ("POST", "responses/rm", "(none)", 405),
            ("GET", "UpdateNode", "(none)", 405),
            ("POST", "UpdateNothing", "(none)", 404),
        ],
    )
    def test_a_request_is_counted_by_its_route_and_told_of_by_its_path(
        self, desk: Desk, logged: list[Any], method: str, name: str, route: str, status: int
    ) -> None:
        assert ask(desk, method, f"/si/v1/{name}", '{"rmID": "rm"}')[0] == status
        assert desk.requests == [(method, route, status)]
        (line,) = logged
        assert (line["event"], line["method"], line["status"]) == ("request", method, status)
        assert (line["path"], line["caller"]) == (f"/si/v1/{name.partition('?')[0]}", "")
        assert type(line["status"]) is int, "a name of it would be shown otherwise"

    def test_what_could_not_be_committed_is_counted_and_told_of_aloud(
        self, desk: Desk, logged: list[Any]
    ) -> None:
        desk.scheduler.refusal = LedgerUnavailableError("away")
        assert post(desk, "UpdateNode", {"rmID": "rm"})[0] == 503
        assert desk.requests == [("POST", "/si/v1/UpdateNode", 503)]
        assert [each["log_level"] for each in logged] == ["warning"]

    def test_who_asked_is_told_and_one_without_a_token_is_counted_too(
        self, outbox: WrittenOutbox, logged: list[Any]
    ) -> None:
        with Desk(outbox, authentication=Authentication(needed=True, name_of={"good": "a"}.get)) as desk:
            token = JSON | {"Authorization": "Bearer good"}
            for headers in (token, JSON):
                ask(desk, "POST", "/si/v1/UpdateNode", '{"rmID": "rm"}', headers)
            assert [status for _, _, status in desk.requests] == [200, 401]
            assert [each["caller"] for each in logged] == ["a", ""]

    def test_a_stream_is_counted_when_it_opens_and_told_of_again_when_it_ends(
        self, desk: Desk, listen: Listen, logged: list[Any]
    ) -> None:
        lines = listen("rm")
        assert desk.requests == [("GET", "/si/v1/responses/<rmID>", 200)]
        assert [each["event"] for each in logged] == ["request"]
        lines.leave()
        until(lambda: len(logged) == 2)
        assert (logged[1]["event"], logged[1]["path"]) == ("stream_ended", "/si/v1/responses/rm")
        assert len(desk.requests) == 1
