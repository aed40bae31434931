"""Who uses what: amounts summed by tags, from roll-ups where there are some, else from the applications."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product

from sqlalchemy import Connection

from rm_service.domain.accounts import Account
from rm_service.domain.amounts import Amounts, without_zeros
from rm_service.domain.application import Instant, State
from rm_service.domain.label_rules import LabelRules
from rm_service.domain.selectors import Operator, Requirement, Selector
from rm_service.domain.tags import TagError, Tags
from rm_service.ledger.queries.held import Held, held_at, held_now
from rm_service.ledger.queries.labels import accounts_by
from rm_service.ledger.rulebook import RuleBook

_EVERYTHING = Selector()
Values = tuple[str, ...]
"""The values of the `by` keys, in their order."""


class Source(StrEnum):
    """What an answer was read from."""

    ROLLUP = "rollup"
    """Balances that every commit keeps: the cost is the number of answers."""
    APPLICATIONS = "applications"
    """The live applications, by the index on their tags."""
    INTERVALS = "intervals"
    """What applications held when, for a past moment."""


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What the applications with these tags hold together; zeros are left out.

    `total`, `protected` and `left` are those of the label with exactly these tags (which may count fewer
    dimensions than the row); None where there is no such label, no limit on it, or for a past moment.
    """

    tags: Tags
    locked: Amounts
    used: Amounts
    applications: int
    """How many hold something."""
    total: Amounts | None = None
    protected: Amounts | None = None
    left: Amounts | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Rows in the order of their values: every group that holds something or has a total."""

    by: tuple[str, ...]
    source: Source
    rows: list[UsageRow]


@dataclass(slots=True)
class _Sum:
    locked: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    applications: int = 0

    def add(self, state: State, amounts: Amounts, applications: int) -> None:
        self.applications += applications
        sums = self.locked if state is State.LOCKED else self.used
        for dimension, amount in amounts.items():
            sums[dimension] = sums.get(dimension, 0) + amount * applications


_Sums = dict[Values, _Sum]


def usage(
    connection: Connection,
    book: RuleBook,
    by: Sequence[str],
    *,
    where: Selector = _EVERYTHING,
    at: Instant | None = None,
) -> Usage:
    """What is held by each combination of values of the tags `by`, now or at a past moment.

    A hierarchical tag counts at each of its levels. In `where` a term on a key of `by` chooses rows; a term on
    another key chooses applications, one on a hierarchical key by all the levels they are charged under.
    """
    question = _Question(connection, book.rules, tuple(by), where)
    if at is not None:
        return Usage(question.by, Source.INTERVALS, _rows(question, question.sum(held_at(connection, at)), {}))
    own = _accounts(question, book, frozenset(by))
    rules = book.rules.rollup(frozenset(by))
    if rules and not question.of_applications.requirements:
        sums = _sum_accounts(question, book, rules_keys=[rule.keys for rule in rules], own=own)
        return Usage(question.by, Source.ROLLUP, _rows(question, sums, own))
    return usage_of_applications(connection, book, by, where=where)


def usage_of_applications(
    connection: Connection, book: RuleBook, by: Sequence[str], *, where: Selector = _EVERYTHING
) -> Usage:
    """The present usage summed over the applications, even where a roll-up could answer."""
    question = _Question(connection, book.rules, tuple(by), where)
    own = _accounts(question, book, frozenset(by))
    held = held_now(connection, question.keys, question.named_values())
    return Usage(question.by, Source.APPLICATIONS, _rows(question, question.sum(held), own))
