"""Providers are looked at ahead of need, and once however many ask."""

from collections.abc import Sequence
from threading import Event

from external_providers.base import ExternalApplication, Place
from rm_service.services.external.feeds import ProviderState
from rm_service.services.external.refresher import Refresher
from rm_service.services.external.snapshots import Snapshot
from rm_service.services.external.sources import Source
from tests.services.external.scripted import (
    IDENTITY,
    WAIT,
    FakeTime,
    Gate,
    ScriptedProvider,
    all_calls_end,
    place,
    tick,
)
from tests.services.external.shelf import Shelf, failure, state


def test_a_provider_is_looked_at_at_once_and_then_at_its_interval(
    refresher: Refresher, plugin: ScriptedProvider, time: FakeTime
) -> None:
    tick(refresher)
    looks = plugin.script("c1").asked
    assert looks.count("places") == 1
    time.passes(9)
    tick(refresher)
    assert looks.count("places") == 1
    time.passes(1)
    tick(refresher)
    assert looks.count("places") == 2


def test_applications_are_asked_before_places_and_the_age_counts_from_there(
    refresher: Refresher, plugin: ScriptedProvider, time: FakeTime
) -> None:
    plugin.script("c1").applications = [ExternalApplication("a1", "root", {"scripted.memory": 4})]

    def slowly() -> Sequence[Place]:
        time.passes(3)
        return [place()]

    plugin.says("c1", slowly)
    tick(refresher)
    assert plugin.script("c1").asked[:2] == ["applications", "places"]
    snapshot = refresher.snapshots.latest("scripted", "c1")
    assert snapshot is not None
    assert (snapshot.at, snapshot.seconds) == (1_000_000_000, 3.0)
    assert [each.id for each in snapshot.applications] == ["a1"]
    time.passes(4)
    assert refresher.snapshots.age(snapshot) == 7.0
    assert refresher.snapshots.age_in_microseconds(snapshot) == 7_000_000


def test_however_many_ask_there_is_one_fetch(refresher: Refresher, plugin: ScriptedProvider) -> None:
    gate = Gate()
    plugin.says("c1", gate)
    refresher.tick()
    assert gate.reached.wait(WAIT)
    asked = [refresher.ask("scripted", "c1") for _ in range(100)]
    gate.opened.set()
    assert {id(future.result(WAIT)) for future in asked} == {id(asked[0].result())}
    assert plugin.script("c1").asked.count("places") == 1


def test_who_asks_between_two_looks_gets_a_new_one(
    refresher: Refresher, plugin: ScriptedProvider, time: FakeTime
) -> None:
    tick(refresher)
    time.passes(1)
    plugin.says("c1", [place(used=50)])
    snapshot = refresher.ask("scripted", "c1").result(WAIT)
    assert snapshot.places["root"].used == {"scripted.memory": 50}


def test_who_asks_for_a_provider_that_is_not_there_is_told_so(refresher: Refresher) -> None:
    assert failure(refresher.ask("scripted", "c9")) == "no provider scripted/c9"


def test_fifty_clusters_are_looked_at_side_by_side(
    refresher: Refresher, shelf: Shelf, plugin: ScriptedProvider
) -> None:
    gates = {f"k{number}": Gate() for number in range(50)}
    for name, gate in gates.items():
        shelf.put(name)
        plugin.says(name, gate)
    refresher.tick()
    assert all(gate.reached.wait(WAIT) for gate in gates.values())
    for gate in gates.values():
        gate.opened.set()
    all_calls_end(refresher)
    assert {state(refresher, name) for name in gates} == {ProviderState.OK}


def test_only_so_many_are_asked_at_a_time_and_the_next_one_as_soon_as_there_is_room(
    shelf: Shelf, plugin: ScriptedProvider, time: FakeTime
) -> None:
    refresher = Refresher(shelf, time.clocks, max_calls=1)  # type: ignore[arg-type]
    shelf.put("c2")
    first, second = Gate(), Gate()
    plugin.says("c1", first)
    plugin.says("c2", second)
    refresher.tick()
    assert first.reached.wait(WAIT)
    refresher.tick()
    assert not second.reached.is_set()
    first.opened.set()
    assert second.reached.wait(WAIT)
    second.opened.set()
    all_calls_end(refresher)


def test_snapshots_are_told_once_each_and_a_listener_that_fails_disturbs_nothing(
    refresher: Refresher, time: FakeTime
) -> None:
    told: list[tuple[str, Snapshot]] = []

    def fails(_source: Source, _snapshot: Snapshot) -> None:
        raise RuntimeError("the listener's own")

    refresher.on_snapshot += [fails, lambda source, snapshot: told.append((source.stored.key, snapshot))]
    tick(refresher)
    time.passes(10)
    tick(refresher)
    assert [key for key, _ in told] == ["scripted/c1", "scripted/c1"]
    assert told[1][1] is refresher.snapshots.latest("scripted", "c1")


def test_handing_on_is_never_given_up(refresher: Refresher, time: FakeTime) -> None:
    reached, go_on = Event(), Event()

    def slowly(_source: Source, _snapshot: Snapshot) -> None:
        reached.set()
        assert go_on.wait(WAIT)

    refresher.on_snapshot.append(slowly)
    refresher.tick()
    assert reached.wait(WAIT)
    time.passes(1000)
    refresher.tick()
    assert state(refresher) is ProviderState.OK
    go_on.set()
    all_calls_end(refresher)


def test_a_changed_address_forgets_what_was_seen_and_other_changes_do_not(
    refresher: Refresher, shelf: Shelf, plugin: ScriptedProvider
) -> None:
    tick(refresher)
    shelf.put("c1", refresh_seconds=20)
    gate = Gate()
    plugin.says("c1", gate)
    refresher.tick()
    assert gate.reached.wait(WAIT)  # looked at anew at once
    status = refresher.status("scripted", "c1")
    assert status is not None
    assert (status.stored.refresh_seconds, status.snapshot is not None) == (20, True)
    waiting = refresher.ask("scripted", "c1")
    shelf.put("c1", url="http://elsewhere")
    second = Gate()
    plugin.says("c1", second)
    refresher.tick()
    assert failure(waiting) == "the provider was changed"
    assert second.reached.wait(WAIT)
    gate.opened.set()  # what the former one brings is dropped
    assert refresher.snapshots.latest("scripted", "c1") is None
    second.opened.set()
    all_calls_end(refresher)
    assert refresher.snapshots.latest("scripted", "c1") is not None


def test_a_removed_provider_is_asked_no_more(
    refresher: Refresher, shelf: Shelf, plugin: ScriptedProvider, time: FakeTime
) -> None:
    tick(refresher)
    del shelf.rows["c1"]
    time.passes(10)
    tick(refresher)
    assert refresher.status("scripted", "c1") is None
    assert refresher.snapshots.latest("scripted", "c1") is None
    assert refresher.speaking_for("scripted", {"scriptedCluster": "c1"}) is None
    assert plugin.script("c1").asked.count("places") == 1


def test_that_providers_have_changed_is_told_once_and_again_to_who_could_not_listen(
    refresher: Refresher, shelf: Shelf
) -> None:
    told: list[int] = []

    def listens_at_the_second_time() -> None:
        told.append(len(shelf.rows))
        if len(told) == 1:
            raise RuntimeError("the listener's own")

    refresher.on_changed.append(listens_at_the_second_time)
    for _ in range(4):
        tick(refresher)
    assert told == [1, 1]
    del shelf.rows["c1"]
    tick(refresher)
    tick(refresher)
    assert told == [1, 1, 0]


def test_a_provider_without_a_plugin_is_shown_and_disturbs_nobody(refresher: Refresher, shelf: Shelf) -> None:
    shelf.put("other", type="alien")
    tick(refresher)
    status = refresher.status("alien", "other")
    assert status is not None
    assert status.state is ProviderState.UNUSABLE
    assert status.problem == "no external resource manager of type 'alien' is known: there are scripted"
    assert state(refresher) is ProviderState.OK


def test_the_most_specific_provider_speaks_for_a_label(refresher: Refresher, shelf: Shelf) -> None:
    shelf.put("every", labels="scriptedCluster")
    shelf.put("one-queue", labels="scriptedCluster=c1,scriptedPlace=root")
    tick(refresher)

    def speaker(**tags: str) -> str | None:
        found = refresher.speaking_for("scripted", tags)
        return None if found is None else f"{found[0].name} {found[1] is IDENTITY}"

    assert speaker(scriptedCluster="c1", scriptedPlace="root") == "one-queue True"
    assert speaker(scriptedPlace="root") is None


def test_stopping_tells_those_who_wait(refresher: Refresher, plugin: ScriptedProvider) -> None:
    gate = Gate()
    plugin.says("c1", gate)
    refresher.tick()
    assert gate.reached.wait(WAIT)
    waiting = refresher.ask("scripted", "c1")
    call = refresher._feeds["scripted", "c1"].call
    assert call is not None
    refresher.stop()
    assert failure(waiting) == "the service is stopping"
    gate.opened.set()
    assert call.ended.wait(WAIT)
    assert refresher.snapshots.latest("scripted", "c1") is None
