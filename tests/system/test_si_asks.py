"""Asks and what becomes of them: several of a key, priorities, sizes, tags, and what belongs to nobody."""

import pytest

from tests.si.answers import ACCEPTED_NODE, NEW, RELEASED, STOPPED_BY_RM, Allocation
from tests.si.dialects import Ask
from tests.si.scenes import ALL, APP, NODE, POD, WITH_CONFIG, WITH_UUID, add_application, grant, pods, scene
from tests.si.served import Served
from tests.system.client import until

pytestmark = pytest.mark.system

EACH = pytest.mark.parametrize("dialect", ALL)
SMALL = {"memory": 500, "vcore": 100}


@pytest.mark.parametrize("dialect", WITH_UUID)
def test_an_ask_for_several_is_several_allocations_of_one_key(si: Served, dialect: str) -> None:
    shim = scene(si.shim(dialect, "rm"))
    shim.ask(Ask(key="crowd", app=APP, resource=POD, count=10))
    granted = [shim.expect(NEW, key="crowd") for _ in range(8)]
    shim.settle()
    assert len({new.id for new in granted}) == 8
    assert len(si.members(shim.rm_id, "waiting")) == 2
    si.check_books(shim)
    shim.release(granted[0].allocation)
    assert shim.expect(NEW, key="crowd").id not in {new.id for new in granted}
    shim.settle()
    assert len(si.members(shim.rm_id, "waiting")) == 1
    si.check_books(shim)


def test_a_key_without_a_uuid_releases_all_that_have_it(si: Served) -> None:
    shim = scene(si.shim("seed", "rm"))
    shim.ask(Ask(key="crowd", app=APP, resource=POD, count=3), *pods(1))
    for key in ("crowd", "crowd", "crowd", "pod-0"):
        shim.expect(NEW, key=key)
    shim.send(
        "UpdateAllocation",
        {"releases": {"allocationsToRelease": [{"applicationID": APP, "allocationKey": "crowd"}]}},
    )
    until(lambda: [held.key for held in shim.held] == ["pod-0"], "the crowd is released")
    si.check_books(shim)


@EACH
def test_a_release_that_names_neither_key_nor_id_releases_all_of_the_application_only(
    si: Served, dialect: str
) -> None:
    shim = scene(si.shim(dialect, "rm"))
    add_application(shim, "app-2")
    grant(shim, *pods(3), *pods(1, app="app-2"), Ask(key="alone", resource=SMALL))
    shim.release_all(APP)
    for _ in range(3):
        shim.expect(RELEASED, app=APP, termination=STOPPED_BY_RM)
    shim.settle()
    assert {(held.app, held.key) for held in shim.held} == {("app-2", "pod-0"), ("", "alone")}
    si.check_books(shim)


@EACH
def test_an_allocation_may_belong_to_no_application(si: Served, dialect: str) -> None:
    shim = scene(si.shim(dialect, "rm"))
    [new] = grant(shim, Ask(key="alone", resource=SMALL))
    assert new.node == "node-1"
    assert si.nodes(shim.rm_id)["node-1"]["used"] == SMALL
    shim.release(new.allocation)
    shim.expect(RELEASED, app="", termination=STOPPED_BY_RM)
    shim.settle()
    assert not shim.held
    si.check_books(shim)


@EACH
def test_of_those_who_wait_the_higher_priority_comes_first_then_the_older(si: Served, dialect: str) -> None:
    shim = scene(si.shim(dialect, "rm"))
    grant(shim, *pods(8))
    for key, priority in [("low", -5), ("older", 10), ("younger", 10), ("plain", None)]:
        shim.ask(Ask(key=key, app=APP, resource=POD, priority=priority))
    shim.settle()
    assert si.waiting(shim.rm_id) == {"low", "older", "younger", "plain"}
    order = []
    for allocation in list(shim.held[:4]):
        shim.release(allocation)
        order.append(shim.expect(NEW).key)
    assert order == ["older", "younger", "plain", "low"]
    si.check_books(shim)


@EACH
def test_an_allocated_ask_with_another_size_is_resized(si: Served, dialect: str) -> None:
    shim = scene(si.shim(dialect, "rm"))
    [new] = grant(shim, *pods(1))
    shim.ask(Ask(key="pod-0", app=APP, resource=SMALL))
    shim.settle()
    assert shim.untaken(NEW, RELEASED) == []
    shim.held = [Allocation(app=APP, key="pod-0", node=new.node, resource=SMALL, id=new.id)]
    si.check_books(shim)


@EACH
def test_an_ask_that_requires_a_node_waits_for_that_one(si: Served, dialect: str) -> None:
    shim = scene(si.shim(dialect, "rm"), nodes=("node-1", "node-2"))
    there = {"yunikorn.apache.org/requiredNode": "node-2"}
    grant(shim, *(Ask(key=f"there-{n}", app=APP, resource=POD, tags=there) for n in range(8)))
    assert {held.node for held in shim.held} == {"node-2"}
    shim.ask(Ask(key="more", app=APP, resource=POD, tags=there))
    shim.settle()
    assert si.waiting(shim.rm_id) == {"more"}
    grant(shim, *pods(1))  # the other node is free for others
    assert shim.held[-1].node == "node-1"
    shim.release(shim.held[0])
    assert shim.expect(NEW, key="more").node == "node-2"
    si.check_books(shim)


@EACH
def test_tags_are_kept_and_never_change_what_is_charged(si: Served, dialect: str) -> None:
    shim = scene(si.shim(dialect, "rm"))
    team = f"blue{si.suffix}"
    tags = {"user": "mallory", "queue": "root.other", "node": "node-9", "team": team, "k8s.io/meta/x": "y"}
    grant(shim, Ask(key="tagged", app=APP, resource=POD, tags=tags))
    [member] = si.members(shim.rm_id, "used")
    assert member["tags"]["user"] == "alice"
    assert member["tags"]["queue"] == "root.default"
    assert member["tags"]["node"] == "node-1"
    assert member["tags"]["team"] == team
    assert member["tags"]["k8s.io/meta/x"] == "y"
    [row] = [row for row in si.client.get("/usage?by=team")["rows"] if row["tags"].get("team") == team]
    assert row["used"]["memory"] == POD["memory"]
    assert not [row for row in si.client.get("/usage?by=user")["rows"] if row["tags"]["user"] == "mallory"]
    si.check_books(shim)


@pytest.mark.parametrize("dialect", WITH_CONFIG)
def test_an_rm_may_share_the_ledgers_own_nodes_with_other_doors(si: Served, dialect: str) -> None:
    shim = si.shim(dialect, "rm").start(extra={"rm.nodePool": "shared"})
    host = f"host{si.suffix}"
    shim.add_node(host, NODE)
    shim.expect(ACCEPTED_NODE, node=host)
    add_application(shim)
    body = {"tags": {"user": "bob", "node": host}, "resource": {"memory": 15_000}}
    other = si.client.post("/applications", body, status=201)
    shim.ask(*pods(1))
    shim.settle()
    assert shim.untaken(NEW) == []
    si.client.post(f"/applications/{other['id']}/release")
    assert shim.expect(NEW, key="pod-0").node == host
    assert si.client.get(f"/nodes/{host}")["used"] == POD
    shim.decommission(host)
    shim.expect(RELEASED, app=APP)
    assert si.client.get("/audit")["consistent"]
