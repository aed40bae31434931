"""One place that cannot be as it was seen is not used; the others of its manager are."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from external_providers.base import AbsurdError, ExternalApplication, Place
from rm_service.ledger.ledger import Ledger
from rm_service.services.external.breaker import BreakerState
from rm_service.services.external.feeds import ProviderState
from rm_service.services.external.fetching import FaultKind
from rm_service.services.external.refresher import Refresher
from rm_service.services.external.snapshots import Snapshot
from tests.services.external.scripted import FakeTime, ScriptedProvider, place, tick
from tests.services.external.shelf import breaker, last_fault, state
from tests.services.external.test_observing import MEMORY, World, refusal


def names(refresher: Refresher) -> list[str]:
    snapshot = refresher.snapshots.latest("scripted", "c1")
    assert snapshot is not None
    return list(snapshot.places)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (place("b", used=-1), "place b: used.scripted.memory is below 0"),
        (replace(place("b"), fault="vcores are below 0"), "place b: vcores are below 0"),
        (Place("b", {"gpu": 1}, {}), "place b: total: 'gpu' is nothing that scripted counts"),
        (place("b\n"), "the name of a place cannot be"),
    ],
)
def test_the_others_go_on_and_the_reason_is_shown(
    refresher: Refresher, plugin: ScriptedProvider, time: FakeTime, bad: Place, reason: str
) -> None:
    looks = 5
    plugin.says("c1", *[[place("a"), bad, place("c")]] * looks)
    for _ in range(looks):
        tick(refresher)
        time.passes(10)
    assert names(refresher) == ["a", "c"]
    kind, told = last_fault(refresher)
    assert (kind, told.startswith(reason)) == (FaultKind.QUARANTINED, True)
    assert (state(refresher), breaker(refresher)) == (ProviderState.QUARANTINED, BreakerState.CLOSED)
    tick(refresher)
    assert state(refresher) is ProviderState.OK


def test_a_plugin_may_say_that_all_of_an_answer_cannot_be(
    refresher: Refresher, plugin: ScriptedProvider, time: FakeTime
) -> None:
    tick(refresher)
    plugin.says("c1", *[AbsurdError("the cluster has -1 of memory")] * 5)
    for _ in range(5):
        time.passes(10)
        tick(refresher)
    assert last_fault(refresher) == (FaultKind.QUARANTINED, "the cluster has -1 of memory")
    assert (names(refresher), breaker(refresher)) == (["root"], BreakerState.CLOSED)


@pytest.mark.parametrize(
    "bad",
    [
        ExternalApplication("bad", "root", {"scripted.memory": -1}),
        ExternalApplication("bad", "root", {}, fault="it holds less than nothing"),
    ],
)
def test_an_application_that_cannot_be_is_left_out_alone(
    refresher: Refresher, plugin: ScriptedProvider, bad: ExternalApplication
) -> None:
    good = ExternalApplication("good", "root", {"scripted.memory": 1})
    plugin.script("c1").applications = [bad, good]
    tick(refresher)
    snapshot = refresher.snapshots.latest("scripted", "c1")
    assert snapshot is not None
    assert (snapshot.applications, names(refresher)) == ((good,), ["root"])
    assert last_fault(refresher)[1].startswith("application bad: ")


def test_of_many_the_first_are_told_and_the_number_of_the_others(
    refresher: Refresher, plugin: ScriptedProvider
) -> None:
    plugin.says("c1", [place("good"), *[place(f"p{number}", used=-1) for number in range(8)]])
    tick(refresher)
    told = last_fault(refresher)[1]
    assert (told.count("is below 0"), told.endswith(" (and 3 more)")) == (5, True)


class TestInTheLedger:
    def look(self, world: World, places: Sequence[Place], *quarantined: str) -> None:
        world.followed.time += 10
        snapshot = Snapshot(
            {each.name: each for each in places},
            (),
            0,
            world.followed.time,
            0.0,
            quarantined=frozenset(quarantined),
        )
        world.followed.snapshots.put(("yarn", "c1"), snapshot)
        world.observing.refreshed(world.followed.sources[0], snapshot)

    @pytest.fixture
    def world(self, ledger: Ledger) -> World:
        return World(ledger)

    def test_what_was_seen_of_the_place_before_stays(self, world: World) -> None:
        world.look({"root": 40, "a": 40})
        world.granted(10)
        self.look(world, [Place("root", {MEMORY: 100}, {MEMORY: 40})], "a")
        assert world.left() == 50
        world.granted(50)
        assert refusal(world.ask(1)).shortfalls[0].reason == "short"

    def test_where_nothing_was_seen_before_nothing_is_granted(self, world: World) -> None:
        self.look(world, [Place("root", {MEMORY: 100}, {MEMORY: 40})], "a")
        assert "quarantined" in [each.reason for each in refusal(world.ask(1)).shortfalls]
