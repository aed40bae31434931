"""Live assignments of a node, seen from the other end of a socket, with a real ledger behind."""

import uuid
from collections.abc import Callable, Collection

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from rm_service.domain import operations as op
from rm_service.domain.operations import Placement
from rm_service.domain.outcomes import Done
from rm_service.domain.resource_classes import read_spec
from rm_service.facades.http import assignment_stream
from rm_service.facades.http.device_rendering import assignments_document
from rm_service.hosting.streams import Stream, StreamRequest
from rm_service.ledger.queries.assignments import Assignments, read_assignments
from rm_service.services.nodes import Nodes
from rm_service.services.resource_classes import ResourceClasses
from tests.facades.live import Client, Clients, Events, Message, Service, until

PARTITION = "[rm]default"
GPU = {"resourceSelector": [{"matchExpressions": [{"key": "Kind", "operator": "In", "values": ["gpu"]}]}]}


class Machines:
    """Nodes with eight GPUs each, which a class `gpu` selects."""

    def __init__(self, service: Service) -> None:
        self.ledger = service.ledger
        ResourceClasses(self.ledger).create("gpu", read_spec(GPU))

    def register(self, name: str, *applications: str, partition: str = "") -> None:
        devices = [{"name": "gpu0", "count": 8, "attributes": {"Kind": "gpu"}}]
        operation = op.RegisterNode(
            name,
            "Memory",
            {"memory": 1000},
            devices=devices,
            applications=applications,
            partition=partition,
        )
        assert isinstance(self.ledger.submit([operation])[0], Done)

    def grant(self, node: str, milli: int = 1000, count: int = 1, partition: str = "") -> list[str]:
        """Applications that each hold so much of the node's GPUs, granted in one commit; their ids."""
        tags = {"node": node} | ({"partition": partition} if partition else {})
        placement = Placement(partition=partition, classes=(("gpu", milli),))
        ids = [str(uuid.uuid4()) for _ in range(count)]
        outcomes = self.ledger.submit([op.Apply(each, tags, {}, placement=placement) for each in ids])
        assert all(isinstance(outcome, Done) for outcome in outcomes), outcomes
        return ids

    def submit(self, *operations: op.DecidedOperation) -> None:
        for outcome in self.ledger.submit(operations):
            assert isinstance(outcome, Done), outcome


@pytest.fixture
def machines(service: Service) -> Machines:
    """n1 and n2 are registered."""
    machines = Machines(service)
    machines.register("n1")
    machines.register("n2")
    return machines


@pytest.fixture
def follow(clients: Clients) -> Callable[..., Events]:
    return lambda node="n1", *rest, **headers: clients().assignments(node, *rest, **headers)


def holders(message: Message) -> set[str]:
    return {each["application"] for each in message.data["items"]}


def told_until(events: Events, wanted: Collection[str]) -> Message:
    """The first message in which exactly these applications hold something."""
    while holders(message := events.next()) != set(wanted):
        pass
    return message


class TestFollowing:
    def test_the_first_message_is_the_list(
        self, service: Service, machines: Machines, follow: Callable[..., Events]
    ) -> None:
        (holder,) = machines.grant("n1", 500)
        message = follow().next()
        found = Nodes(service.ledger, 60).assignments("n1")
        assert found is not None
        assert (message.event, message.id) == ("assignments", found.seq)
        assert message.data == assignments_document(found)
        (item,) = message.data["items"]
        assert (item["application"], item["state"]) == (holder, "locked")
        assert item["annotations"] == {"scheduler.alpha.kubernetes.io/resClass_gpu_gpu0": "500m"}

    @pytest.mark.usefixtures("machines")
    def test_where_nothing_is_held_the_list_is_empty(self, follow: Callable[..., Events]) -> None:
        assert follow().next().data["items"] == []

    def test_whatever_happens_to_who_holds_devices_is_told(
        self, machines: Machines, follow: Callable[..., Events]
    ) -> None:
        events = follow()
        assert events.next().data["items"] == []
        (holder,) = machines.grant("n1")
        assert holders(events.next()) == {holder}
        machines.submit(op.Use(holder))
        used = events.next()
        assert [each["state"] for each in used.data["items"]] == ["used"]
        machines.submit(op.Release(holder))
        released = events.next()
        assert (released.data["items"], released.data["seq"]) == ([], released.id)

    def test_what_is_done_in_one_commit_is_one_message(
        self, machines: Machines, follow: Callable[..., Events]
    ) -> None:
        events = follow()
        events.next()
        granted = machines.grant("n1", count=8)
        assert holders(events.next()) == set(granted)

    def test_who_holds_no_devices_is_not_told_of(
        self, service: Service, machines: Machines, follow: Callable[..., Events]
    ) -> None:
        events = follow()
        events.next()
        service.apply(node="n1")
        (holder,) = machines.grant("n1")
        assert holders(events.next()) == {holder}

    def test_numbers_only_grow(self, machines: Machines, follow: Callable[..., Events]) -> None:
        events = follow()
        numbers = [events.next().id]
        for _ in range(3):
            (holder,) = machines.grant("n1")
            numbers.append(told_until(events, {holder}).id)
            machines.submit(op.Release(holder))
            numbers.append(told_until(events, set()).id)
        assert numbers == sorted(set(numbers))

    def test_who_comes_back_gets_the_whole_list_whatever_it_saw_last(
        self, machines: Machines, follow: Callable[..., Events]
    ) -> None:
        granted = machines.grant("n1", count=2)
        for last in ("1", "999999", "nonsense"):
            assert holders(follow(Last_Event_ID=last).next()) == set(granted)

    def test_a_node_of_a_partition_is_named_with_it(
        self, machines: Machines, follow: Callable[..., Events]
    ) -> None:
        machines.register("n1", partition=PARTITION)
        own, theirs = follow("n1"), follow("n1", "?partition=%5Brm%5Ddefault")
        assert own.next().data["items"] == theirs.next().data["items"] == []
        (holder,) = machines.grant("n1", partition=PARTITION)
        assert holders(theirs.next()) == {holder}
        (of_own,) = machines.grant("n1")
        assert holders(own.next()) == {of_own}

    @pytest.mark.usefixtures("machines")
    def test_while_nothing_happens_it_says_that_it_lives(self, follow: Callable[..., Events]) -> None:
        events = follow()
        events.next()
        assert events.comment() == ": keep-alive"

    @pytest.mark.usefixtures("machines")
    def test_it_tells_caches_and_proxies_to_keep_out(self, follow: Callable[..., Events]) -> None:
        headers = follow().response.headers
        assert headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert headers["Cache-Control"] == "no-store"

    @pytest.mark.usefixtures("machines")
    def test_the_end_of_the_server_is_a_clean_end(
        self, service: Service, follow: Callable[..., Events]
    ) -> None:
        events = follow()
        events.next()
        service.server.stop(grace=1.0)
        assert events.ended()


class TestNodesThatGo:
    def test_a_removed_node_ends_the_stream_and_says_so(
        self, service: Service, machines: Machines, clients: Clients, follow: Callable[..., Events]
    ) -> None:
        events = follow()
        events.next()
        machines.grant("n1")
        Nodes(service.ledger, 60).remove("n1")
        while (message := events.next()).event == "assignments":
            pass
        assert (message.event, message.data) == ("node.removed", {"seq": message.id, "instance": "n1"})
        assert events.ended()
        status, problem = clients().problem("/api/v1/nodes/n1/assignments")
        assert (status, problem["code"]) == (404, "unknown_node")

    def test_a_node_that_is_registered_again_is_followed_again(
        self, service: Service, machines: Machines, follow: Callable[..., Events]
    ) -> None:
        first = follow()
        first.next()
        Nodes(service.ledger, 60).remove("n1")
        assert first.next().event == "node.removed"
        machines.register("n1")
        second = follow()
        assert second.next().data["items"] == []
        (holder,) = machines.grant("n1")
        assert holders(second.next()) == {holder}

    def test_what_a_lost_node_gave_back_is_gone_and_comes_back_when_the_node_reports_it(
        self, machines: Machines, follow: Callable[..., Events]
    ) -> None:
        (holder,) = machines.grant("n1")
        machines.submit(op.Use(holder))
        events = follow()
        assert holders(events.next()) == {holder}
        machines.submit(op.LoseNode("n1", "silent"))
        machines.submit(op.Lose(holder, "silent"))
        assert holders(events.next()) == set()
        machines.register("n1", holder)
        assert holders(events.next()) == {holder}


class TestCost:
    def test_only_nodes_on_which_something_moved_are_looked_at(
        self, service: Service, machines: Machines, follow: Callable[..., Events]
    ) -> None:
        first, second = follow("n1"), follow("n2")
        first.next()
        second.next()
        service.looks.clear()
        for _ in range(5):
            (holder,) = machines.grant("n2")
            told_until(second, {holder})
            machines.submit(op.Release(holder))
            told_until(second, set())
        of_n2 = service.looks[0]
        assert all(look == of_n2 for look in service.looks), "n1 was looked at too"
        (holder,) = machines.grant("n1")
        told_until(first, {holder})
        assert service.looks[-1] != of_n2

    def test_a_node_that_nobody_follows_is_not_looked_at(
        self, service: Service, machines: Machines, follow: Callable[..., Events]
    ) -> None:
        events = follow("n1")
        events.next()
        service.looks.clear()
        machines.grant("n2", count=8)
        (holder,) = machines.grant("n1")
        told_until(events, {holder})
        assert len(service.looks) == 1

    def test_all_streams_of_a_node_share_its_looks(
        self, service: Service, machines: Machines, follow: Callable[..., Events]
    ) -> None:
        streams = [follow("n1") for _ in range(10)]
        for events in streams:
            events.next()
        service.looks.clear()
        (holder,) = machines.grant("n1")
        assert len({told_until(events, {holder}).id for events in streams}) == 1
        assert len(service.looks) == 1

    @pytest.mark.usefixtures("machines")
    def test_after_the_last_stream_nothing_is_followed(self, service: Service, clients: Clients) -> None:
        client = clients()
        client.assignments("n1").next()
        client.connection.close()
        until(lambda: service.server.open_streams == 0)
        until(lambda: not service.assignments._looking)
        assert service.assignments._nodes == {}
        assert service.assignments._subscription is None

    def test_who_does_not_read_is_told_only_the_last_list(
        self, service: Service, machines: Machines, follow: Callable[..., Events]
    ) -> None:
        stream = open_stream(service, "n1")
        taken = stream.take()
        witness = follow("n1")
        witness.next()
        for count in range(3):
            machines.grant("n1")
            while len(witness.next().data["items"]) <= count:
                pass
        assert (taken.count(b"event: assignments"), stream.take()) == (1, b"")
        assert stream.on_drain is not None
        stream.on_drain()
        last = stream.take()
        assert last.count(b"event: assignments") == 1
        assert last.count(b'"application":') == 3
        stream.on_drain()
        assert stream.take() == b"", "it knows all"
        assert stream.on_close is not None
        stream.on_close()


class TestFaults:
    @pytest.fixture
    def failing(self, monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
        """Errors that the next looks raise."""
        errors: list[Exception] = []

        def read(connection: Connection, label_ids: Collection[int]) -> dict[int, Assignments]:
            if errors:
                raise errors.pop()
            return dict(read_assignments(connection, label_ids))

        monkeypatch.setattr(assignment_stream, "read_assignments", read)
        monkeypatch.setattr(assignment_stream, "RETRY_SECONDS", 0.01)
        return errors

    def test_a_database_that_was_away_is_looked_at_again(
        self, machines: Machines, follow: Callable[..., Events], failing: list[Exception]
    ) -> None:
        events = follow()
        events.next()
        failing.extend(OperationalError("select", {}, ValueError("away")) for _ in range(3))
        (holder,) = machines.grant("n1")
        assert holders(events.next()) == {holder}

    @pytest.mark.usefixtures("machines")
    def test_no_stream_begins_while_the_database_is_away(
        self, service: Service, clients: Clients, failing: list[Exception]
    ) -> None:
        failing.append(OperationalError("select", {}, ValueError("away")))
        status, problem = clients().problem("/api/v1/nodes/n1/assignments")
        assert (status, problem["code"]) == (503, "unavailable")
        assert service.assignments._nodes == {}

    def test_a_defect_ends_the_streams_of_its_node_and_no_others(
        self, machines: Machines, follow: Callable[..., Events], failing: list[Exception]
    ) -> None:
        broken, other = follow("n1"), follow("n2")
        broken.next()
        other.next()
        failing.append(ValueError("a defect"))
        machines.grant("n1")
        assert broken.ended()
        (holder,) = machines.grant("n2")
        assert holders(other.next()) == {holder}


class TestRefusals:
    @pytest.mark.parametrize(
        ("target", "status", "code"),
        [
            ("n9/assignments", 404, "unknown_node"),
            ("n1/assignments?partition=other", 404, "unknown_node"),
            ("n1/assignments?after=3", 422, "invalid_fields"),
            ("n1/assignments?partition=a&partition=a", 422, "invalid_fields"),
            ("n%01/assignments", 422, "invalid_fields"),
        ],
    )
    @pytest.mark.usefixtures("machines")
    def test_what_cannot_be_is_said(self, clients: Clients, target: str, status: int, code: str) -> None:
        found, problem = clients().problem(f"/api/v1/nodes/{target}")
        assert (found, problem["code"]) == (status, code)

    @pytest.mark.usefixtures("machines")
    def test_who_may_not_ask_is_told_so(self, clients: Clients) -> None:
        status, problem = clients().problem("/api/v1/nodes/n1/assignments", Authorization="Bearer wrong")
        assert (status, problem["code"]) == (401, "unauthorized")

    @pytest.mark.usefixtures("machines")
    def test_who_wants_json_is_not_streamed_to(self, clients: Clients) -> None:
        client: Client = clients()
        answer = client.get("/api/v1/nodes/n1/assignments", Accept="application/json")
        assert answer.status == 404, "it went to the application"


def open_stream(service: Service, node: str) -> Stream:
    """A stream that no server hands on."""
    headers = {"accept": "text/event-stream"}
    request = StreamRequest("GET", f"/api/v1/nodes/{node}/assignments", "", headers, b"", "127.0.0.1")
    assert service.assignments.route.matches(request)
    stream = service.assignments.route.open(request)
    assert isinstance(stream, Stream)
    return stream
