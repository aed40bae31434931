"""What the table says of limits from a configuration service, beside those of an operator."""

from rm_service.domain import operations as op
from rm_service.domain.outcomes import Done
from rm_service.ledger.queries.events import last_seq
from rm_service.services.limit_sources.table import LimitTable
from tests.ledger.asking import reading
from tests.services.limit_sources.configuration import ConfigurationService
from tests.services.limit_sources.world import ALICE, BOB, HTTP, World


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
