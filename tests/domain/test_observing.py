"""External capacity: promised at most once, whatever the other manager shows and when."""

from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.events import Kind
from rm_service.domain.observing import shown_within
from rm_service.domain.outcomes import Code, Done
from tests.domain.external_place import (
    HERE,
    MEMORY,
    asked,
    glancing,
    left,
    looking,
    promised,
    reason,
    unobserved,
)
from tests.domain.pure_ledger import PureLedger, application_of, refusal


class TestWhatFits:
    def test_what_others_use_is_not_given_out(self) -> None:
        ledger = PureLedger()
        ledger.do(looking(observed=40))
        promised(ledger, 60)
        refused = refusal(asked(ledger, {MEMORY: 1}))
        [short] = refused.shortfalls
        assert (refused.code, short.left, short.others) == (Code.INSUFFICIENT_RESOURCES, 0, 40)

    def test_what_was_promised_and_is_not_shown_yet_counts_whole(self) -> None:
        ledger = PureLedger()
        ledger.do(looking(observed=40))
        promised(ledger, 50)
        ledger.do(looking(observed=40))
        assert left(ledger) == 10
        ledger.do(looking(observed=60))  # the new 20 may be anybody's
        assert left(ledger) == -10

    def test_what_is_shown_of_ours_counts_once(self) -> None:
        ledger = PureLedger()
        ledger.do(looking(observed=40))
        ours = promised(ledger, 50)
        ledger.do(looking(observed=60, shown={ours.id: 20}))
        assert left(ledger) == 10
        ledger.do(looking(observed=90, shown={ours.id: 50}))
        assert left(ledger) == 10

    def test_an_application_that_takes_more_than_it_was_promised_takes_it_from_what_is_left(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        ours = promised(ledger, 50)
        ledger.do(looking(observed=70, shown={ours.id: 70}))
        assert left(ledger) == 30

    def test_what_ends_is_free_when_it_is_seen_to_be_gone(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        ours = promised(ledger, 50)
        ledger.do(looking(observed=50, shown={ours.id: 50}))
        ledger.do(op.Release(ours.id))
        assert left(ledger) == 50
        ledger.do(looking(observed=0))
        assert left(ledger) == 100

    def test_a_lock_that_was_never_shown_is_free_at_once(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        ledger.do(op.Release(promised(ledger, 50).id))
        assert left(ledger) == 100

    def test_one_that_reports_less_than_its_lock_gives_the_rest_back(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        ours = promised(ledger, 50)
        ledger.do(looking(observed=40, shown={ours.id: 40}))
        ledger.do(op.Use(ours.id, {MEMORY: 30}))
        assert left(ledger) == 60  # 40 are observed, all that is promised is among them

    def test_one_that_is_not_listed_any_more_counts_whole_again(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        ours = promised(ledger, 50)
        ledger.do(looking(observed=50, shown={ours.id: 50}))
        ledger.do(looking(observed=0, shown={ours.id: 0}))
        assert left(ledger) == 50

    def test_a_refused_group_leaves_the_count_as_it_was(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        ours = promised(ledger, 50)
        ledger.do(looking(observed=30, shown={ours.id: 30}))
        outcomes = ledger.together([op.Release(ours.id), op.Release("nobody")])
        assert not all(isinstance(outcome, Done) for outcome in outcomes)
        assert (left(ledger), ledger.account(**HERE).balance.seen) == (50, {MEMORY: 30})

    def test_what_is_shown_of_ours_makes_no_room_beyond_what_others_use(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        ours = promised(ledger, 60)
        ledger.do(looking(0, {ours.id: 60}))  # it was listed, and gave back before the use was read
        refused = refusal(asked(ledger, {MEMORY: 41}))
        assert (left(ledger), refused.shortfalls[0].left, refused.shortfalls[0].others) == (40, 40, 0)

    def test_what_a_list_has_more_than_is_in_use_is_not_taken_for_shown(self) -> None:
        shown = {"a": {MEMORY: 60, "yarn.vcore": 2}, "b": {MEMORY: 30}}
        listed, used = {MEMORY: 100, "yarn.vcore": 2}, {MEMORY: 30, "yarn.vcore": 5}
        assert shown_within(shown, listed, used) == {"a": {MEMORY: 0, "yarn.vcore": 2}, "b": {MEMORY: 20}}
        assert shown_within(shown, {MEMORY: 90}, {MEMORY: 90}) == shown


class TestUseAlone:
    """Who asks at a place brings along what was seen of it last, without the list of applications."""

    def test_it_is_enough_where_nothing_of_ours_is(self) -> None:
        ledger = PureLedger()
        ledger.do(glancing(40))
        promised(ledger, 60)
        assert reason(ledger) == "short"

    def test_beside_an_older_list_it_makes_no_room(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        ours = promised(ledger, 60)
        ledger.do(looking(60, {ours.id: 60}))
        outcome = ledger.do(glancing(10))  # it gave back 50 for the moment
        assert isinstance(outcome, Done)
        assert outcome.repeated
        assert left(ledger) == 40
        ledger.do(looking(10, {ours.id: 10}))
        assert left(ledger) == 40

    def test_who_only_waits_has_nothing_on_a_list(self) -> None:
        ledger = PureLedger()
        ledger.do(looking(observed=95))
        waiting = application_of(asked(ledger, {MEMORY: 10}, 60))
        ledger.do(glancing(80))
        assert ledger.application(waiting.id).state is State.LOCKED


class TestNobodyHasLooked:
    def test_that_does_not_replace_what_the_provider_has_seen(self) -> None:
        ledger = PureLedger()
        ledger.do(looking(observed=40))
        ledger.do(unobserved())
        promised(ledger, 60)

    def test_but_what_another_provider_has_seen(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        ledger.do(unobserved(provider="yarn/c2"))
        assert reason(ledger) == "unobserved"

    def test_and_what_the_provider_has_seen_of_another_manager(self) -> None:
        ledger = PureLedger()
        ledger.do(looking(manager="rm1"))
        ledger.do(unobserved(manager="rm1"))
        promised(ledger, 1)
        ledger.do(unobserved(manager="rm2"))
        assert reason(ledger) == "unobserved"

    def test_a_look_that_began_before_it_was_said_counts(self) -> None:
        ledger = PureLedger()
        ledger.do(unobserved())
        ledger.do(looking(age=8))
        promised(ledger, 100)


class TestWaiting:
    def test_where_nobody_looks_nothing_is_registered(self) -> None:
        assert refusal(asked(PureLedger(), {MEMORY: 1})).code is Code.UNKNOWN_NODE

    def test_the_first_look_lets_in_who_waits_for_it(self) -> None:
        ledger = PureLedger()
        ledger.do(looking(total=None, closed="unobserved"))
        assert reason(ledger) == "unobserved"
        waiting = application_of(asked(ledger, {MEMORY: 10}, 60))
        assert waiting.state is State.WAITING
        ledger.do(looking())
        assert ledger.application(waiting.id).state is State.LOCKED

    def test_room_that_is_seen_lets_in_who_waits_for_it(self) -> None:
        ledger = PureLedger()
        ledger.do(looking(observed=95))
        waiting = application_of(asked(ledger, {MEMORY: 10}, 60))
        ledger.do(looking(observed=80))
        assert ledger.application(waiting.id).state is State.LOCKED


class TestTime:
    def test_an_older_look_changes_nothing(self) -> None:
        ledger = PureLedger()
        ledger.do(looking(observed=40, age=5))
        ledger.do(looking(observed=0, age=10))
        assert left(ledger) == 60

    def test_what_is_too_old_is_closed_until_somebody_looks_again(self) -> None:
        ledger = PureLedger()
        ledger.do(looking(stale=60, age=10))
        ledger.pass_time(49)
        promised(ledger, 10)
        ledger.pass_time(1)
        assert reason(ledger) == "external_stale"
        ledger.do(looking(stale=60))
        promised(ledger, 10)

    def test_it_is_relied_on_for_ever_if_so_wished(self) -> None:
        ledger = PureLedger()
        ledger.do(looking(observed=40))
        ledger.pass_time(100_000)
        promised(ledger, 60)
        assert reason(ledger) == "short"

    def test_or_it_is_no_obstacle_any_more(self) -> None:
        ledger = PureLedger()
        ledger.do(looking(observed=100, stale=60, ignored=True))
        assert reason(ledger) == "short"
        ledger.pass_time(60)
        promised(ledger, 1_000)
        ledger.do(looking(observed=100, stale=60, ignored=True))
        assert reason(ledger) == "short"

    def test_nor_is_one_that_nobody_has_ever_seen(self) -> None:
        ledger = PureLedger()
        ledger.do(looking(total=None, closed="unobserved", ignored=True))
        promised(ledger, 5)


def test_an_event_tells_of_what_changed_and_of_nothing_else() -> None:
    ledger = PureLedger()
    ledger.do(looking(observed=40))
    ledger.pass_time(10)
    ledger.do(looking(observed=40))
    ledger.do(looking(observed=41))
    told = [event.detail for event in ledger.events if event.kind is Kind.EXTERNAL_OBSERVED]
    assert [detail and detail["observed"] for detail in told] == [{MEMORY: 40}, {MEMORY: 41}]


def test_an_engine_tells_what_it_is_called_outside() -> None:
    ledger = PureLedger()
    ledger.do(looking())
    ours = promised(ledger, 5)
    ledger.do(op.Use(ours.id, external_ids=("application_1_1",)))
    ledger.do(op.Use(ours.id, external_ids=("application_1_2", "application_1_1")))
    external = ledger.application(ours.id).external
    assert external is not None
    assert external.ids == ("application_1_1", "application_1_2")
