"""What an RM says wrongly is answered as the reference answers it, and changes nothing."""

import re
from dataclasses import dataclass

import pytest

from tests.si.answers import (
    ACCEPTED_APPLICATION,
    ACCEPTED_NODE,
    NEW,
    REJECTED_ALLOCATION,
    REJECTED_APPLICATION,
    REJECTED_ASK,
    REJECTED_NODE,
    RELEASED,
    RELEASED_ASK,
    Allocation,
    Answer,
)
from tests.si.dialects import (
    CREATE,
    DECOMISSION,
    DRAIN_NODE,
    DRAIN_TO_SCHEDULABLE,
    UPDATE,
    Ask,
    Node,
)
from tests.si.scenes import ALL, APP, NODE, POD, add_application, grant, pods, scene
from tests.si.served import Served
from tests.si.shim import Shim
from tests.si.wire import Json

pytestmark = pytest.mark.system

EACH = pytest.mark.parametrize("dialect", ALL)
NOTHING = (NEW, RELEASED, RELEASED_ASK, REJECTED_ASK, REJECTED_ALLOCATION)


@dataclass(frozen=True, kw_only=True)
class BadAsk:
    ask: Ask
    reason: str
    """A regular expression, RM for the RM's name; the older dialects speak of an invalid ask."""
    dialects: tuple[str, ...] = ALL


BAD_ASKS = {
    "unknown application": BadAsk(
        ask=Ask(key="bad", app="nobody", resource=POD), reason="failed to find application nobody"
    ),
    "unknown partition": BadAsk(
        ask=Ask(key="bad", app=APP, partition="nowhere", resource=POD),
        reason=rf"[Ff]ailed to find partition \[RM\]nowhere, for application {APP} and allocation bad",
    ),
    "no resource": BadAsk(ask=Ask(key="bad", app=APP), reason="contains no resources|invalid ask"),
    "only zeros": BadAsk(
        ask=Ask(key="bad", app=APP, resource={"memory": 0}), reason="contains no resources|invalid ask"
    ),
    "negative": BadAsk(
        ask=Ask(key="bad", app=APP, resource={"memory": 10, "vcore": -1}),
        reason="contains negative resources|invalid ask",
    ),
    "none of it": BadAsk(
        ask=Ask(key="bad", app=APP, resource=POD, count=0), reason="invalid ask", dialects=("old", "seed")
    ),
    "fewer than none": BadAsk(
        ask=Ask(key="bad", app=APP, resource=POD, count=-1), reason="invalid ask", dialects=("old", "seed")
    ),
    "unknown priority class": BadAsk(
        ask=Ask(key="bad", app=APP, resource=POD, priority="royal"), reason="royal", dialects=("old",)
    ),
    "no key": BadAsk(ask=Ask(key="", app=APP, resource=POD), reason="."),
}


def assert_says(shim: Shim, rejected: Answer, reason: str, case: str) -> None:
    """The answer gives a reason that matches."""
    assert re.search(reason.replace("RM", re.escape(shim.rm_id)), rejected.text), (case, rejected.text)


@EACH
def test_bad_asks_are_rejected_with_the_reason(si: Served, dialect: str) -> None:
    shim = scene(si.shim(dialect, "rm"))
    for name, bad in BAD_ASKS.items():
        if dialect in bad.dialects:
            shim.ask(bad.ask)
            rejected = shim.expect(shim.dialect.rejected_ask, key=bad.ask.key, app=bad.ask.app)
            assert_says(shim, rejected, bad.reason, name)
    grant(shim, *pods(1))
    shim.settle()
    assert shim.untaken(*NOTHING) == []
    assert si.waiting(shim.rm_id) == set()
    si.check_books(shim)
    si.no_traceback()


BAD_NODES = {
    "a name that is taken": (
        Node(name="node-1", resource={"memory": 1}),
        r"(?s)^failure while adding new node, .*\[RM\]default has an existing node node-1, node name must be",
    ),
    "an unknown partition": (
        Node(name="node-x", resource=NODE, attributes={"si/node-partition": "nowhere"}),
        r"failed to find partition \[RM\]nowhere for new node node-x",
    ),
    "a negative amount": (Node(name="node-x", resource={"memory": -1}), "negative"),
    "no name": (Node(name="", resource=NODE), "."),
    "an update of an unknown one": (Node(name="node-x", action=UPDATE, resource=NODE), "."),
    "a drain of an unknown one": (Node(name="node-x", action=DRAIN_NODE), "."),
    "the end of an unknown one": (Node(name="node-x", action=DECOMISSION), "."),
    "an unknown one to be schedulable": (Node(name="node-x", action=DRAIN_TO_SCHEDULABLE), "."),
    "one to be schedulable that is": (Node(name="node-1", action=DRAIN_TO_SCHEDULABLE), "."),
}


@EACH
def test_bad_nodes_are_rejected_with_the_reason(si: Served, dialect: str) -> None:
    shim = scene(si.shim(dialect, "rm"))
    for name, (node, reason) in BAD_NODES.items():
        shim.send(*shim.dialect.nodes([node]))
        rejected = shim.expect(REJECTED_NODE, node=node.name)
        assert_says(shim, rejected, reason, name)
    assert {name: node["total"] for name, node in si.nodes(shim.rm_id).items()} == {"node-1": NODE}
    grant(shim, *pods(1))
    shim.settle()
    assert shim.untaken(REJECTED_NODE, ACCEPTED_NODE) == []
    si.check_books(shim)
    si.no_traceback()


BAD_APPLICATIONS: dict[str, tuple[Json, str]] = {
    "an unknown partition": (
        {"applicationID": "bad", "partitionName": "nowhere"},
        r"Failed to add application bad to partition \[RM\]nowhere, partition doesn't exist",
    ),
    "no user": ({"applicationID": "bad", "ugi": {"groups": ["staff"]}}, "empty user cannot resolve"),
    "a user name with an impossible character": (
        {"applicationID": "bad", "ugi": {"user": "alice\n", "groups": ["staff"]}},
        "invalid username, it contains invalid characters",
    ),
    "a name that is taken": (
        {"applicationID": APP},
        rf"adding application {APP} to partition \[RM\]default, but application already existed",
    ),
    "an impossible queue": ({"applicationID": "bad", "queueName": "root.a b!.c"}, "."),
    "an unknown gang style": ({"applicationID": "bad", "gangSchedulingStyle": "Hardest"}, "."),
    "no name": ({"applicationID": ""}, "."),
}


@EACH
def test_bad_applications_are_rejected_with_the_reason(si: Served, dialect: str) -> None:
    shim = scene(si.shim(dialect, "rm"))
    good = {"queueName": "root.default", "ugi": {"user": "alice", "groups": ["staff"]}}
    for name, (said, reason) in BAD_APPLICATIONS.items():
        shim.send(*shim.dialect.applications([good | said], []))
        rejected = shim.expect(REJECTED_APPLICATION, app=said["applicationID"])
        assert_says(shim, rejected, reason, name)
    grant(shim, *pods(1))
    shim.settle()
    assert shim.untaken(REJECTED_APPLICATION, ACCEPTED_APPLICATION) == []
    si.check_books(shim)
    si.no_traceback()


@EACH
def test_what_names_nothing_that_is_there_is_ignored(si: Served, dialect: str) -> None:
    shim = scene(si.shim(dialect, "rm"))
    [new] = grant(shim, *pods(1))
    unknown = "01890000-0000-7000-8000-000000000099" if shim.dialect.allocation_has_id else ""
    nothing = Allocation(app=APP, key="nothing", node="", resource={}, id=unknown)
    shim.release(nothing)
    shim.release(nothing, partition="nowhere")
    shim.release(Allocation(app="nobody", key="nothing", node="", resource={}, id=unknown))
    shim.release(Allocation(app=APP, key="pod-0", node="", resource={}, id=new.id), partition="nowhere")
    shim.release_all("nobody")
    shim.withdraw(APP, "nothing")
    shim.withdraw("nobody", "nothing")
    shim.remove_application("nobody")
    shim.settle()
    assert shim.untaken(*NOTHING, REJECTED_APPLICATION) == []
    si.check_books(shim)
    si.no_traceback()


@EACH
def test_the_same_key_again_replaces_what_is_pending_and_doubles_nothing(si: Served, dialect: str) -> None:
    shim = scene(si.shim(dialect, "rm"), nodes=())
    shim.ask(*pods(1))
    shim.ask(Ask(key="pod-0", app=APP, resource={"memory": 3_000, "vcore": 500}))
    shim.settle()
    assert len(si.members(shim.rm_id, "waiting")) == 1
    shim.add_node("node-1", NODE)
    assert shim.expect(NEW, key="pod-0").resource == {"memory": 3_000, "vcore": 500}
    shim.ask(Ask(key="pod-0", app=APP, resource={"memory": 3_000, "vcore": 500}))  # it has that already
    shim.settle()
    assert shim.untaken(NEW) == []
    si.check_books(shim)


@EACH
def test_the_same_key_of_two_applications_is_two_asks(si: Served, dialect: str) -> None:
    shim = scene(si.shim(dialect, "rm"))
    add_application(shim, "app-2")
    grant(shim, *pods(1), *pods(1, app="app-2"))
    shim.release(next(held for held in shim.held if held.app == APP))
    shim.expect(RELEASED, app=APP)
    shim.settle()
    assert [held.app for held in shim.held] == ["app-2"]
    si.check_books(shim)


@EACH
def test_an_ask_that_is_withdrawn_is_gone_without_an_answer(si: Served, dialect: str) -> None:
    shim = scene(si.shim(dialect, "rm"), nodes=())
    shim.ask(*pods(2))
    shim.withdraw(APP, "pod-0")
    shim.settle()
    assert si.waiting(shim.rm_id) == {"pod-1"}
    assert shim.untaken(*NOTHING) == []
    si.check_books(shim)


@pytest.mark.parametrize("dialect", ["old", "seed"])
def test_an_ask_is_not_withdrawn_without_its_partition(si: Served, dialect: str) -> None:
    shim = scene(si.shim(dialect, "rm"), nodes=())
    shim.ask(*pods(1))
    shim.withdraw(APP, "pod-0", partition="")
    assert "partition" in shim.expect(REJECTED_ASK, key="pod-0", app=APP).text
    shim.settle()
    assert si.waiting(shim.rm_id) == {"pod-0"}
    si.check_books(shim)


@EACH
def test_numbers_that_nobody_knows_are_taken_as_unknown(si: Served, dialect: str) -> None:
    shim = scene(si.shim(dialect, "rm"))
    grant(shim, *pods(2))
    shim.act_on_node("node-1", 77)
    shim.act_on_node("node-x", 77)
    shim.release(shim.held[0], termination=99)  # whatever the reason: it is released
    shim.expect(RELEASED, app=APP)
    grant(shim, *pods(1, name="later"))
    shim.settle()
    assert not shim.ends
    assert len(shim.held) == 2
    si.check_books(shim)
    si.no_traceback()


@pytest.mark.parametrize("dialect", ["seed", "newest"])
def test_a_recovered_allocation_that_fails_is_rejected_alone(si: Served, dialect: str) -> None:
    shim = scene(si.shim(dialect, "rm"))

    def running(key: str, node: str = "node-1", app: str = APP, number: int = 0) -> Allocation:
        known = f"01890000-0000-7000-8000-{number:012d}" if shim.dialect.allocation_has_id else ""
        return Allocation(app=app, key=key, node=node, resource=POD, id=known)

    bad = [
        (running("no-node", node="node-x", number=1), "failed to find node node-x"),
        (running("no-app", app="nobody", number=2), "failed to find application nobody"),
    ]
    good = running("good", number=3)
    shim.send(*shim.dialect.existing([*(each for each, _ in bad), good]))
    for each, reason in bad:
        assert reason in shim.expect(REJECTED_ALLOCATION, key=each.key, app=each.app).text
    shim.expect(NEW, key="good", node="node-1")  # an echo
    shim.settle()
    assert [held.key for held in shim.held] == ["good"]
    si.check_books(shim)


def test_an_old_rms_node_is_rejected_whole_when_an_allocation_on_it_fails(si: Served) -> None:
    shim: Shim = scene(si.shim("old", "rm"), nodes=())
    running = [
        Allocation(
            app=app, key=f"key-{n}", node="node-1", resource=POD, id=f"01890000-0000-7000-8000-{n:012d}"
        )
        for n, app in enumerate([APP, "nobody"])
    ]
    shim.add_node("node-1", NODE, existing=running)
    rejected = shim.expect(REJECTED_NODE, node="node-1")
    assert "nobody" in rejected.text
    shim.settle()
    assert shim.untaken(ACCEPTED_NODE) == []
    assert si.nodes(shim.rm_id) == {}
    si.check_books(shim)
    shim.send(*shim.dialect.nodes([Node(name="node-1", action=CREATE, resource=NODE)]))
    shim.expect(ACCEPTED_NODE, node="node-1")
