"""Providers are looked at ahead of need, once however many ask, and what hangs holds nobody up."""

from collections.abc import Sequence
from concurrent.futures import Future
from threading import Event

import pytest

from external_providers.base import (
    DeniedError,
    ExternalApplication,
    Health,
    MalformedError,
    Place,
    UnreachableError,
)
from rm_service.domain.providers import StalePolicy, StoredProvider
from rm_service.domain.selectors import parse_selector
from rm_service.ledger.providers import Generation
from rm_service.services.external.breaker import BreakerState
from rm_service.services.external.feeds import NoSnapshotError, ProviderState
from rm_service.services.external.fetching import FaultKind
from rm_service.services.external.keys import Keys
from rm_service.services.external.refresher import FETCH_SECONDS, Refresher
from rm_service.services.external.snapshots import Snapshot
from rm_service.services.external.sources import Source, open_source
from tests.services.external.scripted import (
    IDENTITY,
    WAIT,
    FakeTime,
    Gate,
    ScriptedProvider,
    all_calls_end,
    call_ends,
    place,
    plugins_with,
    tick,
)


class Shelf:
    """Stored providers without a database."""

    def __init__(self, plugin: ScriptedProvider) -> None:
        self.plugins = plugins_with(plugin)
        self.rows: dict[str, StoredProvider] = {}
        self.version = 0

    def put(self, name: str, url: str = "http://c", labels: str = "", **more: object) -> None:
        self.version += 1
        row: dict[str, object] = {
            "type": "scripted",
            "name": name,
            "labels": parse_selector(labels or f"scriptedCluster={name}"),
            "config": {"url": url},
            "secrets": None,
            "stale_policy": StalePolicy.DENY,
            "refresh_seconds": 10,
            "stale_seconds": 60,
            "protected": {},
            "version": self.version,
            "created_at": 0,
            "updated_at": 0,
        }
        self.rows[name] = StoredProvider(**(row | more))  # type: ignore[arg-type]

    def generation(self) -> Generation:
        return max((row.version for row in self.rows.values()), default=0), len(self.rows)

    def all(self) -> Sequence[StoredProvider]:
        return list(self.rows.values())

    def open(self, stored: StoredProvider) -> Source:
        return open_source(self.plugins, Keys([]), stored)

    def identity_of(self, type_: str) -> object:
        plugin = self.plugins.by_type.get(type_)
        return None if plugin is None else plugin.identify()


@pytest.fixture
def plugin() -> ScriptedProvider:
    return ScriptedProvider()


@pytest.fixture
def shelf(plugin: ScriptedProvider) -> Shelf:
    shelf = Shelf(plugin)
    shelf.put("c1")
    return shelf


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def refresher(shelf: Shelf, time: FakeTime) -> Refresher:
    return Refresher(shelf, time.clocks)  # type: ignore[arg-type]


def state(refresher: Refresher, name: str = "c1") -> ProviderState:
    status = refresher.status("scripted", name)
    assert status is not None
    return status.state


def breaker(refresher: Refresher, name: str = "c1") -> BreakerState:
    status = refresher.status("scripted", name)
    assert status is not None
    return status.breaker


def last_fault(refresher: Refresher, name: str = "c1") -> tuple[FaultKind, str]:
    status = refresher.status("scripted", name)
    assert status is not None
    assert status.fault is not None
    return status.fault.kind, status.fault.reason


def failure(future: Future[Snapshot]) -> str:
    error = future.exception(WAIT)
    assert isinstance(error, NoSnapshotError)
    return str(error)


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


def test_a_plugin_that_hangs_is_given_up_and_what_it_brings_later_is_dropped(
    refresher: Refresher, shelf: Shelf, plugin: ScriptedProvider, time: FakeTime
) -> None:
    shelf.put("c2")
    gate = Gate([place(total=7)])
    plugin.says("c1", gate)
    refresher.tick()
    assert gate.reached.wait(WAIT)
    call_ends(refresher, "c2")
    waiting = refresher.ask("scripted", "c1")
    time.passes(FETCH_SECONDS)
    refresher.tick()
    assert last_fault(refresher) == (FaultKind.TIMEOUT, "no answer within 30 seconds")
    assert failure(waiting) == "no answer in time"
    assert state(refresher, "c2") is ProviderState.OK
    stuck = refresher._feeds["scripted", "c1"].stuck
    (call,) = stuck
    refresher.tick()  # it is asked again beside the call that hangs
    all_calls_end(refresher)
    assert state(refresher) is ProviderState.OK
    gate.opened.set()
    assert call.ended.wait(WAIT)
    assert stuck == []
    snapshot = refresher.snapshots.latest("scripted", "c1")
    assert snapshot is not None
    assert snapshot.places["root"].total == {"scripted.memory": 100}


def test_three_calls_that_hang_are_enough(
    refresher: Refresher, plugin: ScriptedProvider, time: FakeTime
) -> None:
    gates = [Gate() for _ in range(4)]
    plugin.says("c1", *gates)
    for gate in gates[:3]:
        time.passes(200)
        refresher.tick()
        refresher.tick()
        assert gate.reached.wait(WAIT)
    time.passes(200)
    refresher.tick()
    time.passes(200)
    refresher.tick()
    assert not gates[3].reached.is_set()
    calls = list(refresher._feeds["scripted", "c1"].stuck)
    assert len(calls) == 3
    for gate in gates:
        gate.opened.set()
    for call in calls:
        assert call.ended.wait(WAIT)
    all_calls_end(refresher)
    assert state(refresher) is ProviderState.OK


def test_no_answer_is_asked_for_again_after_a_growing_pause_within_the_time_of_a_fetch(
    refresher: Refresher, plugin: ScriptedProvider, time: FakeTime
) -> None:
    plugin.says("c1", UnreachableError("refused"), UnreachableError("refused"))
    tick(refresher)
    assert state(refresher) is ProviderState.OK
    first, second = time.pauses
    assert 0.2 <= first <= 0.4 <= second <= 0.6
    assert {request.timeout_seconds <= FETCH_SECONDS for request in plugin.requests} == {True}


def test_pauses_end_with_the_time_of_the_fetch(
    refresher: Refresher, plugin: ScriptedProvider, time: FakeTime
) -> None:
    def slow() -> Sequence[Place]:
        time.passes(FETCH_SECONDS - 0.1)
        raise UnreachableError("no route")

    plugin.says("c1", slow)
    tick(refresher)
    assert time.pauses == []
    assert last_fault(refresher) == (FaultKind.UNREACHABLE, "no route")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (DeniedError("the password is wrong"), FaultKind.DENIED),
        (MalformedError("no JSON"), FaultKind.MALFORMED),
        (KeyError("queue"), FaultKind.DEFECT),
    ],
)
def test_what_asking_again_does_not_help_is_not_asked_again(
    refresher: Refresher, plugin: ScriptedProvider, time: FakeTime, error: Exception, kind: FaultKind
) -> None:
    plugin.says("c1", error)
    tick(refresher)
    assert plugin.script("c1").asked.count("places") == 1
    assert last_fault(refresher)[0] is kind
    assert state(refresher) is ProviderState.FAILING


def test_the_last_snapshot_stays_and_ages_while_a_provider_fails(
    refresher: Refresher, plugin: ScriptedProvider, time: FakeTime
) -> None:
    tick(refresher)
    before = refresher.snapshots.latest("scripted", "c1")
    plugin.says("c1", MalformedError("no JSON"))
    time.passes(10)
    tick(refresher)
    status = refresher.status("scripted", "c1")
    assert status is not None
    assert status.snapshot is before
    assert (status.age_seconds, status.is_stale) == (10.0, False)
    time.passes(50)
    status = refresher.status("scripted", "c1")
    assert status is not None
    assert status.is_stale


@pytest.mark.parametrize(
    ("places", "reason"),
    [
        ([place(used=-1)], "place root: used.scripted.memory: -1 is below 0"),
        (
            [place(total=2**62 + 1)],
            f"place root: total.scripted.memory: {2**62 + 1} is more than 2^62",
        ),
        (
            [Place("root", {"scripted.memory": 1.5}, {})],  # type: ignore[dict-item]
            "place root: total.scripted.memory: 1.5 is no whole number",
        ),
        (
            [Place("root", {"scripted.memory": True}, {})],
            "place root: total.scripted.memory: True is no whole number",
        ),
        ([Place("root", {"gpu": 1}, {})], "place root: total: 'gpu' is nothing that scripted counts"),
        ([place(), place()], "place root is there twice"),
        ([place("")], "the name of a place cannot be, it is empty: ''"),
        (
            [Place("root", {}, {}, details={"seen": object})],
            "place root: details: Type is not JSON serializable: type",
        ),
    ],
)
def test_what_cannot_be_is_not_used_and_the_reason_is_shown(
    refresher: Refresher, plugin: ScriptedProvider, time: FakeTime, places: list[Place], reason: str
) -> None:
    tick(refresher)
    before = refresher.snapshots.latest("scripted", "c1")
    plugin.says("c1", *[places] * 5)
    for _ in range(5):
        time.passes(10)
        tick(refresher)
    assert refresher.snapshots.latest("scripted", "c1") is before
    assert state(refresher) is ProviderState.QUARANTINED
    assert last_fault(refresher) == (FaultKind.QUARANTINED, reason)
    assert breaker(refresher) is BreakerState.CLOSED  # it answers
    time.passes(10)
    tick(refresher)
    assert state(refresher) is ProviderState.OK


def test_applications_that_cannot_be_are_quarantined_too(
    refresher: Refresher, plugin: ScriptedProvider
) -> None:
    applications = [ExternalApplication(f"a{n}", "root", {"scripted.memory": 2**62}) for n in range(2)]
    plugin.script("c1").applications = applications
    tick(refresher)
    assert last_fault(refresher)[1] == "place root: its applications have more than 2^62 scripted.memory"


def test_who_fails_three_times_is_left_alone_longer_and_longer(
    refresher: Refresher, plugin: ScriptedProvider, time: FakeTime
) -> None:
    plugin.says("c1", *[DeniedError("no")] * 5)
    for _ in range(3):
        tick(refresher)
        time.passes(10)
    looks = plugin.script("c1").asked
    assert breaker(refresher) is BreakerState.OPEN
    assert "breaker is open" in failure(refresher.ask("scripted", "c1"))
    tick(refresher)
    assert looks.count("places") == 3
    time.passes(13)  # 20 seconds, give or take a tenth, 10 of which have passed
    assert breaker(refresher) is BreakerState.HALF_OPEN
    tick(refresher)
    assert looks.count("places") == 4
    time.passes(23)
    tick(refresher)
    assert looks.count("places") == 4  # this time it is about 40 seconds
    time.passes(22)
    tick(refresher)
    assert looks.count("places") == 5


def test_one_good_answer_closes_the_breaker(
    refresher: Refresher, plugin: ScriptedProvider, time: FakeTime
) -> None:
    plugin.says("c1", *[DeniedError("no")] * 3)
    for _ in range(4):
        tick(refresher)
        time.passes(33)
    assert (breaker(refresher), state(refresher)) == (BreakerState.CLOSED, ProviderState.OK)


def test_health_is_asked_at_first_and_when_it_is_no_longer_what_the_looks_say(
    refresher: Refresher, plugin: ScriptedProvider, time: FakeTime
) -> None:
    tick(refresher)
    time.passes(10)
    tick(refresher)
    script = plugin.script("c1")
    assert script.asked.count("health") == 1
    script.health = Health(ok=False, detail="safe mode")
    plugin.says("c1", MalformedError("no JSON"))
    time.passes(10)
    tick(refresher)
    status = refresher.status("scripted", "c1")
    assert status is not None
    assert status.health == Health(ok=False, detail="safe mode")


def test_a_health_that_raises_is_not_ok(refresher: Refresher, plugin: ScriptedProvider) -> None:
    plugin.script("c1").health = RuntimeError("oops")
    tick(refresher)
    status = refresher.status("scripted", "c1")
    assert status is not None
    assert status.health == Health(ok=False, detail="oops")
    assert status.state is ProviderState.OK


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
    gone: list[str] = []
    refresher.on_removed.append(lambda stored, identity: gone.append(f"{stored.name} {identity.type}"))
    tick(refresher)
    del shelf.rows["c1"]
    time.passes(10)
    tick(refresher)
    assert gone == ["c1 scripted"]
    assert refresher.status("scripted", "c1") is None
    assert refresher.snapshots.latest("scripted", "c1") is None
    assert refresher.speaking_for("scripted", {"scriptedCluster": "c1"}) is None
    assert plugin.script("c1").asked.count("places") == 1


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
