"""A queue configuration: what is read of it."""

import pytest

from rm_service.domain.queue_config import AccessList, GroupSource, NodeOrder, QueueConfigError, RuleKind
from rm_service.domain.queue_documents import read_configuration
from rm_service.domain.queue_fields import read_access_list, read_quantity
from tests.domain.queue_reading import partition_of


@pytest.mark.parametrize("document", [None, {}])
def test_an_empty_configuration_lets_everyone_submit(document: object) -> None:
    config = read_configuration(document)
    default = config.partition("")
    assert [partition.name for partition in config.partitions] == ["default"]
    assert default is not None
    assert [(rule.kind, rule.create) for rule in default.placement_rules] == [
        (RuleKind.TAG, True),
        (RuleKind.PROVIDED, True),
    ]
    assert default.may_submit("root.anything", "anyone", ())
    assert default.queues["root.default"].is_leaf


def test_root_is_put_above_several_top_queues() -> None:
    partition = partition_of({"name": "A"}, {"name": "b", "queues": [{"name": "C"}]})
    assert sorted(partition.queues) == ["root", "root.a", "root.b", "root.b.c"]
    assert [path for path, queue in partition.queues.items() if queue.is_leaf] == ["root.a", "root.b.c"]


def test_a_single_top_queue_is_root_only_by_name() -> None:
    assert sorted(partition_of({"name": "ROOT", "maxapplications": 5}).queues) == ["root"]
    assert sorted(partition_of({"name": "other"}).queues) == ["root", "root.other"]


def test_a_queue_with_the_parent_flag_is_no_leaf_even_when_empty() -> None:
    assert not partition_of({"name": "a", "parent": True}).queues["root.a"].is_leaf


def test_every_field_of_a_queue_is_read() -> None:
    queue = partition_of(
        {
            "name": "a",
            "resources": {"max": {"memory": "10Gi", "vcore": 10}, "guaranteed": {"vcore": "500m"}},
            "maxapplications": "7",
            "properties": {"application.sort.policy": "fair", "priority.offset": -3, "own": "x"},
            "adminacl": "ada",
            "submitacl": " dev,ops",
            "childtemplate": {"maxapplications": 2, "resources": {"max": {"pods": 4}}},
            "limits": [{"limit": "one", "users": ["bob"], "maxapplications": 3}],
        }
    ).queues["root.a"]
    assert queue.max == {"memory": 10 * 2**30, "vcore": 10_000}
    assert queue.guaranteed == {"vcore": 500}
    assert queue.max_applications == 7
    assert queue.properties == {"application.sort.policy": "fair", "priority.offset": "-3", "own": "x"}
    assert queue.admin_acl == AccessList(users=frozenset({"ada"}))
    assert queue.submit_acl == AccessList(groups=frozenset({"dev", "ops"}))
    assert queue.child_template is not None
    assert (queue.child_template.max, queue.child_template.max_applications) == ({"pods": 4}, 2)
    assert [(limit.users, limit.max_applications) for limit in queue.limits] == [(("bob",), 3)]


def test_a_template_holds_below_until_another_is_given() -> None:
    partition = partition_of(
        {
            "name": "a",
            "childtemplate": {"maxapplications": 1},
            "queues": [{"name": "b"}, {"name": "c", "childtemplate": {"maxapplications": 2}}],
        }
    )
    templates = [partition.queues[path].child_template for path in ("root.a.b", "root.a.c")]
    assert [template.max_applications for template in templates if template] == [1, 2]


def test_every_field_of_a_partition_is_read() -> None:
    partition = partition_of(
        name="GPU",
        preemption={"enabled": False, "quotapreemptionenabled": "true"},
        nodesortpolicy={"type": "binpacking", "resourceweights": {"memory": "2.5", "vcore": 1}},
        usergroupresolver={"type": "file", "groups": {"alice": ["dev", "ops"]}},
        priorityclasses={"urgent": 100, "idle": "-100"},
        limits=[{"users": ["*"], "maxresources": {"memory": "1G"}}],
    )
    assert partition.name == "gpu"
    assert (partition.preemption, partition.quota_preemption) == (False, True)
    assert partition.node_sort.order is NodeOrder.BINPACKING
    assert partition.node_sort.weights == {"memory": 2.5, "vcore": 1.0}
    assert partition.group_lookup.source is GroupSource.FILE
    assert partition.group_lookup.groups == {"alice": ("dev", "ops")}
    assert partition.priority_classes == {"urgent": 100, "idle": -100}
    assert partition.limits[0].max == {"memory": 10**9}


def test_nodes_are_sorted_fair_by_memory_and_vcore_unless_told_otherwise() -> None:
    sort = partition_of().node_sort
    assert (sort.order, sort.weights) == (NodeOrder.FAIR, {"vcore": 1.0, "memory": 1.0})


def test_a_maximum_of_nothing_but_zeros_says_nothing_and_a_zero_among_others_forbids() -> None:
    partition = partition_of(
        {"name": "a", "resources": {"max": {"memory": 0}}, "queues": [{"name": "b"}]},
        {"name": "c", "resources": {"max": {"memory": 0, "vcore": 1}}},
    )
    assert partition.queues["root.a"].max == {}
    assert partition.queues["root.c"].max == {"memory": 0, "vcore": 1000}


@pytest.mark.parametrize(
    ("dimension", "text", "amount"),
    [
        ("memory", "10Gi", 10 * 2**30),
        ("memory", "10M", 10_000_000),
        ("memory", 5, 5),
        ("memory", "7 k", 7000),
        ("memory", "8191Pi", 8191 * 2**50),
        ("vcore", "500m", 500),
        ("vcore", "10", 10_000),
        ("vcore", "2k", 2_000_000),
        ("nvidia.com/gpu", "3", 3),
    ],
)
def test_a_quantity_is_read_into_base_units(dimension: str, text: object, amount: int) -> None:
    assert read_quantity(text, "here", dimension) == amount


@pytest.mark.parametrize(
    ("dimension", "text"),
    [
        ("memory", each)
        for each in ["", "K", "1K", "1ki", "1.5", "-1", "+1", "500m", "1 Gi ", "8Ei", 1.5, True]
    ]
    + [("vcore", each) for each in ["0.5", "9223372036854775808m", "9223372036854776", "\u0661"]],
)
def test_what_is_no_quantity_is_refused(dimension: str, text: object) -> None:
    with pytest.raises(QueueConfigError, match=r"^here: "):
        read_quantity(text, "here", dimension)


@pytest.mark.parametrize(
    ("text", "user", "groups", "allowed"),
    [
        ("", "alice", ["dev"], False),
        (" ", "alice", ["dev"], False),
        ("*", "anyone", [], True),
        ("* dev", "anyone", [], True),
        ("alice,bob", "bob", [], True),
        ("alice,bob", "eve", ["alice"], False),
        ("alice dev", "eve", ["ops", "dev"], True),
        (" dev", "dev", [], False),
        (" *", "anyone", [], True),
    ],
)
def test_an_access_list_allows(text: str, user: str, groups: list[str], allowed: bool) -> None:
    assert read_access_list(text, "here").allows(user, groups) is allowed
