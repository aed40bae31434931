"""Label rules: which labels an application is charged to, and in which dimensions.

A rule names the tag keys that it needs; an application that carries them is charged to the label of those
tags. The operator's page is docs/label-rules.md.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Self

from rm_service.domain.amounts import Amounts
from rm_service.domain.declared_rules import (
    MAX_RULES,
    DeclaredRule,
    Kind,
    check_together,
    limit_rule_name,
    read_rule,
    selects,
    write_rule,
)
from rm_service.domain.rule_documents import RuleError, read_list
from rm_service.domain.tags import TagError, Tags, label_key

__all__ = ["ChargedLabel", "Kind", "LabelRule", "LabelRules", "RuleError", "limit_rule_name"]

MAX_LEVELS = 32
MAX_LABELS = 512


class _Verdicts(dict[str, bool]):
    """Whether each dimension is charged, found out once; bounded, because callers invent dimensions."""

    def __init__(self, patterns: Sequence[Sequence[str]]) -> None:
        super().__init__()
        self._patterns = patterns

    def __missing__(self, dimension: str) -> bool:
        if len(self) >= 1024:
            self.clear()
        verdict = self[dimension] = any(selects(patterns, dimension) for patterns in self._patterns)
        return verdict


@dataclass(frozen=True, slots=True)
class LabelRule:
    """What is charged to the labels of one set of tag keys: all declared rules with these keys, merged."""

    name: str
    keys: frozenset[str]
    kind: Kind
    dimensions: tuple[tuple[str, ...], ...] = ()
    """Lists of patterns, one a merged rule: charged is what any of them selects. Empty: every dimension."""
    unless: frozenset[str] = frozenset()
    """An application that carries one of these tag keys is not charged,"""
    even_with: frozenset[str] = frozenset()
    """unless it carries one of these, too."""
    external: str | None = None
    """The type of external provider that knows the capacity."""
    thresholds: tuple[tuple[str, int], ...] = ()
    """Dimensions with a percentage of the total: an application that may as well go elsewhere does so before
    it is exceeded here.
    """
    counts: str | None = None
    """The dimension in which each application that is charged here counts as one. A label whose total does
    not name it takes any number of them.
    """
    _verdicts: _Verdicts = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_verdicts", _Verdicts(self.dimensions))

    def applies(self, keys: AbstractSet[str]) -> bool:
        """Whether an application that carries these tag keys is charged."""
        barred = not self.unless.isdisjoint(keys) and self.even_with.isdisjoint(keys)
        return self.keys <= keys and not barred

    def charges(self, dimension: str) -> bool:
        """Whether this dimension is charged."""
        return not self.dimensions or self._verdicts[dimension]

    def charge(self, amounts: Amounts) -> Amounts:
        """The part of the amounts that is charged: the same object when that is all of it."""
        if not self.dimensions:
            return amounts
        verdicts = self._verdicts
        for dimension in amounts:
            if not verdicts[dimension]:
                return {name: amount for name, amount in amounts.items() if verdicts[name]}
        return amounts


@dataclass(frozen=True, slots=True)
class ChargedLabel:
    """One label that an application is charged to. `tags` is shared: do not change it."""

    key: str
    """The text under which the label is stored."""
    tags: Tags = field(compare=False)
    rule: LabelRule


class LabelRules:
    """All label rules in force. Immutable: `with_quota` makes another one.

    `rules` holds one merged rule for each set of keys, in the order in which the sets were first declared.
    `separators` gives the separator of each hierarchical tag key.
    """

    def __init__(self, declared: Sequence[DeclaredRule]) -> None:
        self._declared = tuple(declared)
        self.rules = tuple(_merge(self._declared))
        self.separators: Mapping[str, str] = MappingProxyType(
            {key: separator for rule in self._declared for key, separator in rule.separators}
        )
        self._by_keys = {rule.keys: rule for rule in self.rules}
        self.external = tuple([rule for rule in self.rules if rule.external is not None])
        self._counting = tuple([rule for rule in self.rules if rule.counts is not None])
        self.keys: tuple[str, ...] = tuple(sorted(frozenset().union(*self._named_keys())))
        """Every tag key on which it depends what is charged."""
        # A label is made once for each combination of values, not once an application: this is the hot path.
        self._applicable = lru_cache(maxsize=1024)(self._rules_of)
        self._labels = lru_cache(maxsize=32768)(self._labels_of)

    @classmethod
    def from_document(cls, document: object, path: str = "label_rules") -> Self:
        """Read the list of rules from a parsed YAML or JSON document. Raises RuleError naming the place."""
        documents = read_list(document, path)
        if len(documents) > MAX_RULES:
            raise RuleError(path, f"at most {MAX_RULES} rules are allowed")
        declared = [read_rule(rule, f"{path}[{at}]") for at, rule in enumerate(documents)]
        check_together(declared, path)
        return cls(declared)

    def to_document(self) -> list[dict[str, object]]:
        """The declared rules as a document that `from_document` reads back into equal rules."""
        return [write_rule(rule) for rule in self._declared]

    def rule_for(self, keys: frozenset[str]) -> LabelRule | None:
        """The rule of exactly this set of tag keys."""
        return self._by_keys.get(keys)

    def labels_for(self, tags: Tags) -> tuple[ChargedLabel, ...]:
        """The labels that an application with these (checked) tags is charged to.

        In the order of the rules, the root of a hierarchy first; each label once. Raises TagError for a value
        of a hierarchical key with an empty or more than 32 levels, and for more than 512 labels.
        """
        labels: list[ChargedLabel] = []
        for index, keys in self._applicable(frozenset(tags)):
            labels += self._labels(index, tuple([tags[key] for key in keys]))
        if len(labels) > MAX_LABELS:
            raise TagError("", f"are charged to {len(labels)} labels, at most {MAX_LABELS} are allowed")
        return tuple(labels)

    def counted(self, choices: Sequence[Tags], resource: Amounts) -> Amounts:
        """What is asked for, with one application in each dimension in which a label of any of these tags
        counts them; a dimension that it names is kept. The same object where nothing is added.
        """
        ones = {
            rule.counts: 1
            for rule in self._counting
            if rule.counts is not None
            and rule.counts not in resource
            and any(rule.applies(tags.keys()) for tags in choices)
        }
        return {**resource, **ones} if ones else resource

    def levels(self, key: str, value: str) -> tuple[str, ...]:
        """The values that a tag is charged under.

        For a hierarchical key `root.a.b` gives `root`, `root.a`, `root.a.b`; else it is the value alone.
        Raises TagError as `labels_for` does.
        """
        separator = self.separators.get(key)
        if separator is None:
            return (value,)
        parts = value.split(separator)
        if "" in parts:
            raise TagError(key, f"{value!r} has an empty level between {separator!r}")
        if len(parts) > MAX_LEVELS:
            raise TagError(key, f"has {len(parts)} levels, at most {MAX_LEVELS} are allowed")
        return tuple([separator.join(parts[: depth + 1]) for depth in range(len(parts))])

    def with_quota(self, keys: frozenset[str]) -> "LabelRules":
        """These rules, where a limit on this set of keys is judged.

        No rule names the keys: a quota rule for them is added (what already runs is to be counted in). A
        roll-up becomes a quota in the same dimensions (its balances stand). Otherwise the same object.
        """
        rule = self.rule_for(keys)
        if rule is not None and rule.kind is not Kind.ROLLUP:
            return self
        added = DeclaredRule(
            name=limit_rule_name(keys),
            keys=keys,
            kind=Kind.QUOTA,
            dimensions=rule.dimensions[0] if rule and rule.dimensions else (),
            unless=rule.unless if rule else frozenset(),
            even_with=rule.even_with if rule else frozenset(),
        )
        return LabelRules.from_document([*self.to_document(), write_rule(added)])

    def rollup(self, keys: frozenset[str]) -> tuple[LabelRule, ...]:
        """The rules whose balances, summed by these keys, are the usage by them; empty if there are none.

        Together their labels hold each application that carries the keys, once (at each level of a hierarchy)
        and in every dimension. A rule with `unless: [partition]` is made whole by the rule of its keys and
        `partition`, where there is one.
        """
        rule = self.rule_for(keys)
        if rule is None or rule.dimensions:
            return ()
        if not rule.unless:
            return (rule,)
        rest = self.rule_for(keys | rule.unless)
        if len(rule.unless) > 1 or rest is None or rest.unless != rule.even_with or rest.dimensions:
            return ()
        if not rule.unless.isdisjoint(self.separators):
            return ()  # the other rule's labels repeat an application at each level
        return (rule, rest)

    def _named_keys(self) -> list[frozenset[str]]:
        return [rule.keys | rule.unless | rule.even_with for rule in self.rules]

    def __eq__(self, other: object) -> bool:
        return self._declared == other._declared if isinstance(other, LabelRules) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._declared)

    def _rules_of(self, keys: frozenset[str]) -> tuple[tuple[int, tuple[str, ...]], ...]:
        return tuple(
            [(index, tuple(sorted(rule.keys))) for index, rule in enumerate(self.rules) if rule.applies(keys)]
        )

    def _labels_of(self, index: int, values: tuple[str, ...]) -> tuple[ChargedLabel, ...]:
        rule = self.rules[index]
        keys = sorted(rule.keys)
        levels = [self.levels(key, value) for key, value in zip(keys, values, strict=True)]
        count = prod(len(each) for each in levels)
        if count > MAX_LABELS:
            raise TagError("", f"are charged to {count} labels, at most {MAX_LABELS} are allowed")
        labels = [dict(zip(keys, combination, strict=True)) for combination in product(*levels)]
        return tuple([ChargedLabel(label_key(tags), tags, rule) for tags in labels])


def _merge(declared: Sequence[DeclaredRule]) -> list[LabelRule]:
    """One rule for each set of keys: the strongest kind wins and gives the name, dimensions are united."""
    groups: dict[frozenset[str], list[DeclaredRule]] = {}
    for rule in declared:
        groups.setdefault(rule.keys, []).append(rule)
    return [_merged(group) for group in groups.values()]


def _merged(group: Sequence[DeclaredRule]) -> LabelRule:
    strongest = max(group, key=lambda rule: rule.kind.strength)
    patterns = tuple(dict.fromkeys(rule.dimensions for rule in group))
    return LabelRule(
        name=strongest.name,
        keys=strongest.keys,
        kind=strongest.kind,
        dimensions=patterns if all(patterns) else (),
        unless=strongest.unless,
        even_with=strongest.even_with,
        external=next((rule.external for rule in group if rule.external), None),
        thresholds=strongest.thresholds,
        counts=strongest.counts,
    )
