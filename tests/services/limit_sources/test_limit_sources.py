"""Limits from a configuration service: asked for before they are needed, and again at an interval."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.outcomes import Code, Done, Refused
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.queries.events import last_seq
from rm_service.services.applications import Applications, Request
from rm_service.services.limit_sources.standings import USED_SECONDS
from tests.ledger.asking import reading
from tests.services.limit_sources.configuration import WAIT, ConfigurationService
from tests.services.limit_sources.world import ALICE, BOB, SPARK, Make, World


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
