"""A configuration service that cannot be asked, or says what cannot be: what is judged by meanwhile."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from structlog.testing import capture_logs

from rm_service.domain import operations as op
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.domain.providers import StalePolicy
from rm_service.domain.tags import Tags
from rm_service.ledger.errors import LedgerUnavailableError
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.rulebook import RuleBook
from rm_service.services.applications import Request
from rm_service.services.limit_sources.standings import RETRY_SECONDS
from tests.services.limit_sources.configuration import WAIT, ConfigurationService
from tests.services.limit_sources.world import ALICE, BOB, SPARK, STALE, Make, World


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
