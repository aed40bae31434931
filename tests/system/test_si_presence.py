"""A resource manager that is away: what it holds stays, nothing new is granted; one day it is given up."""

import pytest

from tests.si.answers import NEW
from tests.si.scenes import ALL, NODE, add_application, grant, pods, scene
from tests.si.served import Served, StartSi
from tests.si.shim import Shim
from tests.system.client import until

pytestmark = pytest.mark.system

PAUSE = 1  # seconds
STOP = 3
LONG = 3600


@pytest.fixture
def pausing(start_si: StartSi, sqlite_url: str) -> Served:
    """A service that pauses whoever is silent for a second, and stops nobody."""
    return start_si(sqlite_url, sweep_seconds=1, si_pause_seconds=PAUSE, si_stop_seconds=LONG)


@pytest.fixture(params=["keep", "release"])
def stopping(request: pytest.FixtureRequest, start_si: StartSi, sqlite_url: str) -> tuple[Served, str]:
    """One that stops whoever is silent for some seconds, and what becomes of what that one holds."""
    what = str(request.param)
    times = {"si_pause_seconds": PAUSE, "si_stop_seconds": STOP}
    return start_si(sqlite_url, sweep_seconds=1, **times, si_when_stopped=what), what


def state(si: Served, rm_id: str) -> str:
    """Whether the service takes it to be there, as HTTP shows it."""
    [found] = [each for each in si.client.get("/resource-managers")["items"] if each["id"] == rm_id]
    return str(found["state"])


def leave(si: Served, shim: Shim, *, until_it_is: str) -> None:
    """Close every stream, and wait until the service has noticed."""
    shim.close()
    until(lambda: state(si, shim.rm_id) == until_it_is, f"it is {until_it_is}")


@pytest.mark.parametrize("dialect", ALL)
def test_nothing_is_granted_to_one_that_is_away_until_it_is_back(pausing: Served, dialect: str) -> None:
    shim = scene(pausing.shim(dialect, "rm"))
    other = scene(pausing.shim("newest", "other"))
    grant(shim, *pods(7))
    shim.ask(*pods(2, name="later"))
    shim.expect(NEW, key="later-0")
    shim.settle()
    assert state(pausing, "rm") == "running"
    leave(pausing, shim, until_it_is="paused")
    [ending] = [each for each in pausing.members("rm", "used") if each["tags"]["allocationKey"] == "pod-0"]
    pausing.client.post(f"/applications/{ending['id']}/release")
    grant(other, *pods(1))  # what was freed has been looked at: it was in an earlier commit
    assert pausing.waiting("rm") == {"later-1"}
    assert len(pausing.members("rm", "used")) == 7, "what it holds is kept"
    assert state(pausing, "other") == "running"
    shim.reconnect()
    shim.listen()
    shim.expect(NEW, key="later-1")
    until(lambda: state(pausing, "rm") == "running", "it is there again")
    shim.settle()
    pausing.check_books(shim, other)


def test_one_that_only_listens_is_there(pausing: Served) -> None:
    """Longer than it takes to notice that another one has left."""
    shim, other = scene(pausing.shim("seed", "rm")), scene(pausing.shim("newest", "other"))
    leave(pausing, other, until_it_is="paused")
    grant(shim, *pods(1))
    assert state(pausing, "rm") == "running"
    pausing.check_books(shim)


def test_one_that_only_asks_over_http_is_back_by_asking(pausing: Served) -> None:
    shim = pausing.twin("newest", "rm")
    shim.register()
    shim.add_node("node-1", NODE)
    shim.add_application("app-1")
    until(lambda: state(pausing, "rm") == "paused", "it is paused")
    shim.ask(*pods(1))
    until(lambda: not pausing.waiting("rm") and pausing.members("rm", "used"), "its ask is granted")
    shim.listen()
    shim.settle()
    pausing.check_books(shim)


def test_one_that_was_stopped_registers_again_and_what_it_held_is_kept_or_released(
    stopping: tuple[Served, str],
) -> None:
    si, what = stopping
    shim = scene(si.shim("seed", "rm"))
    grant(shim, *pods(3))
    leave(si, shim, until_it_is="stopped")
    if what == "release":
        until(lambda: not si.members("rm", "used") and not si.nodes("rm"), "all of it is given back")
    else:
        assert len(si.members("rm", "used")) == 3
    shim.reconnect()
    shim.listen()
    status, reason = shim.expect_end("UpdateAllocation")
    assert (status, 'RmID "rm" not registered' in reason) == ("FAILED_PRECONDITION", True)
    if what == "release":
        shim.held.clear()
    shim.reconnect()
    shim.start()
    assert state(si, "rm") == "running"
    add_application(shim)
    shim.add_known_node("node-1", NODE)
    grant(shim, *pods(2, name="more"))
    shim.settle()
    assert len(shim.held) == (2 if what == "release" else 5)
    si.check_books(shim)
