"""Looks that are brought along by those who ask: at once, beside a telling, and whoever's protocol it is."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from external_providers.base import ExternalApplication, Place, UnreachableError
from rm_service.domain.outcomes import Outcome, Refused
from rm_service.domain.providers import StalePolicy
from rm_service.ledger.audit import audit
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.external import Tenant
from rm_service.services.applications import Request
from rm_service.services.external.observing import shown_of
from rm_service.services.external.snapshots import Snapshot
from rm_service.services.si.scheduler import SchedulerService
from tests.client_words import kinds, of_kind
from tests.ledger.telling import settle
from tests.services.external.queues import Process, queue
from tests.services.external.scripted import all_calls_end
from tests.services.external.test_observing import MEMORY, World, here, listed, refusal
from tests.services.shim import Shim, app, ask, node


@pytest.fixture
def world(ledger: Ledger) -> World:
    return World(ledger)


@pytest.fixture
def process(ledger: Ledger) -> Iterator[Process]:
    process = Process(ledger)
    yield process
    all_calls_end(process.external.refresher)


def glimpse(world: World, used: int, *apps: ExternalApplication) -> Snapshot:
    """A look of which the ledger has not been told yet."""
    world.followed.time += 10
    snapshot = Snapshot({"a": Place("a", {MEMORY: 100}, {MEMORY: used})}, apps, 0, world.followed.time, 0.0)
    world.followed.snapshots.put(("yarn", "c1"), snapshot)
    return snapshot


class TestBesideATelling:
    def test_who_asks_before_it_is_told_makes_no_room(self, world: World) -> None:
        world.look({"a": 0})
        ours = world.granted(60)
        world.look({"a": 60}, listed("x", 60, f"rm-{ours}"))
        snapshot = glimpse(world, 10, listed("x", 10, f"rm-{ours}"))
        assert refusal(world.ask(90)).shortfalls[0].left == 40
        world.observing.refreshed(world.followed.sources[0], snapshot)
        assert world.left() == 40
        assert audit(world.ledger.readers).consistent

    def test_so_it_is_with_the_refresher_itself(self, process: Process) -> None:
        process.store(process.wish())
        ours = process.granted(60)
        told: list[Outcome] = []

        def ask(_source: object, _snapshot: object) -> None:
            told.append(process.ask(90))

        for takes in (60, 10):
            process.queues.has = [queue("a", used=takes)]
            process.queues.runs = [
                ExternalApplication("x", "a", {MEMORY: takes}, tags=frozenset({f"rm-{ours}"}))
            ]
            if takes == 10:
                process.external.refresher.on_snapshot.insert(0, ask)
            process.tick(10)
        assert [type(outcome) for outcome in told] == [Refused]

    def test_where_nothing_of_ours_is_it_counts_at_once(self, world: World) -> None:
        world.look({"a": 0})
        world.applications.release(world.granted(1))
        glimpse(world, 30)
        assert refusal(world.ask(71)).shortfalls[0].left == 70


class TestWhatIsNoted:
    def test_a_look_that_another_had_in_hand_is_brought_along_all_the_same(self, world: World) -> None:
        world.look({"a": 0})
        assert world.observing.before(here())  # and whoever has it may be slower, or fail
        world.granted(1)
        assert not world.observing.before(here())

    def test_what_was_not_taken_over_is_brought_along_again(self, world: World) -> None:
        world.look({"a": 0})
        ours = world.granted(60)
        glimpse(world, 10)
        assert isinstance(world.ask(90), Refused)
        world.applications.release(ours)
        world.granted(90)

    def test_explaining_does_not_because_it_tells_nothing(self, world: World) -> None:
        world.look({"a": 0})
        world.applications.explain(Request(tags=here(), resource={MEMORY: 1}))
        assert world.observing.before(here())


class TestNobodyHasLooked:
    def test_a_restart_while_the_manager_is_away_changes_nothing(self, process: Process) -> None:
        process.store(process.wish())
        process.granted(10)
        away = Process(process.ledger)
        away.queues.trouble = UnreachableError("no route")
        away.tick()
        away.granted(1)
        process.granted(1)
        assert away.refused(100) == "short"

    def test_another_address_has_to_be_looked_at_even_after_a_crash(self, process: Process) -> None:
        process.store(process.wish(address="rm1"))
        process.granted(10)
        process.external.providers.store(process.wish(address="rm2"))  # and the process is killed
        after = Process(process.ledger)
        after.queues.trouble = UnreachableError("no route")
        after.tick()
        assert after.refused(1) == "unobserved"

    def test_another_policy_does_not(self, process: Process) -> None:
        process.store(process.wish())
        process.granted(10)
        wish = replace(process.wish(), stale_policy=StalePolicy.IGNORE)
        process.external.providers.store(wish)
        after = Process(process.ledger)
        after.queues.trouble = UnreachableError("no route")
        after.tick()
        after.granted(1)


def test_what_was_listed_and_ended_before_the_use_was_read_is_not_taken_for_ours(world: World) -> None:
    world.look({"a": 0})
    ours = world.granted(60)
    others = [listed("y", 40)]
    world.look({"a": 50}, listed("x", 60, f"rm-{ours}"), *others)  # 50 of 100 are gone by then
    assert world.left() == 0
    world.look({"a": 100}, listed("x", 60, f"rm-{ours}"), *others)
    assert world.left() == 0


def test_each_place_has_its_own_sum() -> None:
    there = [listed("x", 60, "rm-a"), listed("y", 40, place="b")]
    places = {name: Place(name, {MEMORY: 100}, {MEMORY: used}) for name, used in {"a": 50, "b": 90}.items()}
    assert shown_of([Tenant("a", (), {})], there, places) == {"a": {MEMORY: 50}}


class TestTheSchedulerInterface:
    """Its asks bring looks along like any others."""

    @pytest.fixture
    def shim(self, ledger: Ledger, world: World) -> Iterator[Shim]:
        service = SchedulerService(ledger, resync_seconds=60, before=world.observing.before)
        shim = Shim(ledger, service)
        shim.register()
        shim.say(nodes=node())
        shim.say(applications=app())
        yield shim
        service.close()

    def test_the_first_who_asks_at_a_place_is_judged_by_what_was_seen(self, world: World, shim: Shim) -> None:
        world.look({"a": 40})
        resource = {"memory": 1, MEMORY: 60}
        heard = shim.say(asks=ask(tags=here(), resource=resource))
        assert [answer["key"] for answer in of_kind(heard, "new")] == ["k"]
        assert world.left() == 0

    def test_what_does_not_fit_there_waits(self, world: World, shim: Shim) -> None:
        world.look({"a": 40})
        heard = shim.say(asks=ask(tags=here(), resource={"memory": 1, MEMORY: 61}))
        assert "new" not in kinds(heard)
        world.look({"a": 30})
        settle(world.ledger)
        assert world.left() == 9
