"""Which tag combinations a source is asked for before an application."""

import pytest

from rm_service.domain.label_rules import LabelRules
from rm_service.domain.tags import TagError, Tags
from rm_service.services.limit_sources.combinations import combinations_of

RULES = LabelRules.from_document(
    [
        {"name": "user", "keys": ["user"], "kind": "quota"},
        {"name": "node", "keys": ["node"], "kind": "capacity"},
        {
            "name": "queue",
            "keys": ["queue"],
            "kind": "quota",
            "hierarchical": {"queue": "."},
            "unless": ["partition"],
        },
    ]
)


def asked(tags: Tags, *key_sets: tuple[str, ...]) -> list[dict[str, str]]:
    return [dict(each) for each in combinations_of(tags, key_sets, RULES)]


def test_one_for_each_key_set_that_it_carries() -> None:
    tags = {"user": "alice", "creator": "IDE", "app": "7"}
    both = [("user",), ("creator", "user"), ("engineType", "user")]
    assert asked(tags, *both) == [{"user": "alice"}, {"creator": "IDE", "user": "alice"}]


def test_each_level_of_a_hierarchy_has_limits_of_its_own() -> None:
    assert asked({"queue": "root.a"}, ("queue",)) == [{"queue": "root"}, {"queue": "root.a"}]


def test_what_is_not_charged_is_not_asked_for() -> None:
    assert asked({"queue": "root.a", "partition": "p"}, ("queue",)) == []


def test_a_capacity_has_what_is_registered_and_no_limit() -> None:
    assert asked({"node": "h1"}, ("node",)) == []


@pytest.mark.parametrize("user", ["*", "al*ce"])
def test_a_value_with_a_star_is_not_asked_for_because_its_limit_would_be_one_on_others(user: str) -> None:
    assert asked({"user": user}, ("user",)) == []


def test_levels_of_several_hierarchies_may_not_be_without_number() -> None:
    rules = LabelRules.from_document(
        [{"name": each, "keys": [each], "kind": "quota", "hierarchical": {each: "."}} for each in ("a", "b")]
    )
    deep = ".".join("x" * 30)
    with pytest.raises(TagError, match="900 combinations of a\\+b"):
        combinations_of({"a": deep, "b": deep}, [("a", "b")], rules)
