"""Limits from a configuration service: asked for before they are needed, and judged by from our own table."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from structlog.testing import capture_logs

from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.limits import Limit
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.domain.providers import StalePolicy
from rm_service.domain.tags import Tags
from rm_service.ledger.audit import audit
from rm_service.ledger.errors import LedgerUnavailableError
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.queries.events import last_seq
from rm_service.ledger.queries.limits import list_limits
from rm_service.ledger.rulebook import RuleBook
from rm_service.services.applications import Applications, Request
from rm_service.services.limit_sources.http_source import HttpSource
from rm_service.services.limit_sources.limit_sources import LimitSources, SourceSettings
from rm_service.services.limit_sources.metrics import SourceMetrics
from rm_service.services.limit_sources.standings import RETRY_SECONDS, USED_SECONDS
from rm_service.services.limit_sources.table import LimitTable
from tests.ledger.asking import reading
from tests.services.external.scripted import FakeTime
from tests.services.limit_sources.configuration import WAIT, ConfigurationService

ALICE, BOB = {"user": "alice"}, {"user": "bob"}
SPARK = {"user": "alice", "creator": "IDE", "engineType": "spark-3.3"}
HTTP = "[source:http]"
REFRESH, STALE = 60, 600
DEADLINE = 3600


class World:
    """A ledger, the process that keeps its limits, and time that passes when the test says so."""

    def __init__(
        self,
        ledger: Ledger,
        service: ConfigurationService,
        policy: StalePolicy,
        wait: float = WAIT,
        key_sets: Sequence[tuple[str, ...]] = (("user",), ("creator", "engineType", "user")),
    ) -> None:
        self.ledger = ledger
        self.time = FakeTime()
        self.registry = CollectorRegistry()
        settings = SourceSettings(
            key_sets=key_sets,
            refresh_seconds=REFRESH,
            stale_seconds=STALE,
            stale_policy=policy,
            timeout_seconds=wait,
            tick_seconds=DEADLINE,
        )
        clocks = self.time.clocks
        source = HttpSource(service.url, WAIT, clocks)
        self.sources = LimitSources(ledger, source, HTTP, settings, clocks, SourceMetrics(self.registry))
        self.applications = Applications(ledger, 720, unknown_limits=self.sources.unknown)

    def ask(self, tags: Tags = ALICE, memory: int = 1, wait: int = 0) -> Outcome:
        return self.applications.apply(Request(tags=tags, resource={"memory": memory}, wait_seconds=wait))

    def granted(self, tags: Tags = ALICE, memory: int = 1) -> str:
        outcome = self.ask(tags, memory)
        assert isinstance(outcome, Done), outcome
        assert outcome.application is not None
        return outcome.application.id

    def refused(self, tags: Tags = ALICE, memory: int = 1) -> Refused:
        outcome = self.ask(tags, memory)
        assert isinstance(outcome, Refused), outcome
        return outcome

    def later(self, seconds: float = REFRESH) -> None:
        self.time.passes(seconds)
        self.sources.refresh()

    def limits(self) -> dict[str, Limit]:
        page = reading(self.ledger, list_limits)
        return {",".join(f"{key}={limit.tags[key]}" for key in limit.tags): limit for limit in page.items}

    def metrics(self) -> str:
        return generate_latest(self.registry).decode()


Make = Callable[..., World]


@pytest.fixture
def make(ledger: Ledger, service: ConfigurationService) -> Iterator[Make]:
    made: list[World] = []

    def start(policy: StalePolicy = StalePolicy.LAST_KNOWN, **more: Any) -> World:
        world = World(more.pop("ledger", ledger), more.pop("service", service), policy, **more)
        world.sources.start()
        made.append(world)
        return world

    yield start
    for world in made:
        world.sources.stop()
    assert audit(ledger.readers).consistent


@pytest.fixture
def world(make: Make) -> World:
    return make()


class TestFirst:
    def test_an_application_is_judged_by_limits_that_were_asked_for_before(
        self, world: World, service: ConfigurationService
    ) -> None:
        service.says(ALICE, {"memory": "4"})
        service.says(SPARK, {"memory": 3})
        world.granted(SPARK, 3)
        refused = world.refused(SPARK, 2)
        assert refused.code is Code.INSUFFICIENT_RESOURCES
        assert sorted(len(each.label) for each in refused.shortfalls) == [1, 3]
        world.granted(ALICE, 1)
        world.refused(ALICE, 1)

    def test_a_combination_is_asked_for_once(self, world: World, service: ConfigurationService) -> None:
        for _ in range(3):
            world.granted(SPARK)
        world.granted(ALICE)
        assert service.asked == [[SPARK, ALICE]]

    def test_who_has_no_limit_is_free_and_is_not_asked_for_again(
        self, world: World, service: ConfigurationService
    ) -> None:
        world.granted(memory=2**40)
        world.granted(memory=2**40)
        assert service.asked == [[ALICE]]
        assert world.limits() == {}

    def test_whoever_comes_together_is_asked_for_once(
        self, world: World, service: ConfigurationService
    ) -> None:
        service.says(ALICE, {"memory": 5})
        service.hold()
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(world.ask) for _ in range(8)]
            assert service.held.wait(WAIT)
            service.let_go()
            outcomes = [each.result() for each in asked]
        assert sum(isinstance(each, Done) for each in outcomes) == 5
        assert service.asked == [[ALICE]]

    def test_what_comes_while_somebody_is_asked_goes_together(
        self, world: World, service: ConfigurationService
    ) -> None:
        service.hold()
        users = [{"user": f"u{number}"} for number in range(6)]
        with ThreadPoolExecutor(8) as pool:
            first = pool.submit(world.ask, ALICE)
            assert service.held.wait(WAIT)
            others = [pool.submit(world.ask, user) for user in users]
            while len(world.sources._queue) < len(users):
                Event().wait(0.001)
            service.let_go()
            assert all(isinstance(each.result(), Done) for each in (first, *others))
        assert [len(each) for each in service.asked] == [1, 6]

    def test_nobody_else_waits_while_somebody_is_asked(
        self, world: World, service: ConfigurationService
    ) -> None:
        world.granted(BOB)
        service.hold()
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(world.ask, ALICE)
            assert service.held.wait(WAIT)
            world.granted(BOB)
            world.ledger.submit_whole(op.SetLimit({"user": "eve"}, {"memory": 1}))
            assert not asked.done()
            service.let_go()
            assert isinstance(asked.result(), Done)

    def test_a_batch_asks_for_all_of_its_own_at_once(
        self, world: World, service: ConfigurationService
    ) -> None:
        service.says(BOB, {"memory": 0})
        operations = [
            world.applications.operation(Request(tags=tags, resource={"memory": 1})) for tags in (ALICE, BOB)
        ]
        granted, refused = world.applications.submit(operations)
        assert isinstance(granted, Done)
        assert isinstance(refused, Refused)
        assert service.asked == [[ALICE, BOB]]

    def test_an_explanation_knows_the_limits(self, world: World, service: ConfigurationService) -> None:
        service.says(ALICE, {"memory": 0})
        explained = world.applications.explain(Request(tags=ALICE, resource={"memory": 1}))
        assert explained.refused is not None
        assert explained.refused.code is Code.INSUFFICIENT_RESOURCES

    def test_a_key_set_without_a_rule_becomes_a_quota_with_what_runs_counted_in(
        self, ledger: Ledger, make: Make, service: ConfigurationService
    ) -> None:
        team = {"team": "red"}
        Applications(ledger, 720).apply(Request(tags=team, resource={"memory": 3}))
        service.says(team, {"memory": 4})
        world = make(key_sets=[("team",)])
        world.granted(team, 1)
        world.refused(team, 1)


class TestTable:
    def test_the_table_is_a_source_that_says_what_is_judged_by(
        self, world: World, service: ConfigurationService
    ) -> None:
        service.says(ALICE, {"memory": 1})
        world.ledger.submit_whole(op.SetLimit(BOB, {"memory": 9}))
        world.granted()
        said = LimitTable(world.ledger, HTTP).limits_of([ALICE, BOB, {"user": "eve"}])
        assert {str(each.tags["user"]): each.total for each in said.limits} == {
            "alice": {"memory": 1},
            "bob": {"memory": 9},
        }

    def test_the_table_says_whose_a_limit_is(self, world: World, service: ConfigurationService) -> None:
        service.says(ALICE, {"memory": "1Ki"}, protected={"memory": 24})
        world.ledger.submit_whole(op.SetLimit(BOB, {"memory": 9}))
        world.granted()
        limits = world.limits()
        assert (limits["user=alice"].source, limits["user=bob"].source) == ("http", "operator")
        assert limits["user=alice"].total == {"memory": 1024}
        assert limits["user=alice"].protected == {"memory": 24}

    def test_what_an_operator_has_set_goes_before(self, world: World, service: ConfigurationService) -> None:
        service.says(ALICE, {"memory": 1})
        world.ledger.submit_whole(op.SetLimit(ALICE, {"memory": 2}))
        world.granted(memory=2)
        world.refused()
        world.later()
        assert world.limits()["user=alice"].source == "operator"

    def test_an_operator_may_take_a_limit_over_and_give_it_back(
        self, world: World, service: ConfigurationService
    ) -> None:
        service.says(ALICE, {"memory": 1})
        world.granted()
        outcome = world.ledger.submit_whole(op.SetLimit(ALICE, {"memory": 2}))
        assert isinstance(outcome, Done)
        world.later()
        world.granted()
        world.ledger.submit_whole(op.RemoveLimit(outcome.limit_id or 0))
        world.later()
        assert world.limits()["user=alice"].source == "http"
        world.refused()

    def test_an_operators_limit_on_everybody_gives_way_to_that_of_one(
        self, world: World, service: ConfigurationService
    ) -> None:
        world.ledger.submit_whole(op.SetLimit({"user": "*"}, {"memory": 1}))
        service.says(ALICE, {"memory": 2})
        world.granted(ALICE, 2)
        world.refused(BOB, 2)

    def test_the_ledger_is_written_only_when_something_differs(
        self, world: World, service: ConfigurationService
    ) -> None:
        service.says(ALICE, {"memory": 5})
        world.granted()
        before = reading(world.ledger, last_seq)
        world.later()
        world.later()
        assert [len(each) for each in service.asked] == [1, 1, 1]
        assert reading(world.ledger, last_seq) == before


class TestRefresh:
    def test_what_changes_there_changes_here(self, world: World, service: ConfigurationService) -> None:
        service.says(ALICE, {"memory": 1})
        world.granted()
        service.says(ALICE, {"memory": 2})
        world.refused()
        world.later()
        world.granted()
        service.forgets(ALICE)
        world.later()
        world.granted(memory=100)
        assert world.limits() == {}

    def test_who_waits_is_woken_by_it(self, world: World, service: ConfigurationService) -> None:
        service.says(ALICE, {"memory": 1})
        world.granted()
        outcome = world.ask(wait=60)
        assert isinstance(outcome, Done)
        assert outcome.application is not None
        assert outcome.application.state is State.WAITING
        service.says(ALICE, {"memory": 2})
        world.later()
        world.ledger.submit([])  # what it woke is decided before this
        found = world.applications.read(outcome.application.id)
        assert found is not None
        assert found.state is State.LOCKED

    def test_it_is_asked_for_in_batches_of_500(self, world: World, service: ConfigurationService) -> None:
        users = [{"user": f"u{number:04}"} for number in range(1100)]
        operations = [
            world.applications.operation(Request(tags=tags, resource={"memory": 1})) for tags in users
        ]
        assert all(isinstance(each, Done) for each in world.applications.submit(operations))
        assert sum(map(len, service.asked)) == 1100
        assert max(map(len, service.asked)) == 500
        service.asked.clear()
        world.later()
        assert [len(each) for each in service.asked] == [500, 500, 100]

    def test_what_nobody_has_used_for_an_hour_is_asked_for_by_the_next_one(
        self, world: World, service: ConfigurationService
    ) -> None:
        world.granted()
        world.later(USED_SECONDS + 1)
        assert len(service.asked) == 1
        service.says(ALICE, {"memory": 1})
        world.refused(memory=2)
        assert len(service.asked) == 2


class TestAway:
    """The service cannot be asked."""

    def test_a_failure_leaves_what_is_known(self, world: World, service: ConfigurationService) -> None:
        service.says(ALICE, {"memory": 1})
        world.granted()
        service.statuses = [403]
        world.later()
        world.refused()
        assert 'rm_limit_source_failures_total{kind="denied"} 1.0' in world.metrics()
        service.says(ALICE, {"memory": 2})
        world.later(RETRY_SECONDS)
        world.granted()

    def test_last_known_goes_on_however_old_it_is(self, world: World, service: ConfigurationService) -> None:
        service.says(ALICE, {"memory": 1})
        world.granted()
        service.statuses = [403] * 99
        world.later(STALE + 1)
        world.refused()
        world.granted(BOB, 100)

    def test_last_known_is_what_another_process_has_known(
        self, make: Make, service: ConfigurationService
    ) -> None:
        service.says(ALICE, {"memory": 1})
        make().granted()
        service.statuses = [403]
        make().refused()

    def test_deny_refuses_what_was_never_answered_and_says_of_what(
        self, make: Make, service: ConfigurationService
    ) -> None:
        world = make(StalePolicy.DENY)
        service.statuses = [403]
        refused = world.refused(SPARK)
        assert refused.code is Code.LIMITS_UNKNOWN
        assert refused.label == ALICE
        assert "user=alice" in refused.detail
        world.later(RETRY_SECONDS)
        world.granted(SPARK)

    def test_deny_refuses_what_is_too_old(self, make: Make, service: ConfigurationService) -> None:
        world = make(StalePolicy.DENY)
        world.granted()
        service.statuses = [403] * 99
        world.later(STALE)
        world.granted()
        world.later(1)
        assert world.refused().code is Code.LIMITS_UNKNOWN
        service.statuses.clear()
        world.later(60)
        world.granted()

    def test_deny_refuses_only_those_of_a_batch_whose_limits_are_unknown(
        self, make: Make, service: ConfigurationService
    ) -> None:
        world = make(StalePolicy.DENY)
        world.granted(BOB)
        service.statuses = [403]
        operations = [
            world.applications.operation(Request(tags=tags, resource={"memory": 1}))
            for tags in (BOB, ALICE, BOB)
        ]
        first, refused, last = world.applications.submit(operations)
        assert isinstance(first, Done)
        assert isinstance(last, Done)
        assert isinstance(refused, Refused)
        assert refused.code is Code.LIMITS_UNKNOWN
        outcomes = world.applications.submit([*operations[:2]], atomic=True)
        assert [each.code for each in outcomes if isinstance(each, Refused)] == [
            Code.NOT_DONE,
            Code.LIMITS_UNKNOWN,
        ]

    def test_deny_is_explained(self, make: Make, service: ConfigurationService) -> None:
        world = make(StalePolicy.DENY)
        service.statuses = [403]
        explained = world.applications.explain(Request(tags=ALICE, resource={"memory": 1}))
        assert explained.refused is not None
        assert explained.refused.code is Code.LIMITS_UNKNOWN
        assert ALICE in explained.labels

    def test_ignore_takes_away_what_is_too_old_and_no_more(
        self, make: Make, service: ConfigurationService
    ) -> None:
        world = make(StalePolicy.IGNORE)
        service.says(ALICE, {"memory": 1})
        world.ledger.submit_whole(op.SetLimit(BOB, {"memory": 1}))
        world.granted(ALICE)
        world.granted(BOB)
        service.statuses = [403] * 99
        world.later(STALE)
        world.refused(ALICE)
        world.later(1)
        world.granted(ALICE)
        world.refused(BOB)
        service.statuses.clear()
        world.later(60)
        world.refused(ALICE)

    def test_ignore_does_not_judge_by_what_was_there_before_this_process(
        self, make: Make, service: ConfigurationService
    ) -> None:
        service.says(ALICE, {"memory": 1})
        make().granted()
        service.statuses = [403]
        make(StalePolicy.IGNORE).granted()

    def test_nobody_waits_longer_than_the_settings_say(
        self, make: Make, service: ConfigurationService
    ) -> None:
        world = make(StalePolicy.DENY, wait=0.05)
        service.hold()
        assert world.refused().code is Code.LIMITS_UNKNOWN
        service.let_go()

    def test_who_does_not_answer_is_left_alone_for_a_while(
        self, world: World, service: ConfigurationService
    ) -> None:
        service.statuses = [403] * 3
        for number in range(5):
            world.granted({"user": f"u{number}"})
        assert service.questions == 3
        assert "rm_limit_source_breaker 2.0" in world.metrics()
        world.later(60)
        assert len(service.asked) == 1
        assert "rm_limit_source_breaker 0.0" in world.metrics()

    def test_it_is_said_once(self, world: World, service: ConfigurationService) -> None:
        service.statuses = [403] * 2
        with capture_logs() as logs:
            world.granted()
            world.later(RETRY_SECONDS)
            world.later(RETRY_SECONDS)
        events = [line["event"] for line in logs if line["event"].startswith("limit_source")]
        assert events == ["limit_source_failed", "limit_source_recovered"]

    def test_one_bad_entry_harms_nobody_else(self, make: Make, service: ConfigurationService) -> None:
        world = make(StalePolicy.DENY)
        service.says(ALICE, {"memory": -1})
        service.says(BOB, {"memory": 1})
        with capture_logs() as logs:
            assert world.refused(ALICE).code is Code.LIMITS_UNKNOWN
            world.granted(BOB)
            world.later(RETRY_SECONDS)
        unusable = [line for line in logs if line["event"] == "limit_unusable"]
        assert [line["tags"] for line in unusable] == [ALICE]
        assert "rm_limit_source_unusable_total 2.0" in world.metrics()
        service.says(ALICE, {"memory": 1})
        world.later(RETRY_SECONDS)
        world.granted(ALICE)

    @pytest.mark.parametrize(
        ("total", "protected"),
        [({"memory": 1}, {"memory": 2}), ({"memory": 1}, {"vcore": 1}), ({"node.disk": "x"}, {})],
    )
    def test_a_limit_that_an_operator_could_not_set_is_not_taken(
        self, make: Make, service: ConfigurationService, total: Tags, protected: Tags
    ) -> None:
        world = make(StalePolicy.DENY)
        service.says(ALICE, total, protected=protected)
        assert world.refused(ALICE).code is Code.LIMITS_UNKNOWN
        world.granted(BOB)
        assert world.limits() == {}

    def test_a_database_that_cannot_be_asked_is_not_the_fault_of_the_service(
        self, world: World, service: ConfigurationService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def away(self: Ledger) -> RuleBook:
            raise LedgerUnavailableError("it is away")

        world.granted()
        with monkeypatch.context() as patched:
            patched.setattr(Ledger, "book", away)
            for _ in range(4):
                world.later()
        assert "rm_limit_source_breaker 0.0" in world.metrics()
        assert "rm_limit_source_failures_total{" not in world.metrics()

    def test_an_answer_that_is_none_changes_nothing(
        self, world: World, service: ConfigurationService
    ) -> None:
        service.says(ALICE, {"memory": 1})
        world.granted()
        service.body = b'{"limits": [{"tags": {"user": "*"}, "total": {}}]}'
        world.later()
        world.refused()
        assert 'rm_limit_source_failures_total{kind="malformed"} 1.0' in world.metrics()

    def test_a_ledger_that_cannot_be_told_is_told_later(
        self, world: World, service: ConfigurationService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service.says(ALICE, {"memory": 1})
        world.granted()
        service.says(ALICE, {"memory": 2})

        def away(self: Ledger, operation: op.WholeLedgerOperation) -> Outcome:
            raise LedgerUnavailableError("it is away")

        with monkeypatch.context() as patched:
            patched.setattr(Ledger, "submit_whole", away)
            world.later()
        assert world.limits()["user=alice"].total == {"memory": 1}
        world.later(RETRY_SECONDS)
        assert world.limits()["user=alice"].total == {"memory": 2}

    def test_whoever_waits_goes_on_when_the_service_stops(
        self, make: Make, service: ConfigurationService
    ) -> None:
        world = make()
        service.hold()
        with ThreadPoolExecutor(2) as pool:
            asked = pool.submit(world.ask)
            assert service.held.wait(WAIT)
            stopped = pool.submit(world.sources.stop)
            assert isinstance(asked.result(WAIT), Done)
            service.let_go()
            stopped.result(WAIT)


class TestSeveral:
    @pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
    def test_every_process_judges_by_what_one_has_asked(
        self, make: Make, service: ConfigurationService, database_url: str
    ) -> None:
        other = Ledger(LedgerSettings(database_url))
        other.open()
        here, there = make(), make(ledger=other)
        service.says(ALICE, {"memory": 1})
        here.granted()
        there.refused()
        service.says(ALICE, {"memory": 2})
        here.later()
        events = reading(here.ledger, last_seq)
        there.later()
        assert reading(here.ledger, last_seq) == events
        there.granted()
        there.sources.stop()
        other.close()

    @pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
    def test_many_users_through_two_processes_at_once(
        self, make: Make, service: ConfigurationService, database_url: str
    ) -> None:
        other = Ledger(LedgerSettings(database_url))
        other.open()
        worlds = [make(), make(ledger=other)]
        users = [{"user": f"u{number}"} for number in range(40)]
        for user in users:
            service.says(user, {"memory": 2})
        with ThreadPoolExecutor(16) as pool:
            asked = [pool.submit(worlds[turn % 2].ask, user) for turn in range(4) for user in users]
            outcomes = [each.result() for each in asked]
        assert sum(isinstance(each, Done) for each in outcomes) == 2 * len(users)
        assert len(worlds[0].limits()) == len(users)
        worlds[1].sources.stop()
        other.close()
