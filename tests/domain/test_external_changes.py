"""What ends here may go on in the other manager, and that is never promised to somebody else."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain import operations as op
from rm_service.domain.external_changes import MOST_ENDED
from rm_service.domain.observing import shown_within
from rm_service.domain.outcomes import Done
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


class TestWhatHasEnded:
    """What was in use and not shown may go on there until somebody has looked."""

    def used(self, ledger: PureLedger, amount: int) -> str:
        ours = promised(ledger, amount)
        ledger.do(op.Use(ours.id))
        return ours.id

    def test_it_is_not_granted_again_before_there_is_a_later_look(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        ledger.do(op.Release(self.used(ledger, 100)))
        refused = refusal(asked(ledger, {MEMORY: 1}))
        assert (refused.shortfalls[0].left, refused.shortfalls[0].others) == (0, 100)
        ledger.pass_time(10)
        ledger.do(looking(observed=70))
        assert left(ledger) == 30
        ledger.pass_time(10)
        ledger.do(looking())
        promised(ledger, 100)

    def test_a_look_that_began_before_the_end_says_nothing_of_it(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        ours = self.used(ledger, 100)
        ledger.pass_time(5)
        ledger.do(op.Release(ours))
        ledger.pass_time(5)
        ledger.do(looking(age=6))
        assert left(ledger) == 0
        ledger.do(glancing(0, age=3))
        assert left(ledger) == 100

    def test_only_what_was_not_shown_is_kept(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        ours = self.used(ledger, 60)
        ledger.do(looking(observed=50, shown={ours: 50}))
        ledger.do(op.Release(ours))
        assert left(ledger) == 40  # 50 are observed

    def test_one_that_reports_to_use_less_is_believed(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        ours = self.used(ledger, 60)
        ledger.do(op.Use(ours, {MEMORY: 30}))
        assert left(ledger) == 70

    def test_a_lock_that_has_been_shown_has_been_started(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        ours = promised(ledger, 60)
        ledger.do(looking(observed=20, shown={ours.id: 20}))
        ledger.do(op.Release(ours.id))
        assert left(ledger) == 40

    def test_what_is_lost_is_kept_too(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        ledger.do(op.Lose(self.used(ledger, 60), "its node is gone"))
        assert left(ledger) == 40

    def test_after_a_minute_it_is_taken_for_gone(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        first, second = self.used(ledger, 60), self.used(ledger, 40)
        ledger.do(op.Release(first))
        ledger.pass_time(30)
        ledger.do(op.Release(second))
        ledger.pass_time(31)
        promised(ledger, 60)
        assert reason(ledger) == "short"
        ledger.pass_time(30)
        promised(ledger, 40)

    def test_where_nobody_has_looked_it_is_kept(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        ledger.do(op.Release(self.used(ledger, 60)))
        ledger.pass_time(10)
        ledger.do(unobserved(manager="rm2"))
        ledger.do(looking(age=10, manager="rm2"))
        assert left(ledger) == 40

    def test_however_much_ends_little_is_written(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        for _ in range(40):
            ledger.do(op.Release(self.used(ledger, 2)))
            ledger.do(op.Release(self.used(ledger, 0)))
            ledger.pass_time(1)
        observation = ledger.account(**HERE).balance.observation
        assert observation is not None
        assert (left(ledger), len(observation.ended)) == (20, MOST_ENDED)

    def test_a_group_that_is_refused_leaves_nothing_behind(self) -> None:
        ledger = PureLedger()
        ledger.do(looking())
        ours = self.used(ledger, 60)
        ledger.together([op.Release(ours), op.Release("nobody")])
        assert left(ledger) == 40
        ledger.do(looking(observed=60, shown={ours: 60}))
        assert left(ledger) == 40


class LaggingManager:
    """A manager in which ours take what they were promised and give it back as they like, and go on for a
    while when they have ended here. It is seen late, in two looks: the list, then the use.
    """

    def __init__(self, others: int, *, lists: bool) -> None:
        self.ledger = PureLedger()
        self.others = others
        self.lists = lists
        self.live: dict[str, int] = {}
        """What ours were promised."""
        self.running: dict[str, int] = {}
        """What each of ours has, of what has ended, too."""
        self.listed: dict[str, int] | None = None
        self.listed_at = 0
        self.ledger.do(looking(observed=others))

    def do(self, action: str, amount: int, which: int) -> None:
        names = list(self.running)
        self.ledger.pass_time(1)
        getattr(self, action)(amount, names[which % len(names)] if names else "")

    def room(self) -> int:
        """What may be granted at most."""
        most = [max(self.live.get(name, 0), has) for name, has in self.running.items()]
        return 100 - self.others - sum(most)

    def ask(self, amount: int, _name: str) -> None:
        outcome = asked(self.ledger, {MEMORY: amount + 1})
        if isinstance(outcome, Done):
            application = application_of(outcome)
            self.live[application.id], self.running[application.id] = amount + 1, 0

    def take(self, amount: int, name: str) -> None:
        if name in self.live:
            self.ledger.do(op.Use(name))
            self.running[name] = min(self.live[name], amount)
        elif name:
            self.running[name] = min(self.running[name], amount)

    def end(self, _amount: int, name: str) -> None:
        if self.live.pop(name, None) is not None:
            self.ledger.do(op.Release(name))

    def list(self, _amount: int, _name: str) -> None:
        self.listed, self.listed_at = dict(self.running) if self.lists else {}, self.ledger.now

    def look(self, amount: int, name: str) -> None:
        if self.listed is None:
            self.list(amount, name)
        found, self.listed = self.listed or {}, None
        used = {MEMORY: self.others + sum(self.running.values())}
        listed = {MEMORY: (self.others if self.lists else 0) + sum(found.values())}
        shown = shown_within({name: {MEMORY: has} for name, has in found.items()}, listed, used)
        age = (self.ledger.now - self.listed_at) // 1_000_000
        self.ledger.do(replace(looking(used[MEMORY], age=age), shown=shown))

    def glance(self, _amount: int, _name: str) -> None:
        self.ledger.do(glancing(self.others + sum(self.running.values())))


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "take", "end", "list", "look", "glance"]),
        st.integers(0, 60),
        st.integers(0, 3),
    ),
    min_size=40,
    max_size=60,
)


@given(ACTIONS, st.integers(0, 60), st.booleans())
def test_a_lagging_manager_is_never_overbooked(
    actions: list[tuple[str, int, int]], others: int, lists: bool
) -> None:
    """Whatever the order: no more is left to be granted than the total less what others use, what is promised
    and what goes on of what has ended.
    """
    manager = LaggingManager(others, lists=lists)
    for action in actions:
        manager.do(*action)
        assert left(manager.ledger) <= manager.room()
        assert all(amount >= 0 for amount in manager.ledger.account(**HERE).balance.seen.values())
