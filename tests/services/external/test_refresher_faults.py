"""A provider that hangs, fails or says what cannot be holds nobody up, and is left alone for a while."""

from collections.abc import Sequence

import pytest
import structlog

from external_providers.base import (
    DeniedError,
    ExternalApplication,
    ExternalResourceProviderParser,
    Health,
    MalformedError,
    MatchedProvider,
    Place,
    ProviderRecord,
    UnreachableError,
)
from rm_service.services.external.breaker import BreakerState
from rm_service.services.external.feeds import ProviderState
from rm_service.services.external.fetching import FaultKind
from rm_service.services.external.refresher import FETCH_SECONDS, Refresher
from tests.services.external.scripted import (
    IDENTITY,
    WAIT,
    FakeTime,
    Gate,
    ScriptedProvider,
    ScriptedSchema,
    all_calls_end,
    call_ends,
    place,
    tick,
)
from tests.services.external.shelf import Shelf, breaker, failure, last_fault, state


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
        ([place(used=-1)], "place root: used.scripted.memory is below 0"),
        (
            [place(total=2**62 + 1)],
            "place root: total.scripted.memory is more than 2^62",
        ),
        (
            [Place("root", {"scripted.memory": 1.5}, {})],  # type: ignore[dict-item]
            "place root: total.scripted.memory is no whole number",
        ),
        (
            [Place("root", {"scripted.memory": True}, {})],
            "place root: total.scripted.memory is no whole number",
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


def test_where_a_defect_is_is_logged_once_for_each_reason(
    refresher: Refresher, plugin: ScriptedProvider, time: FakeTime
) -> None:
    plugin.says("c1", KeyError("memory"), KeyError("memory"), KeyError("vcore"), [place()], KeyError("vcore"))
    with structlog.testing.capture_logs() as logs:
        for _ in range(5):
            tick(refresher)
            time.passes(33)
    found = [log for log in logs if log["event"] == "provider_defect"]
    assert [log["traceback"].splitlines()[-1] for log in found] == [
        "KeyError: 'memory'",
        "KeyError: 'vcore'",
        "KeyError: 'vcore'",
    ]


def test_good_health_is_not_shown_beyond_a_look_that_had_no_answer(
    refresher: Refresher, plugin: ScriptedProvider, time: FakeTime
) -> None:
    tick(refresher)
    gate, again = Gate(), Gate()
    plugin.says("c1", gate, again)
    time.passes(10)
    refresher.tick()
    assert gate.reached.wait(WAIT)
    time.passes(30)
    refresher.tick()  # it is given up, and asked again
    assert again.reached.wait(WAIT)
    status = refresher.status("scripted", "c1")
    assert status is not None
    assert (status.state, status.health) == (ProviderState.FAILING, None)
    again.opened.set()
    gate.opened.set()
    all_calls_end(refresher)


def test_a_health_that_raises_is_not_ok(refresher: Refresher, plugin: ScriptedProvider) -> None:
    plugin.script("c1").health = RuntimeError("oops")
    tick(refresher)
    status = refresher.status("scripted", "c1")
    assert status is not None
    assert status.health == Health(ok=False, detail="oops")
    assert status.state is ProviderState.OK


def test_a_call_that_hangs_is_seen_as_soon_as_the_next_one_is_due(
    refresher: Refresher, plugin: ScriptedProvider, time: FakeTime
) -> None:
    tick(refresher)
    gate = Gate()
    plugin.says("c1", gate)
    time.passes(10)
    refresher.tick()
    assert gate.reached.wait(WAIT)
    with structlog.testing.capture_logs() as logs:
        for seconds, seen in ((10, ProviderState.OK), (1, ProviderState.LATE), (1, ProviderState.LATE)):
            time.passes(seconds)
            assert state(refresher) is seen
            refresher.tick()
    assert logs == [
        {
            "event": "provider_late",
            "log_level": "warning",
            "provider": "scripted/c1",
            "seconds": 11.0,
            "refresh_seconds": 10,
        }
    ]
    gate.opened.set()
    all_calls_end(refresher)


def test_a_provider_is_late_until_a_look_ends_in_time(
    refresher: Refresher, plugin: ScriptedProvider, time: FakeTime
) -> None:
    def slowly() -> Sequence[Place]:
        time.passes(11)
        return [place()]

    plugin.says("c1", slowly, slowly, [place()])
    with structlog.testing.capture_logs() as logs:
        tick(refresher)
        assert state(refresher) is ProviderState.OK  # the third look
    assert [line["event"] for line in logs] == ["provider_late", "provider_in_time"]


def test_a_parser_that_hangs_holds_up_its_own_provider_alone(
    shelf: Shelf, plugin: ScriptedProvider, time: FakeTime
) -> None:
    gate = Gate()
    plugin.parser = _Slow(gate)  # type: ignore[misc]
    shelf.put("slow")
    refresher = Refresher(shelf, time.clocks)  # type: ignore[arg-type]
    refresher.tick()
    assert gate.reached.wait(WAIT)
    call_ends(refresher, "c1")
    shelf.put("c2")
    refresher.tick()
    call_ends(refresher, "c2")
    assert {state(refresher, name) for name in ("c1", "c2")} == {ProviderState.OK}
    assert state(refresher, "slow") is ProviderState.PENDING
    time.passes(11)
    assert state(refresher, "slow") is ProviderState.LATE
    time.passes(FETCH_SECONDS)
    refresher.tick()
    assert last_fault(refresher, "slow")[0] is FaultKind.TIMEOUT
    gate.opened.set()
    all_calls_end(refresher)


class _Slow(ExternalResourceProviderParser):
    """Parses the provider `slow` only when it is let."""

    def __init__(self, gate: Gate) -> None:
        super().__init__(IDENTITY, ScriptedSchema)
        self._gate = gate

    def parse(self, record: ProviderRecord) -> MatchedProvider:
        if record.name == "slow":
            self._gate()
        return super().parse(record)


def test_what_its_plugin_cannot_parse_is_shown_and_asked_no_more(
    refresher: Refresher, shelf: Shelf, plugin: ScriptedProvider, time: FakeTime
) -> None:
    shelf.put("odd", url="no address")
    waiting = []
    refresher.on_changed.append(lambda: waiting.append(refresher.ask("scripted", "odd")))
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            time.passes(10)
            tick(refresher)
    status = refresher.status("scripted", "odd")
    assert status is not None
    assert (status.state, status.problem) == (ProviderState.UNUSABLE, "url: Not a valid URL.")
    assert failure(waiting[0]) == failure(refresher.ask("scripted", "odd")) == "url: Not a valid URL."
    assert [line["event"] for line in logs] == ["provider_unusable"]
    assert plugin.script("odd").asked == []
    shelf.put("odd", url="http://c")
    tick(refresher)
    assert state(refresher, "odd") is ProviderState.OK
