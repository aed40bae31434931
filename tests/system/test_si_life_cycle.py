"""Three generations of shims at once on one service, through its death, and the same over HTTP."""

import contextlib
from collections import Counter

import pytest

from tests.si.answers import ACCEPTED_APPLICATION, NEW, RELEASED, STOPPED_BY_RM, UPDATED_APPLICATION
from tests.si.dialects import Ask
from tests.si.scenes import ALL, APP, NODE, POD, add_application, grant, pods, scene, together
from tests.si.served import Served, StartSi
from tests.si.shim import Shim
from tests.si.transports import RefusedError
from tests.system.client import until

pytestmark = pytest.mark.system

NODES = ("node-1", "node-2")
LATE = [Ask(key=f"late-{n}", app=APP, resource={"memory": 100, "vcore": 10}) for n in range(20)]
GRACE = 3  # seconds


def begin(shim: Shim) -> None:
    """Register, bring nodes and an application, have pods granted and give two of them back."""
    scene(shim, nodes=NODES)
    for new in grant(shim, *pods(6)):
        assert new.resource == POD
        assert new.node in NODES
        assert bool(new.id) is shim.dialect.allocation_has_id
        assert new.queue == ("root.default" if shim.dialect.name == "old" else "")
    shim.expect(UPDATED_APPLICATION, app=APP, state="Accepted")
    shim.expect(UPDATED_APPLICATION, app=APP, state="Running")
    for allocation in shim.held[:2]:
        shim.release(allocation)
        released = shim.expect(RELEASED, app=APP, termination=STOPPED_BY_RM)
        assert released.text == "allocation remove as per RM request"
        assert released.partition == f"[{shim.rm_id}]default"
    assert len(shim.held) == 4
    shim.settle()


def want_more_than_fits(shim: Shim) -> None:
    """Ask for almost a whole node that is partly taken."""
    required = {"yunikorn.apache.org/requiredNode": shim.held[0].node}
    shim.ask(Ask(key="large", app=APP, resource={"memory": 15_000, "vcore": 1_000}, tags=required))
    shim.settle()
    assert shim.untaken(NEW) == []


def hurry(shim: Shim) -> None:
    """Ask for more, whether an answer comes or not."""
    with contextlib.suppress(RefusedError):
        shim.ask(*LATE)


def report_again(shim: Shim) -> None:
    """What an RM does when the scheduler was away: register, and tell all that it knows."""
    shim.reconnect()
    shim.start()
    shim.add_application(APP)
    shim.expect(ACCEPTED_APPLICATION, app=APP)
    for node in NODES:
        shim.add_known_node(node, NODE)
    shim.ask(*shim.asked.values())
    shim.settle()


def finish(shim: Shim) -> None:
    """Make room for what waits, see it come, and end the application."""
    node = next(held for held in shim.held if held.key.startswith("pod")).node
    for allocation in [held for held in shim.held if held.node == node]:
        shim.release(allocation)
    large = shim.asked[APP, "large"]
    wanted = large.tags["yunikorn.apache.org/requiredNode"]
    for allocation in [held for held in shim.held if held.node == wanted]:
        shim.release(allocation)
    assert shim.expect(NEW, key="large").node == wanted
    shim.remove_application(APP)
    removed = shim.expect(RELEASED, app=APP, text=f"Application {APP} Removed")
    assert removed.termination == STOPPED_BY_RM
    until(lambda: not shim.held, f"{shim.rm_id} holds nothing")


def has_what_it_asked_late(shim: Shim) -> bool:
    return {ask.key for ask in LATE} <= {held.key for held in shim.held}


def live_through_a_crash(si: Served, shims: list[Shim]) -> None:
    together(shims, begin)
    si.check_books(*shims)
    together(shims, want_more_than_fits)
    for shim in shims:
        assert si.waiting(shim.rm_id) == {"large"}
    together(shims, hurry)
    si.process.kill()
    si.client.close()
    si.process.start()
    before = {shim.rm_id: [held for held in shim.held if held.key.startswith("pod")] for shim in shims}
    together(shims, report_again)
    until(lambda: all(has_what_it_asked_late(shim) for shim in shims), "what was asked late is granted")
    si.until_agreed(*shims, seconds=GRACE + 20)
    for shim in shims:
        assert si.waiting(shim.rm_id) == {"large"}
        assert [held for held in shim.held if held.key.startswith("pod")] == before[shim.rm_id]
        assert max(Counter(held.key for held in shim.held).values()) == 1
    together(shims, finish)
    si.check_books(*shims)
    for shim in shims:
        assert not si.members(shim.rm_id, "used")
        assert not si.waiting(shim.rm_id)
    si.no_traceback()


@pytest.mark.timeout(240)
def test_three_dialects_at_once_lose_and_double_nothing_when_the_service_is_killed(
    database_url: str, start_si: StartSi
) -> None:
    si = start_si(database_url, si_resync_seconds=GRACE)
    live_through_a_crash(si, [si.shim(dialect, f"rm-{dialect}") for dialect in ALL])


@pytest.mark.timeout(240)
def test_three_dialects_at_once_live_the_same_life_over_http(sqlite_url: str, start_si: StartSi) -> None:
    si = start_si(sqlite_url, si_resync_seconds=GRACE)
    live_through_a_crash(si, [si.twin(dialect, f"rm-{dialect}") for dialect in ALL])


def test_work_of_the_scheduler_interface_is_counted_by_user_queue_and_application(si: Served) -> None:
    shim = scene(si.shim("newest", "rm"))
    grant(shim, *pods(2))
    add_application(shim, "app-2", queue="root.default", user="bob")
    grant(shim, *pods(1, app="app-2"))
    used = {
        by: {row["tags"][by]: row["used"]["memory"] for row in si.client.get(f"/usage?by={by}")["rows"]}
        for by in ("user", "app", "queue")
    }
    assert used["user"] == {"alice": 4_000, "bob": 2_000}
    assert used["app"] == {APP: 4_000, "app-2": 2_000}
    assert used["queue"]["root.default"] == 6_000
    si.check_books(shim)
