"""Nodes that come, are drained, shrink, are shared with others, and go."""

import pytest

from tests.si.answers import ACCEPTED_NODE, NEW, REJECTED_NODE, RELEASED, STOPPED_BY_RM, Allocation
from tests.si.dialects import CREATE_DRAIN, UPDATE, Ask, Node
from tests.si.scenes import ALL, APP, NODE, add_application, grant, pods, scene, together
from tests.si.served import Served
from tests.si.shim import Shim
from tests.system.client import until

pytestmark = pytest.mark.system

EACH = pytest.mark.parametrize("dialect", ALL)
HALF = {"memory": 8_000, "vcore": 1_000}


@EACH
def test_a_drained_node_takes_nothing_new_until_it_is_schedulable_again(si: Served, dialect: str) -> None:
    shim = scene(si.shim(dialect, "rm"))
    grant(shim, *pods(1))
    shim.drain("node-1")
    shim.settle()
    shim.ask(*pods(1, name="later"))
    shim.settle()
    assert shim.untaken(NEW, RELEASED, REJECTED_NODE) == []
    assert si.waiting(shim.rm_id) == {"later-0"}
    si.check_books(shim)
    shim.undrain("node-1")
    assert shim.expect(NEW, key="later-0").node == "node-1"
    si.check_books(shim)


@pytest.mark.parametrize("dialect", ["seed", "newest"])
def test_a_node_that_is_created_draining_takes_nothing_until_it_is_schedulable(
    si: Served, dialect: str
) -> None:
    shim = scene(si.shim(dialect, "rm"), nodes=())
    shim.add_node("node-1", NODE, action=CREATE_DRAIN)
    shim.expect(ACCEPTED_NODE, node="node-1")
    shim.ask(*pods(1))
    shim.settle()
    assert si.waiting(shim.rm_id) == {"pod-0"}
    shim.undrain("node-1")
    shim.expect(NEW, key="pod-0")
    si.check_books(shim)


@EACH
def test_what_ran_on_a_decommissioned_node_comes_back_as_released(si: Served, dialect: str) -> None:
    shim = scene(si.shim(dialect, "rm"), nodes=("node-1", "node-2"))
    grant(shim, *pods(6))
    gone = [held for held in shim.held if held.node == "node-1"]
    assert 0 < len(gone) < 6
    shim.decommission("node-1")
    for _ in gone:
        released = shim.expect(RELEASED, app=APP, termination=STOPPED_BY_RM)
        assert released.text == "Node node-1 Removed"
    shim.settle()
    assert {held.node for held in shim.held} == {"node-2"}
    assert len(shim.held) == 6 - len(gone)
    si.check_books(shim)
    shim.undrain("node-1")
    shim.expect(REJECTED_NODE, node="node-1")
    shim.add_node("node-1", NODE)
    shim.expect(ACCEPTED_NODE, node="node-1")
    si.check_books(shim)


@EACH
def test_a_node_that_grows_lets_in_what_waits_and_one_that_shrinks_is_over_its_limit(
    si: Served, dialect: str
) -> None:
    shim = scene(si.shim(dialect, "rm"))
    grant(shim, *pods(8))
    shim.ask(*pods(1, name="more"))
    shim.settle()
    assert si.waiting(shim.rm_id) == {"more-0"}
    shim.update_node("node-1", {"memory": 18_000, "vcore": 16_000})
    shim.expect(NEW, key="more-0")
    shim.update_node("node-1", {"memory": 10_000, "vcore": 16_000})
    shim.settle()
    assert shim.untaken(RELEASED, REJECTED_NODE) == []
    node = si.nodes(shim.rm_id)["node-1"]
    assert node["total"]["memory"] == 10_000
    assert node["over_limit"]
    si.check_books(shim)


@EACH
def test_what_others_occupy_is_not_given_away(si: Served, dialect: str) -> None:
    shim = si.shim(dialect, "rm").start()
    add_application(shim)
    others = {"memory": 12_000, "vcore": 0}
    if shim.dialect.node_holds_occupied:
        shim.add_node("node-1", NODE, occupied=others)
        shim.expect(ACCEPTED_NODE, node="node-1")
    else:
        shim.add_node("node-1", NODE)
        shim.expect(ACCEPTED_NODE, node="node-1")
        shim.occupy("node-1", others)
    shim.settle()
    shim.ask(Ask(key="half", app=APP, resource=HALF))
    shim.settle()
    assert si.waiting(shim.rm_id) == {"half"}
    if shim.dialect.node_holds_occupied:
        shim.update_node("node-1", NODE, occupied={"memory": 0, "vcore": 0})
    else:
        shim.release(Allocation(app="", key="foreign-node-1", node="node-1", resource={}))
    assert shim.expect(NEW, key="half").node == "node-1"
    assert len(shim.held) == 1
    si.check_books(shim)


@EACH
def test_a_node_that_is_not_ready_takes_nothing_new(si: Served, dialect: str) -> None:
    shim = si.shim(dialect, "rm").start()
    add_application(shim)
    shim.add_node("node-1", NODE, attributes={"ready": "false"})
    shim.expect(ACCEPTED_NODE, node="node-1")
    shim.ask(*pods(1))
    shim.settle()
    assert si.waiting(shim.rm_id) == {"pod-0"}
    ready = Node(name="node-1", action=UPDATE, resource=NODE, attributes={"ready": "true"})
    shim.send(*shim.dialect.nodes([ready]))
    shim.expect(NEW, key="pod-0")
    si.check_books(shim)


def test_several_rms_with_the_same_names_do_not_disturb_each_other(si: Served) -> None:
    shims = [si.shim(dialect, f"rm-{dialect}") for dialect in ALL]

    def fill(shim: Shim) -> None:
        scene(shim)
        grant(shim, *pods(8))

    together(shims, fill)
    for shim in shims:
        shim.ask(*pods(1, name="more"))
        shim.settle()
        assert si.waiting(shim.rm_id) == {"more-0"}
    first, *others = shims
    first.release(first.held[0])
    first.expect(NEW, key="more-0")
    first.decommission("node-1")
    until(lambda: not first.held, "the node's allocations are released")
    for shim in others:
        shim.settle()
        assert len(shim.held) == 8
        assert si.waiting(shim.rm_id) == {"more-0"}
    si.check_books(*shims)
