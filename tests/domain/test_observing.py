"""External capacity: promised at most once, whatever the other manager shows and when."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain import operations as op
from rm_service.domain.application import Application, State
from rm_service.domain.events import Kind
from rm_service.domain.outcomes import Code, Done, Outcome
from tests.domain.pure_ledger import PureLedger, application_of, refusal

HERE = {"yarnCluster": "c1", "yarnQueue": "root.a"}
MEMORY = "yarn.memory"


def looking(
    observed: int = 0,
    shown: Mapping[str, int] | None = None,
    *,
    total: int | None = 100,
    closed: str | None = None,
    age: int = 0,
    stale: int | None = None,
    ignored: bool = False,
) -> op.Observe:
    return op.Observe(
        HERE,
        "yarn/c1",
        None if total is None else {MEMORY: total},
        {MEMORY: observed},
        closed=closed,
        shown={name: {MEMORY: amount} for name, amount in (shown or {}).items()},
        age=age * 1_000_000,
        stale_seconds=stale,
        ignored_when_stale=ignored,
    )


def asked(ledger: PureLedger, resource: dict[str, int], wait: int = 0) -> Outcome:
    return ledger.apply(resource, wait, 0, **HERE)


def promised(ledger: PureLedger, amount: int) -> Application:
    return ledger.granted({MEMORY: amount}, **HERE)


def left(ledger: PureLedger) -> int:
    return ledger.account(**HERE).left()[MEMORY]


def reason(ledger: PureLedger, amount: int = 1) -> str:
    return refusal(asked(ledger, {MEMORY: amount})).shortfalls[0].reason


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


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "start", "end", "list", "look"]), st.integers(0, 40), st.integers(0, 9)
    ),
    max_size=40,
)


@given(ACTIONS, st.integers(0, 60), st.booleans())
def test_a_lagging_manager_is_never_overbooked(
    actions: list[tuple[str, int, int]], others: int, known: bool
) -> None:
    """Ours take what they were promised bit by bit, seen late, in two looks: the list, then the use.

    Whatever the order: others' use and all that is promised never exceed the total when something is granted.
    """
    ledger = PureLedger()
    ledger.do(looking(observed=others))
    live: dict[str, int] = {}
    running: dict[str, int] = {}  # also of what has ended here and not yet there
    listed: dict[str, int] = {}
    for action, amount, which in actions:
        names = list(running)
        name = names[which % len(names)] if names else ""
        if action == "ask":
            outcome = asked(ledger, {MEMORY: amount + 1})
            if isinstance(outcome, Done):
                application = application_of(outcome)
                live[application.id], running[application.id] = amount + 1, 0
                assert others + sum(live.values()) <= 100
        elif action == "start" and name in live:
            running[name] = min(live[name], running[name] + amount)
        elif action == "end" and name:
            if live.pop(name, None) is not None:
                ledger.do(op.Release(name))
            elif name not in live:
                del running[name]
        elif action == "list":
            listed = dict(running) if known else {}
        elif action == "look":
            ledger.do(looking(others + sum(running.values()), listed))
            listed = {}
        seen = ledger.account(**HERE).balance.seen
        assert all(amount >= 0 for amount in seen.values())
