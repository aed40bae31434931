"""Which tag combinations an application's tags make, by the key sets that a source is asked for."""

from collections.abc import Sequence
from itertools import product
from math import prod

from rm_service.domain.label_rules import MAX_LABELS, Kind, LabelRules
from rm_service.domain.limits import ANY
from rm_service.domain.tags import TagError, Tags

Combination = tuple[tuple[str, str], ...]
"""Tags in the order of their keys."""


def combinations_of(tags: Tags, key_sets: Sequence[tuple[str, ...]], rules: LabelRules) -> list[Combination]:
    """What a source is asked for before an application with these (converted, checked) tags.

    Left out are key sets that it does not carry or that are not charged, capacities (their total is what is
    registered), and values that hold `*`: a limit on these would be one on others, too. Raises TagError where
    levels of hierarchical tags make more than 512.
    """
    found: list[Combination] = []
    for keys in key_sets:
        if not all(key in tags for key in keys) or any(ANY in tags[key] for key in keys):
            continue
        rule = rules.rule_for(frozenset(keys))
        if rule is not None and (rule.kind is Kind.CAPACITY or not rule.applies(tags.keys())):
            continue
        levels = [[(key, value) for value in rules.levels(key, tags[key])] for key in keys]
        count = prod(len(each) for each in levels)
        if count > MAX_LABELS:
            raise TagError(
                "", f"make {count} combinations of {'+'.join(keys)}, at most {MAX_LABELS} are allowed"
            )
        found += product(*levels)
    return found
