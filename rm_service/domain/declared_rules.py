"""One label rule as the operator wrote it: reading, writing, and the checks of rules against each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rm_service.domain.rule_documents import (
    RuleError,
    read_list,
    read_object,
    read_tag_key,
    read_tag_keys,
    read_text,
)

MAX_RULES = 256
MAX_RULE_KEYS = 8
MAX_PATTERNS = 64
MAX_PERCENT = 100
MAX_NAME_LENGTH = 128 * MAX_RULE_KEYS + 32

LIMIT_PREFIX = "limit:"
_FIELDS = (
    "name",
    "keys",
    "kind",
    "dimensions",
    "hierarchical",
    "unless",
    "even_with",
    "external",
    "thresholds",
    "counts",
)


class Kind(StrEnum):
    """How a label judges: capacity needs a registration, a quota needs a limit, a roll-up only counts."""

    CAPACITY = "capacity"
    QUOTA = "quota"
    ROLLUP = "rollup"

    @property
    def strength(self) -> int:
        """The kind of merged rules is the one with the greatest strength."""
        return {"capacity": 2, "quota": 1, "rollup": 0}[self.value]


@dataclass(frozen=True, slots=True)
class DeclaredRule:
    """One rule; see docs/label-rules.md for its fields. No `dimensions` means all of them."""

    name: str
    keys: frozenset[str]
    kind: Kind
    dimensions: tuple[str, ...] = ()
    separators: tuple[tuple[str, str], ...] = ()
    unless: frozenset[str] = frozenset()
    even_with: frozenset[str] = frozenset()
    external: str | None = None
    thresholds: tuple[tuple[str, int], ...] = ()
    """Dimension and percentage of the total."""
    counts: str | None = None
    """The dimension in which each application counts as one, unless it says how many it is."""


def limit_rule_name(keys: frozenset[str]) -> str:
    """The name of the rule that a limit on these keys brings in."""
    return LIMIT_PREFIX + "+".join(sorted(keys))


def selects(patterns: Sequence[str], dimension: str) -> bool:
    """Whether a list of patterns selects a dimension.

    A pattern is a name, or a beginning of names and `*`; `!` before it takes away. A list that only takes
    away starts from all dimensions; the order within the list does not matter.
    """
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    unwanted = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    chosen = not wanted or any(_fits(pattern, dimension) for pattern in wanted)
    return chosen and not any(_fits(pattern, dimension) for pattern in unwanted)


def read_rule(document: object, path: str) -> DeclaredRule:
    """Read one rule. Raises RuleError naming the place."""
    if document is None:
        raise RuleError(path, "must be an object")
    fields = read_object(document, path, _FIELDS)
    keys = read_tag_keys(fields.get("keys"), f"{path}.keys", MAX_RULE_KEYS)
    if not keys:
        raise RuleError(f"{path}.keys", "must name at least one tag key")
    kind = _read_kind(fields.get("kind"), f"{path}.kind")
    dimensions = _read_dimensions(fields.get("dimensions"), f"{path}.dimensions")
    return DeclaredRule(
        name=_read_name(fields.get("name"), keys, f"{path}.name"),
        keys=keys,
        kind=kind,
        dimensions=dimensions,
        separators=_read_separators(fields.get("hierarchical"), keys, f"{path}.hierarchical"),
        unless=_read_unless(fields.get("unless"), keys, f"{path}.unless"),
        even_with=read_tag_keys(fields.get("even_with"), f"{path}.even_with", MAX_RULE_KEYS),
        external=_read_external(fields.get("external"), kind, f"{path}.external"),
        thresholds=_read_thresholds(fields.get("thresholds"), kind, f"{path}.thresholds"),
        counts=_read_counts(fields.get("counts"), dimensions, f"{path}.counts"),
    )


def write_rule(rule: DeclaredRule) -> dict[str, object]:
    """The document that `read_rule` reads back into an equal rule."""
    document: dict[str, object] = {"name": rule.name, "keys": sorted(rule.keys), "kind": rule.kind.value}
    if rule.dimensions:
        document["dimensions"] = list(rule.dimensions)
    if rule.separators:
        document["hierarchical"] = dict(rule.separators)
    if rule.unless:
        document["unless"] = sorted(rule.unless)
    if rule.even_with:
        document["even_with"] = sorted(rule.even_with)
    if rule.external:
        document["external"] = rule.external
    if rule.thresholds:
        document["thresholds"] = dict(rule.thresholds)
    if rule.counts:
        document["counts"] = rule.counts
    return document


def check_together(rules: Sequence[DeclaredRule], path: str) -> None:
    """Raise RuleError where one rule contradicts an earlier one."""
    names: set[str] = set()
    separators: dict[str, str] = {}
    first: dict[frozenset[str], DeclaredRule] = {}
    external: dict[frozenset[str], str] = {}
    for at, rule in enumerate(rules):
        here = f"{path}[{at}]"
        if rule.name in names:
            raise RuleError(f"{here}.name", f"{rule.name!r} names an earlier rule too")
        names.add(rule.name)
        for key, separator in rule.separators:
            if separators.setdefault(key, separator) != separator:
                raise RuleError(
                    f"{here}.hierarchical", f"{key!r} has the separator {separators[key]!r} already"
                )
        earlier = first.setdefault(rule.keys, rule)
        for field, differs in (
            ("unless", earlier.unless != rule.unless),
            ("even_with", earlier.even_with != rule.even_with),
            ("thresholds", earlier.thresholds != rule.thresholds),
            ("counts", earlier.counts != rule.counts),
        ):
            if differs:
                raise RuleError(
                    f"{here}.{field}", f"differs from that of {earlier.name!r}, which has the same keys"
                )
        if rule.external and external.setdefault(rule.keys, rule.external) != rule.external:
            raise RuleError(
                f"{here}.external", f"another rule with the same keys has {external[rule.keys]!r}"
            )


def _read_name(document: object, keys: frozenset[str], path: str) -> str:
    name = read_text(document, path)
    if len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise RuleError(path, f"must be at most {MAX_NAME_LENGTH} printable characters")
    if name.startswith(LIMIT_PREFIX) and name != limit_rule_name(keys):
        raise RuleError(
            path, f"names that begin with {LIMIT_PREFIX!r} are kept for rules that limits bring in"
        )
    return name


def _read_kind(document: object, path: str) -> Kind:
    try:
        return Kind(read_text(document, path))
    except ValueError as error:
        raise RuleError(path, f"must be one of {', '.join(Kind)}") from error


def _read_dimensions(document: object, path: str) -> tuple[str, ...]:
    patterns = tuple(
        [_read_pattern(pattern, f"{path}[{at}]") for at, pattern in enumerate(read_list(document, path))]
    )
    if document is not None and not patterns:
        raise RuleError(path, "must name a dimension; leave it out for all of them")
    if len(patterns) > MAX_PATTERNS:
        raise RuleError(path, f"at most {MAX_PATTERNS} patterns are allowed")
    return () if patterns == ("*",) else patterns


def _read_pattern(document: object, path: str) -> str:
    pattern = read_text(document, path)
    name = pattern.removeprefix("!")
    if not name or "*" in name[:-1] or name.startswith("!") or any(character.isspace() for character in name):
        raise RuleError(
            path, "must be a dimension's name, or its beginning and '*', after '!' to leave it out"
        )
    return pattern


def _read_separators(document: object, keys: frozenset[str], path: str) -> tuple[tuple[str, str], ...]:
    if isinstance(document, str):
        if len(keys) > 1:
            raise RuleError(path, "with several keys, write which one: an object of key and separator")
        document = dict.fromkeys(keys, document)
    separators = read_object(document, path, sorted(keys))
    return tuple([(key, _read_separator(separators[key], f"{path}.{key}")) for key in sorted(separators)])


def _read_separator(document: object, path: str) -> str:
    separator = read_text(document, path)
    if len(separator) > 1 or separator.isalnum() or not separator.isprintable():
        raise RuleError(path, "must be one character that is neither a letter nor a digit")
    return separator


def _read_unless(document: object, keys: frozenset[str], path: str) -> frozenset[str]:
    unless = read_tag_keys(document, path, MAX_RULE_KEYS)
    if unless & keys:
        raise RuleError(path, f"{min(unless & keys)!r} is among the keys, so the rule would never apply")
    return unless


def _read_external(document: object, kind: Kind, path: str) -> str | None:
    if document is None:
        return None
    if kind is not Kind.CAPACITY:
        raise RuleError(path, "only a capacity rule can have its capacity from outside")
    return read_tag_key(document, path)


def _read_counts(document: object, dimensions: Sequence[str], path: str) -> str | None:
    if document is None:
        return None
    dimension = read_tag_key(document, path)
    if dimensions and not selects(dimensions, dimension):
        raise RuleError(path, f"{dimension!r} is not among the dimensions that the rule charges")
    return dimension


def _read_thresholds(document: object, kind: Kind, path: str) -> tuple[tuple[str, int], ...]:
    if document is None:
        return ()
    if kind is Kind.ROLLUP:
        raise RuleError(path, "a roll-up has no total to have a part of")
    if not isinstance(document, dict) or not document or len(document) > MAX_PATTERNS:
        raise RuleError(path, f"must be an object of 1 to {MAX_PATTERNS} dimensions and their percentages")
    for dimension, percentage in document.items():
        if not isinstance(dimension, str) or not dimension:
            raise RuleError(path, "a dimension is a text")
        if type(percentage) is not int or not 1 <= percentage <= MAX_PERCENT:
            raise RuleError(f"{path}.{dimension}", f"must be a whole number from 1 to {MAX_PERCENT}")
    return tuple(sorted(document.items()))


def _fits(pattern: str, dimension: str) -> bool:
    return dimension.startswith(pattern[:-1]) if pattern.endswith("*") else dimension == pattern
