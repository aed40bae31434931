from typing import Any

import pytest

from rm_service.domain.label_rules import LabelRules
from rm_service.domain.limits import Limit, Limits, check_limit
from rm_service.domain.queue_config import PartitionConfig
from rm_service.domain.queue_documents import read_configuration
from rm_service.domain.queue_limits import LimitRow, charged_group, limits_of
from tests.domain.queue_strategies import Document

NAME = "[rm-1]default"
RULES = LabelRules.from_document(
    [
        {"name": "queue", "keys": ["partition", "queue"], "kind": "quota", "hierarchical": {"queue": "."}},
        {"name": "user", "keys": ["partition", "queue", "user"], "kind": "quota"},
        {"name": "group", "keys": ["partition", "queue", "group"], "kind": "quota"},
    ]
)


def partition_of(*queues: Document, **fields: Any) -> PartitionConfig:
    """The one partition with these top queues."""
    return read_configuration({"partitions": [{"queues": list(queues), **fields}]}).partitions[0]


def rows_of(*queues: Document, **fields: Any) -> list[LimitRow]:
    return limits_of(partition_of(*queues, **fields), NAME)


def row(total: dict[str, int], **tags: str) -> LimitRow:
    return LimitRow({"partition": NAME, **tags}, total)


def test_a_queue_is_limited_by_its_maximum_and_its_applications() -> None:
    assert rows_of(
        {"name": "a", "resources": {"max": {"memory": "1Ki", "vcore": 0}}, "maxapplications": 5},
        {"name": "b"},
        {"name": "c", "maxapplications": 2},
    ) == [
        row({"memory": 1024, "vcore": 0, "apps": 5}, queue="root.a"),
        row({"apps": 2}, queue="root.c"),
    ]


def test_a_queue_whose_maximum_is_all_zero_has_no_limit() -> None:
    assert rows_of({"name": "a", "resources": {"max": {"memory": 0}}}) == []


def test_users_and_groups_are_limited_in_the_queue_that_says_so() -> None:
    limits = [
        {"users": ["bob", "ann"], "maxresources": {"vcore": 1}},
        {"users": ["*"], "groups": ["dev"], "maxapplications": 1},
    ]
    assert rows_of({"name": "a", "limits": limits}) == [
        row({"vcore": 1000}, queue="root.a", user="bob"),
        row({"vcore": 1000}, queue="root.a", user="ann"),
        row({"apps": 1}, queue="root.a", user="*"),
        row({"apps": 1}, queue="root.a", group="dev"),
    ]


def test_the_partitions_own_limits_are_roots_and_the_smaller_counts() -> None:
    mine = [{"users": ["bob"], "maxresources": {"memory": 5, "vcore": 1}}]
    roots = [{"users": ["bob"], "maxresources": {"memory": 7}, "maxapplications": 3}]
    assert rows_of({"name": "root", "limits": roots}, limits=mine) == [
        row({"memory": 5, "apps": 3, "vcore": 1000}, queue="root", user="bob")
    ]


def test_the_ledger_takes_every_row_and_gives_each_user_its_own() -> None:
    rows = rows_of(
        {
            "name": "a",
            "resources": {"max": {"memory": 9}},
            "limits": [{"users": ["bob", "*"], "groups": ["dev", "*"], "maxapplications": 1}],
        }
    )
    for each in rows:
        check_limit(each.tags, each.total, {}, RULES)
    limits = Limits([Limit(at, each.tags, each.total, {}) for at, each in enumerate(rows)], RULES)
    label = {"partition": NAME, "queue": "root.a"}
    for tags, expected in (
        ({}, {"memory": 9}),
        ({"user": "eve"}, {"apps": 1}),
        ({"group": "*"}, {"apps": 1}),
    ):
        limit = limits.resolve({**label, **tags})
        assert limit is not None
        assert limit.total == expected


GROUPS = partition_of(
    {
        "name": "root",
        "limits": [{"groups": ["dev", "*"], "maxapplications": 9}],
        "queues": [
            {"name": "a", "limits": [{"groups": ["ops", "sre"], "maxapplications": 1}]},
            {"name": "b"},
        ],
    }
)


@pytest.mark.parametrize(
    ("queue", "groups", "charged"),
    [
        ("root.a", ["sre", "ops"], "ops"),
        ("root.a", ["dev", "sre"], "sre"),
        ("root.a", ["dev"], "dev"),
        ("root.a.created", ["sre"], "sre"),
        ("root.b", ["ops", "dev"], "dev"),
        ("root.b", ["ops"], "*"),
        ("root.b", [], "*"),
    ],
)
def test_the_first_group_with_a_limit_from_the_leaf_upwards_is_charged(
    queue: str, groups: list[str], charged: str
) -> None:
    assert charged_group(GROUPS, queue, groups) == charged


def test_nobody_is_charged_where_no_group_has_a_limit() -> None:
    assert charged_group(partition_of({"name": "a"}), "root.a", ["dev"]) is None


def test_a_group_that_the_partition_limits_is_charged() -> None:
    config = partition_of({"name": "a"}, limits=[{"groups": ["dev"], "maxapplications": 1}])
    assert charged_group(config, "root.a", ["dev"]) == "dev"
