"""Judging: whether a request fits under each of its labels, and whose turn it is."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rm_service.domain.accounts import Account, Shortfall
from rm_service.domain.amounts import Amounts
from rm_service.domain.external_changes import pass_time
from rm_service.domain.outcomes import Code, Refused
from rm_service.domain.view import SLOT, View, has_slots

ARRIVAL = 2**63 - 1
"""The place of one who has just come: behind everybody of the same priority."""

Rank = tuple[int, int]
"""Priority (higher first) and place among equals (lower first)."""


@dataclass(slots=True)
class Judgement:
    """What is short, and the labels that say no."""

    shortfalls: list[Shortfall] = field(default_factory=list)
    blocked: list[int] = field(default_factory=list)
    out_of_turn: bool = False
    """There would be room, but on some label somebody of better rank waits for it."""

    def block(self, account: Account, shortfalls: list[Shortfall]) -> None:
        self.shortfalls += shortfalls
        if account.label.id not in self.blocked:
            self.blocked.append(account.label.id)

    def only(self, gate: Account, shortfall: Shortfall) -> None:
        """Nothing matters but this gate: whoever waits there must not stand in anybody's way elsewhere."""
        self.shortfalls, self.blocked, self.out_of_turn = [shortfall], [gate.label.id], False

    def add(self, other: "Judgement") -> None:
        self.shortfalls += other.shortfalls
        self.blocked += other.blocked
        self.out_of_turn = self.out_of_turn or other.out_of_turn


def judge(
    view: View, accounts: Sequence[Account], resource: Amounts, rank: Rank, turn_of: int | None = None
) -> Judgement:
    """Judge a request on all of its labels. On the label `turn_of` its turn has come already.

    What asks for nothing but a slot stands in a queue of its own: it must not hold up those who run and ask
    for more, on whose end it waits.
    """
    judgement = Judgement()
    for_a_slot = resource.keys() == {SLOT}
    for account in accounts:
        if account.balance.observation is not None:
            pass_time(view, account)
            if account.is_ignored_at(view.now):
                continue
        closed = account.closed_at(view.now)
        queue = view.slots_of(account) if for_a_slot and has_slots(account) else account
        found = account.shortfalls(resource)
        if closed is not None:
            judgement.block(queue, [_barred(account, resource, closed)])
        elif found:
            judgement.block(queue, found)
        elif queue.label.id != turn_of and _stands_behind(rank, view.first_rank(queue)):
            judgement.out_of_turn = True
            judgement.block(queue, [_barred(account, resource, "waiters_ahead")])
    return judgement


def not_registered(accounts: Sequence[Account]) -> Refused | None:
    """The refusal for a capacity label under which nothing is registered."""
    for account in accounts:
        if account.is_capacity and account.total is None and account.balance.observation is None:
            label = ",".join(f"{key}={value}" for key, value in account.label.tags.items())
            return Refused(
                Code.UNKNOWN_NODE, f"nothing is registered under {label}", label=account.label.tags
            )
    return None


def _stands_behind(rank: Rank, first: Rank | None) -> bool:
    """Whether the label's first waiter is of better rank."""
    return first is not None and (first[0] > rank[0] or (first[0] == rank[0] and first[1] < rank[1]))


def _barred(account: Account, resource: Amounts, reason: str) -> Shortfall:
    dimension = next(iter(account.charge(resource) or resource), "")
    return account.shortfall(dimension, resource.get(dimension, 0), reason)
