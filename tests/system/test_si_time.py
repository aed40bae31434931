"""What happens by itself: executions that take too long, and what an RM does not report again."""

import pytest

from tests.si.answers import (
    ACCEPTED_APPLICATION,
    ACCEPTED_NODE,
    NEW,
    RELEASED,
    STOPPED_BY_RM,
    TIMEOUT,
    Allocation,
)
from tests.si.dialects import Ask
from tests.si.scenes import ALL, APP, NODE, POD, WITH_UUID, add_application, grant, pods, scene
from tests.si.served import Served, StartSi
from tests.si.shim import Shim
from tests.system.client import until

pytestmark = pytest.mark.system

BRIEF = Ask(key="brief", app=APP, resource=POD, timeout_ms=500)
GRACE = 3  # seconds


@pytest.fixture
def quick(start_si: StartSi, sqlite_url: str) -> Served:
    """A service that looks every second, and forgives an RM's silence for three."""
    return start_si(sqlite_url, sweep_seconds=1, si_resync_seconds=GRACE)


@pytest.mark.parametrize("dialect", WITH_UUID)
def test_an_execution_that_takes_too_long_is_released_and_held_until_the_rm_has_stopped_it(
    quick: Served, dialect: str
) -> None:
    shim = scene(quick.shim(dialect, "rm"))
    grant(shim, BRIEF, *pods(1))
    released = shim.expect(RELEASED, app=APP, termination=TIMEOUT)
    assert [held.key for held in shim.held if held.id == released.id] == ["brief"]
    assert quick.nodes(shim.rm_id)["node-1"]["used"] == {"memory": 4_000, "vcore": 2_000}
    shim.confirm(released)
    shim.settle()
    assert [held.key for held in shim.held] == ["pod-0"]
    assert shim.untaken(RELEASED) == []
    quick.check_books(shim)


@pytest.mark.parametrize("dialect", WITH_UUID)
def test_a_release_that_an_rm_never_echoes_is_carried_out_after_a_while(
    start_si: StartSi, sqlite_url: str, dialect: str
) -> None:
    si = start_si(sqlite_url, sweep_seconds=1, si_echo_seconds=1)
    shim = scene(si.shim(dialect, "rm"))
    grant(shim, BRIEF)
    shim.expect(RELEASED, app=APP, termination=TIMEOUT)
    until(lambda: not si.members(shim.rm_id, "used"), "nothing leaks")
    shim.held.clear()
    si.check_books(shim)


@pytest.mark.parametrize("dialect", ALL)
def test_an_application_may_run_for_as_long_as_it_said(quick: Served, dialect: str) -> None:
    shim = scene(quick.shim(dialect, "rm"))
    shim.add_application("brief", timeout_ms=500)
    shim.expect(ACCEPTED_APPLICATION, app="brief")
    grant(shim, *pods(1), *pods(1, app="brief"))
    released = shim.expect(RELEASED, app="brief", termination=TIMEOUT)
    shim.confirm(released)
    shim.settle()
    assert {held.app for held in shim.held} == {APP}
    quick.check_books(shim)


def again(shim: Shim, extra: dict[str, str] | None = None) -> None:
    """Register once more and report the application, the node, and what the book holds."""
    shim.reconnect()
    shim.start(extra=extra)
    add_application(shim)
    shim.add_known_node("node-1", NODE)
    shim.settle()


@pytest.mark.parametrize("dialect", ALL)
def test_what_is_not_reported_again_is_released_after_the_grace_and_the_rest_is_kept(
    quick: Served, dialect: str
) -> None:
    shim = scene(quick.shim(dialect, "rm"))
    grant(shim, *pods(4))
    identities = {each["tags"]["allocationKey"]: each["id"] for each in quick.members(shim.rm_id, "used")}
    lost = shim.held.pop()
    again(shim)
    assert len(shim.held) == 3
    assert len(quick.members(shim.rm_id, "used")) == 4  # it may still report it
    quick.until_agreed(shim, seconds=GRACE + 10)
    shim.expect(RELEASED, app=APP, termination=STOPPED_BY_RM)
    kept = {each["tags"]["allocationKey"]: each["id"] for each in quick.members(shim.rm_id, "used")}
    assert kept == {key: identities[key] for key in kept}
    assert lost.key not in kept
    quick.check_books(shim)


@pytest.mark.parametrize("dialect", ALL)
def test_what_is_reported_again_and_was_not_known_is_booked(quick: Served, dialect: str) -> None:
    shim = scene(quick.shim(dialect, "rm"))
    grant(shim, *pods(1))
    known = "01890000-0000-7000-8000-000000000001" if shim.dialect.allocation_has_id else ""
    shim.held.append(Allocation(app=APP, key="elsewhere", node="node-1", resource=POD, id=known))
    again(shim)
    quick.check_books(shim)


def test_an_rm_may_ask_for_a_clean_slate(quick: Served) -> None:
    shim = scene(quick.shim("newest", "rm"))
    grant(shim, *pods(3))
    shim.held.clear()
    shim.reconnect()
    shim.start(extra={"rm.resync": "wipe"})
    until(lambda: not quick.members(shim.rm_id, "used"), "nothing of before is left", seconds=GRACE - 1)
    shim.add_node("node-1", NODE)
    shim.expect(ACCEPTED_NODE, node="node-1")
    add_application(shim)
    grant(shim, *pods(1))
    shim.settle()
    assert shim.untaken(NEW) == []
    quick.check_books(shim)
