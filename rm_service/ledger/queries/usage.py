"""Who uses what: amounts summed by tags, from roll-ups where there are some, else from the applications."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product

from sqlalchemy import Connection

from rm_service.domain.accounts import Account
from rm_service.domain.amounts import Amounts, plus, without_zeros
from rm_service.domain.application import Instant, State
from rm_service.domain.label_rules import LabelRules
from rm_service.domain.selectors import Operator, Requirement, Selector
from rm_service.domain.tags import TagError, Tags
from rm_service.ledger.queries.held import Held, held_at, held_now
from rm_service.ledger.queries.labels import accounts_by
from rm_service.ledger.queries.tag_index import named
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

    def add(self, held: Held) -> None:
        self.applications += held.applications
        sums = self.locked if held.state is State.LOCKED else self.used
        for dimension, amount in held.amounts.items():
            sums[dimension] = sums.get(dimension, 0) + amount * held.applications


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

    A hierarchical tag counts at each of its levels. In `where` a term on a key of `by` chooses rows; one on
    another key chooses applications (by any of the levels they are charged under, if it is hierarchical).
    """
    question = _Question(book.rules, tuple(by), where)
    if at is not None:
        held = held_at(connection, question.keys, question.by, question.named, at)
        return Usage(question.by, Source.INTERVALS, _rows(question, question.sum(held), {}))
    rules = book.rules.rollup(frozenset(by))
    if not rules or question.of_applications:
        return usage_of_applications(connection, book, by, where=where)
    own = _accounts(connection, book, question, frozenset(by))
    sums = _sum_accounts(own.values(), question.by)
    for rule in rules[1:]:
        rest = accounts_by(connection, book, rule.keys, question.named)
        _merge(sums, _sum_accounts(rest, question.by))
    return Usage(question.by, Source.ROLLUP, _rows(question, sums, own))


def usage_of_applications(
    connection: Connection, book: RuleBook, by: Sequence[str], *, where: Selector = _EVERYTHING
) -> Usage:
    """The present usage summed over the applications, even where a roll-up could answer."""
    question = _Question(book.rules, tuple(by), where)
    held = held_now(connection, question.keys, question.by, question.named)
    own = _accounts(connection, book, question, frozenset(by))
    return Usage(question.by, Source.APPLICATIONS, _rows(question, question.sum(held), own))


class _Question:
    """What is asked: the keys to sum by, which applications count, and which rows are wanted."""

    def __init__(self, rules: LabelRules, by: tuple[str, ...], where: Selector) -> None:
        self.by = tuple(dict.fromkeys(by))
        self._rules = rules
        self.of_rows = Selector(tuple([term for term in where.requirements if term.key in self.by]))
        self.of_applications = tuple([term for term in where.requirements if term.key not in self.by])
        self.keys = tuple(dict.fromkeys([*self.by, *[term.key for term in self.of_applications]]))
        self.named = [term for term in named(where) if term.key not in rules.separators]
        """What an index can find; a value of a hierarchical tag also stands for those below it."""

    def sum(self, held: Iterable[Held]) -> _Sums:
        """The sums of what is held by the applications that count."""
        sums: _Sums = {}
        for each in held:
            if all(self._fulfils(each.tags, term) for term in self.of_applications):
                for values in product(*[self._levels(key, each.tags[key]) for key in self.by]):
                    sums.setdefault(values, _Sum()).add(each)
        return sums

    def _fulfils(self, tags: Tags, term: Requirement) -> bool:
        value = tags.get(term.key)
        if value is None or term.key not in self._rules.separators:
            return term.matches(tags)
        verdicts = [term.matches({term.key: level}) for level in self._levels(term.key, value)]
        return all(verdicts) if term.operator is Operator.NOT_IN else any(verdicts)

    def _levels(self, key: str, value: str) -> tuple[str, ...]:
        try:
            return self._rules.levels(key, value)
        except TagError:
            return (value,)  # no rule needed this key, so nobody checked its levels


def _accounts(
    connection: Connection, book: RuleBook, question: _Question, keys: frozenset[str]
) -> dict[Values, Account]:
    """The accounts of the labels with exactly the keys asked for."""
    if not keys or book.rules.rule_for(keys) is None:
        return {}
    accounts = accounts_by(connection, book, keys, named(question.of_rows))
    return {_values_of(account, question.by): account for account in accounts}


def _sum_accounts(accounts: Iterable[Account], by: tuple[str, ...]) -> _Sums:
    sums: _Sums = {}
    for account in accounts:
        balance = account.balance
        one = {_values_of(account, by): _Sum(dict(balance.locked), dict(balance.used), balance.applications)}
        _merge(sums, one)
    return sums


def _merge(sums: _Sums, others: _Sums) -> None:
    for values, other in others.items():
        known = sums.setdefault(values, _Sum())
        known.locked, known.used = plus(known.locked, other.locked), plus(known.used, other.used)
        known.applications += other.applications


def _rows(question: _Question, sums: _Sums, own: Mapping[Values, Account]) -> list[UsageRow]:
    rows = []
    for values in sorted(sums.keys() | own.keys()):
        tags = dict(zip(question.by, values, strict=True))
        account, held = own.get(values), sums.get(values, _Sum())
        total = None if account is None else account.total
        if (held.applications or total is not None) and question.of_rows.matches(tags):
            rows.append(
                UsageRow(
                    tags,
                    without_zeros(held.locked),
                    without_zeros(held.used),
                    held.applications,
                    total,
                    None if account is None or total is None else account.protected,
                    None if account is None or total is None else account.left(),
                )
            )
    return rows


def _values_of(account: Account, by: tuple[str, ...]) -> Values:
    return tuple([account.label.tags[key] for key in by])
