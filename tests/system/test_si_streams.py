"""Streams that are bound, broken, resumed, slow or too full; every answer arrives once and in order."""

import http.client
import json

import pytest

from tests.si.answers import NEW, RELEASED, RESYNC
from tests.si.dialects import Ask
from tests.si.scenes import ALL, APP, POD, grant, pods, scene
from tests.si.served import Served
from tests.si.shim import Shim
from tests.si.transports import RefusedError
from tests.si.wire import ROW, wire
from tests.system.client import until

pytestmark = pytest.mark.system

EACH = pytest.mark.parametrize("dialect", ALL)
REQUESTS, ASKS = 40, 250
"""Of a slow reader: so many requests with so many asks each, which have to be rejected."""
LONG = "x" * 300
MANY_BYTES = 70 * 2**20


def asking(shim: Shim) -> str:
    """The method that asks travel by."""
    return shim.dialect.asks([])[0]


@EACH
def test_a_stream_resumed_after_a_row_brings_exactly_the_rows_behind_it(si: Served, dialect: str) -> None:
    first = scene(si.shim(dialect, "rm"))
    told = [answer for pod in pods(8) for answer in grant(first, pod)]
    rows = [answer.row for answer in told]
    assert rows == sorted(rows)
    assert all(rows)
    first.settle()
    first.close()
    second = si.shim(dialect, "rm")
    second.listen(after=rows[3])
    again = [second.expect(NEW) for _ in told[4:]]
    assert [(new.key, new.id, new.node) for new in again] == [(new.key, new.id, new.node) for new in told[4:]]
    assert again[-1].row >= rows[-1]  # a response has the row of the last of its answers
    second.settle()
    assert second.untaken(NEW) == []
    second.held = list(first.held)
    si.check_books(second)


@EACH
def test_without_a_row_a_stream_goes_on_behind_what_was_handed_over(si: Served, dialect: str) -> None:
    first = scene(si.shim(dialect, "rm"))
    grant(first, *pods(2))
    first.settle()
    for method in first.dialect.methods:
        first.send(method, {}, rm_id="another")
        first.expect_end(method)  # by the service, so nothing more is handed over
    si.twin(dialect, "rm").send(*first.dialect.asks(pods(3, name="unheard")))
    second = si.shim(dialect, "rm")
    second.listen()
    assert [second.expect(NEW).key for _ in range(3)] == ["unheard-0", "unheard-1", "unheard-2"]
    second.settle()
    assert second.untaken(NEW) == []
    second.held += first.held
    si.check_books(second)


@EACH
def test_a_later_stream_of_the_same_rm_takes_the_answers_over(si: Served, dialect: str) -> None:
    first = scene(si.shim(dialect, "rm"))
    grant(first, *pods(1))
    second = si.shim(dialect, "rm")
    second.held = list(first.held)
    second.listen()
    second.settle()
    grant(second, *pods(1, name="later"))
    second.settle()
    assert first.untaken(NEW) == []
    assert not first.ends
    si.check_books(second)


@EACH
def test_a_new_registration_ends_the_streams_of_before(si: Served, dialect: str) -> None:
    first = scene(si.shim(dialect, "rm"))
    grant(first, *pods(1))
    si.shim(dialect, "rm").register()
    for method in first.dialect.methods:
        status, detail = first.expect_end(method)
        if dialect != "old":
            assert status == "ABORTED"
            assert detail.startswith("RESYNC")
    if dialect == "old":
        first.expect(RESYNC)
    si.check_books(first)
    si.no_traceback()


@EACH
def test_a_message_of_another_rm_ends_a_bound_stream(si: Served, dialect: str) -> None:
    other = scene(si.shim(dialect, "rm-other"))
    shim = scene(si.shim(dialect, "rm"))
    method, body = shim.dialect.asks(pods(1))
    shim.send(method, body, rm_id=other.rm_id)
    status, detail = shim.expect_end(method)
    assert status == "INVALID_ARGUMENT"
    assert other.rm_id in detail
    other.settle()
    assert other.untaken(NEW) == []
    si.check_books(shim, other)
    si.no_traceback()


@EACH
def test_a_stream_before_the_registration_ends_with_the_reason(si: Served, dialect: str) -> None:
    shim = si.shim(dialect, "rm-unheard")
    shim.listen()
    for method, each in shim.dialect.methods.items():
        status, detail = shim.expect_end(method)
        assert status == "FAILED_PRECONDITION"
        assert detail == f'received {each.request}, but RmID "{shim.rm_id}" not registered'
    si.check_books()
    si.no_traceback()


@EACH
def test_an_rm_without_a_name_is_refused(si: Served, dialect: str) -> None:
    shim = si.shim(dialect, "")
    with pytest.raises(RefusedError) as refused:
        shim.register()
    assert refused.value.status == "INVALID_ARGUMENT"
    shim.listen()
    for method in shim.dialect.methods:
        assert shim.expect_end(method)[0] == "INVALID_ARGUMENT"
    si.check_books()
    si.no_traceback()


@EACH
def test_an_rm_may_listen_before_it_says_anything(si: Served, dialect: str) -> None:
    shim = si.shim(dialect, "rm")
    shim.register()
    for method in shim.dialect.methods:
        shim.transport.open(method, {"rm-id": shim.rm_id})
    for method, body in _small_world(shim):
        si.twin(dialect, "rm").send(method, body)
    shim.expect(NEW, key="pod-0")
    si.check_books(shim)


def _small_world(shim: Shim) -> list[tuple[str, dict[str, object]]]:
    """The requests for a node, an application and an ask, made by a shim that sends them to nobody."""
    said: list[tuple[str, dict[str, object]]] = []

    class Deaf(Shim):
        def send(self, method: str, body: dict[str, object], *, rm_id: str | None = None) -> None:
            said.append((method, body))

    teller = Deaf(shim.dialect.name, shim.rm_id, lambda _shim: shim.transport)
    teller.add_node("node-1", {"memory": 16_000, "vcore": 16_000})
    teller.add_application(APP)
    teller.ask(*pods(1))
    return said


@EACH
@pytest.mark.timeout(180)
def test_a_client_that_does_not_read_slows_nobody_and_loses_nothing(si: Served, dialect: str) -> None:
    slow = scene(si.shim(dialect, "rm-slow"))
    quick = scene(si.shim(dialect, "rm-quick"))
    slow.transport.reading.clear()
    for number in range(REQUESTS):
        slow.ask(*(Ask(key=f"{number}-{n}-{LONG}", app=LONG, resource=POD) for n in range(ASKS)))
        quick.ask(*pods(1, name=f"pod-{number}"))
        quick.release(quick.expect(NEW, seconds=10).allocation)
    quick.settle()
    slow.transport.reading.set()
    rejected = slow.dialect.rejected_ask
    until(lambda: len(slow.untaken(rejected)) >= REQUESTS * ASKS, "everything has arrived", seconds=60)
    expected = [f"{number}-{n}-{LONG}" for number in range(REQUESTS) for n in range(ASKS)]
    assert [answer.key for answer in slow.untaken(rejected)] == expected
    si.check_books(slow, quick)
    si.no_traceback()


def test_a_message_that_is_too_large_ends_its_own_stream_only(si: Served) -> None:
    shim = scene(si.shim("newest", "rm"))
    other = scene(si.shim("newest", "rm-other"))
    shim.send("UpdateNode", {"nodes": [{"nodeID": "n" * MANY_BYTES}]})
    assert shim.expect_end("UpdateNode", seconds=60)[0] == "RESOURCE_EXHAUSTED"
    grant(shim, *pods(1))
    grant(other, *pods(1))
    si.check_books(shim, other)


def test_bytes_that_are_no_message_end_the_stream_with_a_status(si: Served) -> None:
    shim = scene(si.shim("seed", "rm"))
    shim.grpc.send_bytes("UpdateAllocation", b"\xff\xff\xff\xff")
    status, _ = shim.expect_end("UpdateAllocation")
    assert status in {"INVALID_ARGUMENT", "INTERNAL"}
    si.check_books(shim)
    si.no_traceback()


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ("{", 400, ""),
        (json.dumps({"rmID": "RM", "colour": 1}), 422, "colour"),
        (json.dumps({"rmID": "RM", "nodes": [{"nodeID": 7.5}]}), 422, "nodeID"),
        (json.dumps({"rmID": "rm-unheard"}), 404, "rm-unheard"),
    ],
    ids=["no JSON", "unknown field", "wrong type", "not registered"],
)
def test_a_bad_request_over_http_is_answered_with_a_problem_that_names_the_fault(
    si: Served, body: str, status: int, named: str
) -> None:
    shim = scene(si.twin("newest", "rm"))
    body = body.replace("RM", shim.rm_id)
    connection = http.client.HTTPConnection("127.0.0.1", si.process.port, timeout=30)
    connection.request("POST", "/si/v1/UpdateNode", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    problem = json.loads(response.read())
    connection.close()
    assert response.status == problem["status"] == status
    assert response.headers["Content-Type"] == "application/problem+json"
    assert named in json.dumps(problem)
    assert status != 404 or problem["code"] == "not_registered"
    si.check_books()
    si.no_traceback()


@EACH
def test_a_line_over_http_has_the_fields_of_its_dialect_and_the_row(si: Served, dialect: str) -> None:
    shim = scene(si.twin(dialect, "rm"))
    grant(shim, *pods(1))
    shim.release(shim.held[0])
    shim.expect(RELEASED)
    shim.settle()
    assert shim.responses
    for method, response in shim.responses:
        said = {name: value for name, value in response.items() if name != ROW}
        assert said != response
        wire(dialect).encode(shim.dialect.methods[method].response, said)  # refuses what it does not know
    si.check_books(shim)


def test_responses_over_http_resume_after_a_row(si: Served) -> None:
    first = scene(si.twin("newest", "rm"))
    told = [answer for pod in pods(4) for answer in grant(first, pod)]
    first.close()
    second = si.twin("newest", "rm")
    second.listen(after=told[1].row)
    assert [second.expect(NEW).key for _ in told[2:]] == [answer.key for answer in told[2:]]
    second.settle()
    assert second.untaken(NEW) == []
