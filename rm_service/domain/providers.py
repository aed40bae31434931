"""Providers of external resources as they are stored, and which of them speaks for a label.

A provider's selector looks at the tags of labels whose rule is `external` with its type. Where several accept
a label, the one with the most requirements speaks for it; that there is always one such is seen to when a
provider is stored.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rm_service.domain.amounts import Amounts
from rm_service.domain.application import Instant
from rm_service.domain.selectors import Operator, Requirement, Selector
from rm_service.domain.tags import Tags

_LOWER = {Operator.GREATER: 1, Operator.AT_LEAST: 0}
_UPPER = {Operator.LESS: -1, Operator.AT_MOST: 0}


class StalePolicy(StrEnum):
    """What a label is judged by when nobody has been able to look at it for too long."""

    DENY = "deny"
    """It takes nothing new."""
    LAST_KNOWN = "last_known"
    """By what was seen last, however old that is."""
    IGNORE = "ignore"
    """By nothing: it is left out in judging."""


@dataclass(frozen=True, slots=True)
class StoreProvider:
    """Store a provider, or what changed of it. Refused where it would tie with another one."""

    type: str
    name: str
    labels: Selector
    config: Mapping[str, object] = field(repr=False)
    """Without its secrets: a mark stands in their places."""
    secrets: str | None = field(default=None, repr=False)
    """Encrypted."""
    stale_policy: StalePolicy = StalePolicy.DENY
    refresh_seconds: int = 10
    stale_seconds: int = 60
    protected: Amounts = field(default_factory=dict)
    based_on: int | None = None
    """The version that its author has seen, None for none: if there is another by now nothing happens."""


@dataclass(frozen=True, slots=True)
class RemoveProvider:
    """Take a provider away."""

    type: str
    name: str


@dataclass(frozen=True, slots=True)
class StoredProvider:
    """A provider as its row holds it. Times are microseconds UTC."""

    type: str
    name: str
    labels: Selector
    config: Mapping[str, object] = field(repr=False)
    secrets: str | None = field(repr=False)
    stale_policy: StalePolicy
    refresh_seconds: int
    stale_seconds: int
    protected: Amounts
    version: int
    """The number of the event that tells of it: another one for each change."""
    created_at: Instant
    updated_at: Instant
    fault: str | None = None
    """Why its row cannot be read; it then speaks for nothing, and what could be read of it is here."""

    @property
    def key(self) -> str:
        return provider_key(self.type, self.name)


def provider_key(type_: str, name: str) -> str:
    """What a provider is called in events and logs: `yarn/c1`."""
    return f"{type_}/{name}"


def most_specific_first(providers: Iterable[StoredProvider]) -> list[StoredProvider]:
    """The order in which they are asked whether a label is theirs; no two of a kind accept the same."""
    return sorted(providers, key=lambda each: len(each.labels.requirements), reverse=True)


def speaking_for(ordered: Iterable[StoredProvider], tags: Tags) -> StoredProvider | None:
    """Which of the providers of one type, the most specific first, speaks for a label of these tags."""
    return next((each for each in ordered if each.fault is None and each.labels.matches(tags)), None)


def tied_with(stored: StoreProvider, others: Iterable[StoredProvider]) -> StoredProvider | None:
    """A provider that some label could belong to just as well as to the one to be stored."""
    for other in others:
        if other.type != stored.type or other.name == stored.name or other.fault is not None:
            continue
        as_specific = len(other.labels.requirements) == len(stored.labels.requirements)
        if as_specific and not are_disjoint(stored.labels, other.labels):
            return other
    return None


def are_disjoint(left: Selector, right: Selector) -> bool:
    """Whether it is certain that no tags fulfil both: some key cannot be as both want it."""
    keys = {each.key for each in left.requirements} & {each.key for each in right.requirements}
    return any(
        _cannot_hold([each for each in (*left.requirements, *right.requirements) if each.key == key])
        for key in keys
    )


def _cannot_hold(requirements: list[Requirement]) -> bool:
    """Whether no value of their one key, and not its absence, fulfils all of them."""
    key = requirements[0].key
    if any(each.operator is Operator.MISSING for each in requirements):
        return not all(each.matches({}) for each in requirements)
    choice = next((each for each in requirements if each.operator is Operator.IN), None)
    if choice is not None:
        return not any(all(each.matches({key: value}) for each in requirements) for value in choice.values)
    least = [int(each.values[0]) + _LOWER[each.operator] for each in requirements if each.operator in _LOWER]
    most = [int(each.values[0]) + _UPPER[each.operator] for each in requirements if each.operator in _UPPER]
    return bool(least and most) and max(least) > min(most)
