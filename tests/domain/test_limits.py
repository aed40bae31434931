from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.label_rules import LabelRules
from rm_service.domain.limits import Limit, LimitError, Limits, check_limit

RULES = LabelRules.from_document(
    [
        {"name": "node", "keys": ["node"], "kind": "capacity"},
        {"name": "user", "keys": ["user"], "kind": "quota"},
        {"name": "queue", "keys": ["queue"], "kind": "quota", "hierarchical": "."},
        {"name": "abc", "keys": ["a", "b", "c"], "kind": "quota"},
        {"name": "abcd", "keys": ["a", "b", "c", "d"], "kind": "quota"},
        {"name": "driver", "keys": ["driver"], "kind": "quota", "dimensions": ["!yarn.*"]},
        {"name": "creator", "keys": ["creator"], "kind": "rollup"},
    ]
)


def limits_on(*tags: dict[str, str], rules: LabelRules = RULES) -> Limits:
    """Limits on these tags, numbered from 0."""
    return Limits([Limit(at, each, {"memory": at}, {}) for at, each in enumerate(tags)], rules)


def resolved(limits: Limits, tags: dict[str, str]) -> int | None:
    limit = limits.resolve(tags)
    return None if limit is None else limit.id


def test_a_literal_limit_counts_for_its_value_alone() -> None:
    limits = limits_on({"user": "alice"})
    assert resolved(limits, {"user": "alice"}) == 0
    assert resolved(limits, {"user": "bob"}) is None


def test_a_star_gives_every_value_its_own_and_a_literal_wins_over_it() -> None:
    limits = limits_on({"user": "*"}, {"user": "alice"})
    assert resolved(limits, {"user": "bob"}) == 0
    assert resolved(limits, {"user": "alice"}) == 1


def test_limits_compete_only_within_one_set_of_keys() -> None:
    limits = limits_on({"user": "*"}, {"queue": "root"})
    assert resolved(limits, {"user": "alice"}) == 0
    assert resolved(limits, {"queue": "root"}) == 1
    assert resolved(limits, {"user": "alice", "queue": "root"}) is None


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"a": "1", "b": "1", "c": "*"}, {"a": "*", "b": "*", "c": "1"}),
        ({"a": "*", "b": "1", "c": "1"}, {"a": "1", "b": "*", "c": "*"}),
        ({"a": "1", "b": "*", "c": "*"}, {"a": "*", "b": "1", "c": "*"}),
        ({"a": "*", "b": "1", "c": "*"}, {"a": "*", "b": "*", "c": "1"}),
        ({"a": "1", "b": "*", "c": "1"}, {"a": "*", "b": "1", "c": "1"}),
        ({"a": "1", "b": "1", "c": "*"}, {"a": "1", "b": "*", "c": "1"}),
        ({"a": "*", "b": "*", "c": "1"}, {"a": "*", "b": "*", "c": "*"}),
        ({"a": "1", "b": "*", "c": "*", "d": "1"}, {"a": "*", "b": "1", "c": "1", "d": "*"}),
    ],
)
def test_more_literals_win_and_a_tie_goes_to_the_first_key(
    better: dict[str, str], worse: dict[str, str]
) -> None:
    everything_is_1 = dict.fromkeys(better, "1")
    assert resolved(limits_on(better, worse), everything_is_1) == 0
    assert resolved(limits_on(worse, better), everything_is_1) == 1


def test_the_winner_counts_whole_so_an_empty_total_frees_a_label() -> None:
    limits = Limits([Limit(1, {"user": "*"}, {"memory": 1}, {}), Limit(2, {"user": "alice"}, {}, {})], RULES)
    winner = limits.resolve({"user": "alice"})
    assert winner is not None
    assert winner.total == {}


def test_a_star_on_a_hierarchical_key_gives_each_level_its_own() -> None:
    limits = limits_on({"queue": "*"}, {"queue": "root.a"})
    found = [resolved(limits, dict(label.tags)) for label in RULES.labels_for({"queue": "root.a.b"})]
    assert found == [0, 1, 0]


def test_a_limit_that_the_rules_no_longer_judge_is_set_aside() -> None:
    limits = limits_on({"node": "n1"}, {"shoe": "size"}, {"user": "*"})
    assert [limit.id for limit in limits.ignored] == [0, 1]
    assert resolved(limits, {"node": "n1"}) is None
    assert resolved(limits, {"shoe": "size"}) is None


def test_two_limits_on_the_same_tags_are_an_error() -> None:
    with pytest.raises(LimitError, match="user=alice"):
        limits_on({"user": "alice"}, {"user": "alice"})


def by_the_book(limits: Sequence[Limit], tags: dict[str, str]) -> int | None:
    """The specification: look at all limits, rank those that fit."""
    fitting = [
        limit
        for limit in limits
        if limit.tags.keys() == tags.keys() and all(limit.tags[key] in ("*", tags[key]) for key in tags)
    ]

    def rank(limit: Limit) -> tuple[int, list[int]]:
        stars = [1 if limit.tags[key] == "*" else 0 for key in sorted(limit.tags)]
        return (sum(stars), stars)

    return min(fitting, key=rank).id if fitting else None


key_sets = st.sampled_from([("user",), ("queue",), ("a", "b", "c"), ("a", "b", "c", "d")])
limit_tags = key_sets.flatmap(
    lambda keys: st.fixed_dictionaries({key: st.sampled_from("*12") for key in keys})
)
label_tags = key_sets.flatmap(
    lambda keys: st.fixed_dictionaries({key: st.sampled_from("123") for key in keys})
)


@given(st.lists(limit_tags, unique_by=lambda tags: tuple(sorted(tags.items()))), label_tags)
def test_resolving_agrees_with_looking_at_all_limits(
    all_tags: list[dict[str, str]], tags: dict[str, str]
) -> None:
    limits = [Limit(at, each, {}, {}) for at, each in enumerate(all_tags)]
    assert resolved(Limits(limits, RULES), tags) == by_the_book(limits, tags)


@pytest.mark.parametrize(
    ("tags", "total", "protected"),
    [
        ({"user": "alice"}, {"memory": 10}, {"memory": 10}),
        ({"user": "*"}, {"memory": 0}, {}),
        ({"user": "alice"}, {}, {}),
        ({"queue": "root.a", "app": "*"}, {"memory": 2**63 - 1}, {}),
        ({"creator": "IDE"}, {"memory": 1}, {}),
    ],
)
def test_a_limit_may_be_set(tags: dict[str, str], total: dict[str, int], protected: dict[str, int]) -> None:
    assert check_limit(tags, total, protected, RULES) == tags


@pytest.mark.parametrize(
    ("tags", "total", "protected", "field"),
    [
        ({}, {"memory": 1}, {}, "tags"),
        (None, {"memory": 1}, {}, "tags"),
        ({f"k{number}": "*" for number in range(9)}, {}, {}, "tags"),
        ({"user": 7}, {"memory": 1}, {}, "tags.user"),
        ({"user": "team-*"}, {"memory": 1}, {}, "tags.user"),
        ({"queue": "root..a"}, {"memory": 1}, {}, "tags.queue"),
        ({"node": "n1"}, {"memory": 1}, {}, "tags"),
        ({"user": "alice"}, {"memory": -1}, {}, "total.memory"),
        ({"user": "alice"}, {"memory": 2**63}, {}, "total.memory"),
        ({"user": "alice"}, {"memory": 1}, {"memory": -1}, "protected.memory"),
        ({"user": "alice"}, {"memory": 1}, {"memory": 2}, "protected.memory"),
        ({"user": "alice"}, {"memory": 1}, {"vcore": 0}, "protected.vcore"),
        ({"driver": "d"}, {"yarn.memory": 1}, {}, "total.yarn.memory"),
    ],
)
def test_a_limit_is_refused_with_its_field(
    tags: object, total: dict[str, int], protected: dict[str, int], field: str
) -> None:
    with pytest.raises(LimitError) as caught:
        check_limit(tags, total, protected, RULES)
    assert caught.value.field == field
    assert caught.value.reason
