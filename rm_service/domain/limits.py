"""Limits: how much a combination of tags may hold, and which limit counts for a label.

Limits compete only within one set of tag keys. `*` stands for any value; more literal values win over `*`, a
tie goes to the literal in the key that sorts first, and the winner counts whole, not dimension by dimension.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rm_service.domain.amounts import INT64_MAX, Amounts
from rm_service.domain.declared_rules import MAX_RULE_KEYS
from rm_service.domain.label_rules import Kind, LabelRules
from rm_service.domain.tags import TagError, Tags, canonical_key, check_tags

ANY = "*"
OPERATOR = "operator"
_SOURCE = "[source:"


class LimitError(ValueError):
    """A limit cannot be. `field` names the place, like `tags.user` or `protected.memory`."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        self.reason = reason
        super().__init__(f"{field}: {reason}")


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on the labels with these tags, where the value `*` gives every value its own.

    A dimension that `total` lacks is unlimited; an explicit 0 forbids it.
    """

    id: int
    tags: Tags
    total: Amounts
    protected: Amounts
    owner: str | None = None
    """Whose word it is: a resource manager's id, or a limit source (`source_owner`); None: an operator's."""

    @property
    def source(self) -> str:
        """Whose word it is, for people: `operator`, `rm:ID`, or the name of a limit source."""
        if self.owner is None:
            return OPERATOR
        if self.owner.startswith(_SOURCE):
            return self.owner.removeprefix(_SOURCE).removesuffix("]")
        return f"rm:{self.owner}"


@dataclass(frozen=True, slots=True)
class LimitTerms:
    """What somebody says about the labels with these tags, before it has become a limit."""

    tags: Tags
    total: Amounts
    protected: Amounts = field(default_factory=dict)


def source_owner(name: str) -> str:
    """The owner of what a limit source says. No resource manager's id holds brackets."""
    return f"{_SOURCE}{name}]"


@dataclass(frozen=True, slots=True)
class _Pattern:
    """The limits that are literal in the same keys, by the values of those keys."""

    literal_keys: tuple[str, ...]
    limits: dict[tuple[str, ...], Limit]


class Limits:
    """All limits in force. Immutable.

    `ignored` holds the limits that count nowhere, because these rules make their keys capacity or do not name
    them.
    """

    def __init__(self, limits: Iterable[Limit], rules: LabelRules) -> None:
        """Raises LimitError if two limits have the same tags."""
        patterns: dict[frozenset[str], dict[tuple[str, ...], _Pattern]] = {}
        ignored: list[Limit] = []
        for limit in limits:
            keys = frozenset(limit.tags)
            rule = rules.rule_for(keys)
            if rule is None or rule.kind is Kind.CAPACITY:
                ignored.append(limit)
                continue
            literal_keys = tuple([key for key in sorted(keys) if limit.tags[key] != ANY])
            pattern = patterns.setdefault(keys, {}).setdefault(literal_keys, _Pattern(literal_keys, {}))
            values = tuple([limit.tags[key] for key in literal_keys])
            if pattern.limits.setdefault(values, limit) is not limit:
                raise LimitError("tags", f"two limits have the tags {canonical_key(limit.tags)}")
        self.ignored = tuple(ignored)
        self._patterns: Mapping[frozenset[str], tuple[_Pattern, ...]] = {
            keys: tuple(sorted(by_literals.values(), key=_preference))
            for keys, by_literals in patterns.items()
        }

    def resolve(self, label_tags: Tags) -> Limit | None:
        """The limit that counts for a label, None if there is none.

        Looks at one entry for each combination of literal keys that limits on these keys use, never at all
        limits.
        """
        for pattern in self._patterns.get(frozenset(label_tags), ()):
            limit = pattern.limits.get(tuple([label_tags[key] for key in pattern.literal_keys]))
            if limit is not None:
                return limit
        return None


def check_limit(tags: object, total: Amounts, protected: Amounts, rules: LabelRules) -> dict[str, str]:
    """The tags of a limit that may be set under these rules.

    Raises LimitError: no tags or more than 8, a bad tag, a capacity label (its total is what was registered),
    an amount below 0 or above 64 bits, a dimension that the label is not charged in, `protected` above
    `total` or in a dimension that `total` leaves unlimited (nothing of an unlimited amount can be kept back).
    An empty total is allowed: as the more specific limit it frees a label from the general one.
    """
    checked = _check_tags(tags, rules)
    rule = rules.rule_for(frozenset(checked))
    if rule is not None and rule.kind is Kind.CAPACITY:
        raise LimitError(
            "tags", f"label rule {rule.name!r} is a capacity: its total is what is registered there"
        )
    for part, amounts in (("total", total), ("protected", protected)):
        for dimension, amount in amounts.items():
            if not 0 <= amount <= INT64_MAX:
                raise LimitError(f"{part}.{dimension}", "must be between 0 and 2^63 - 1")
            if rule is not None and not rule.charges(dimension):
                raise LimitError(
                    f"{part}.{dimension}", f"label rule {rule.name!r} does not charge this dimension"
                )
    for dimension, amount in protected.items():
        if dimension not in total:
            raise LimitError(f"protected.{dimension}", "has no total: the dimension is unlimited")
        if amount > total[dimension]:
            raise LimitError(f"protected.{dimension}", f"{amount} is more than the total {total[dimension]}")
    return checked


def _check_tags(document: object, rules: LabelRules) -> dict[str, str]:
    try:
        tags = check_tags(document)
        for key, value in tags.items():
            rules.levels(key, value)
    except TagError as error:
        raise LimitError(f"tags.{error.key}" if error.key else "tags", error.reason) from error
    if not 1 <= len(tags) <= MAX_RULE_KEYS:
        raise LimitError("tags", f"a limit needs 1 to {MAX_RULE_KEYS} tags")
    for key, value in tags.items():
        if ANY in value and value != ANY:
            raise LimitError(f"tags.{key}", "'*' stands for any value and is not part of one")
    return tags


def _preference(pattern: _Pattern) -> tuple[int, tuple[str, ...]]:
    return (-len(pattern.literal_keys), pattern.literal_keys)
