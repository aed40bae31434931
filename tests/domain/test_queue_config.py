import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rm_service.domain.queue_config import (
    AccessList,
    Configuration,
    GroupSource,
    NodeOrder,
    PartitionConfig,
    Queue,
    QueueConfigError,
    RuleKind,
)
from rm_service.domain.queue_documents import MAX_QUEUES, read_configuration
from rm_service.domain.queue_fields import read_access_list, read_quantity
from tests.domain.queue_strategies import Document, partitions, places


def partition_of(*queues: Document, **fields: Any) -> PartitionConfig:
    """The one partition with these top queues."""
    return read_configuration({"partitions": [{"queues": list(queues), **fields}]}).partitions[0]


def refused(document: object) -> QueueConfigError:
    with pytest.raises(QueueConfigError) as caught:
        read_configuration(document)
    return caught.value


def refused_place(*queues: Document, **fields: Any) -> str:
    return refused({"partitions": [{"queues": list(queues), **fields}]}).path


# ---- what is read


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


# ---- what is refused, and where


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ([], "config"),
        ({"two words": 1}, "config"),
        ({"partition": []}, "partition"),
        ({"partitions": []}, "partitions"),
        ({"partitions": [{}]}, "partitions[0].queues"),
        ({"partitions": [{"queues": {}}]}, "partitions[0].queues"),
        ({"partitions": [{"queues": []}, {"name": "Default", "queues": []}]}, "partitions[1].name"),
        ({"partitions": [{"name": "a b", "queues": []}]}, "partitions[0].name"),
    ],
)
def test_a_document_of_another_shape_is_refused(document: object, path: str) -> None:
    assert refused(document).path == path


QUEUE = "partitions[0].queues[0]"


@pytest.mark.parametrize(
    ("queue", "path"),
    [
        ({}, f"{QUEUE}.name"),
        ({"name": "a.b"}, f"{QUEUE}.name"),
        ({"name": "x" * 65}, f"{QUEUE}.name"),
        ({"name": "@recovery@"}, f"{QUEUE}.name"),
        ({"name": "root", "resources": {"max": {"memory": 1}}}, f"{QUEUE}.resources"),
        ({"name": "a", "colour": 1}, f"{QUEUE}.colour"),
        ({"name": "a", "parent": "maybe"}, f"{QUEUE}.parent"),
        ({"name": "a", "submitacl": "a b c"}, f"{QUEUE}.submitacl"),
        ({"name": "a", "adminacl": "a,*"}, f"{QUEUE}.adminacl"),
        ({"name": "a", "maxapplications": -1}, f"{QUEUE}.maxapplications"),
        ({"name": "a", "maxapplications": 1.5}, f"{QUEUE}.maxapplications"),
        ({"name": "a", "resources": {"max": {"apps": 1}}}, f"{QUEUE}.resources.max.apps"),
        ({"name": "a", "resources": {"max": {"a b": 1}}}, f"{QUEUE}.resources.max"),
        ({"name": "a", "childtemplate": {"queues": []}}, f"{QUEUE}.childtemplate.queues"),
        ({"name": "a", "properties": {"priority.offset": "x"}}, f"{QUEUE}.properties.priority.offset"),
        ({"name": "a", "properties": {"preemption.delay": "soon"}}, f"{QUEUE}.properties.preemption.delay"),
        ({"name": "a", "properties": {"priority.policy": "no"}}, f"{QUEUE}.properties.priority.policy"),
        ({"name": "a", "queues": [{"name": "b"}, {"name": "B"}]}, f"{QUEUE}.queues[1].name"),
    ],
)
def test_a_bad_queue_is_refused_at_its_place(queue: Document, path: str) -> None:
    assert refused_place(queue) == path


def test_a_queue_is_held_to_the_maximum_of_every_queue_above() -> None:
    most = {"resources": {"max": {"vcore": 2}}}
    over = {"name": "c", "resources": {"max": {"vcore": "2001m"}}}
    place = f"{QUEUE}.queues[0].queues[0].resources.max.vcore"
    assert refused_place({"name": "a", **most, "queues": [{"name": "b", "queues": [over]}]}) == place


def test_what_grandchildren_are_guaranteed_counts_for_a_parent_that_says_nothing() -> None:
    part = {"resources": {"guaranteed": {"vcore": 1}}}
    family = [{"name": name, "queues": [{"name": "x", **part}]} for name in ("b", "c")]
    top = {"name": "a", "resources": {"max": {"vcore": "1999m"}}, "queues": family}
    assert refused_place(top) == f"{QUEUE}.resources.max.vcore"


def limited(*limits: Document, **fields: Any) -> str:
    return refused_place({"name": "a", "limits": list(limits), **fields}).removeprefix(f"{QUEUE}.limits")


def test_a_limit_names_somebody_and_something() -> None:
    assert limited({"maxapplications": 1}) == "[0]"
    assert limited({"users": ["bob"]}) == "[0]"
    assert limited({"users": ["bob"], "maxapplications": 0}) == "[0]"
    assert (
        limited({"users": ["bob"], "maxapplications": 1, "maxresources": {"memory": 0}}) == "[0].maxresources"
    )
    assert limited({"users": ["b b"], "maxapplications": 1}) == "[0].users[0]"


def test_the_wildcard_is_last_and_a_wildcard_group_follows_a_named_one() -> None:
    one = {"maxapplications": 1}
    assert limited({"users": ["*", "bob"], **one}) == "[0].users[1]"
    assert limited({"users": ["*"], **one}, {"users": ["bob"], **one}) == "[1].users[0]"
    assert limited({"groups": ["*"], **one}) == "[0].groups[0]"
    assert limited({"users": ["bob"], **one}, {"users": ["bob"], **one}) == "[1].users[0]"
    partition_of({"name": "a", "limits": [{"users": ["bob", "*"], "groups": ["dev", "*"], **one}]})


def test_a_limit_is_within_its_queue() -> None:
    assert limited({"users": ["bob"], "maxapplications": 3}, maxapplications=2) == "[0].maxapplications"
    assert (
        limited({"users": ["bob"], "maxresources": {"vcore": 3}}, resources={"max": {"vcore": 2}})
        == "[0].maxresources.vcore"
    )


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ({}, ".name"),
        ({"name": "recovery"}, ".name"),
        ({"name": "fixed"}, ".value"),
        ({"name": "fixed", "value": "a..b"}, ".value"),
        ({"name": "tag"}, ".value"),
        ({"name": "fixed", "value": "root.a", "parent": {"name": "user"}}, ".parent"),
        ({"name": "user", "parent": {"name": "nothing"}}, ".parent.name"),
        ({"name": "user", "filter": {"type": "perhaps"}}, ".filter.type"),
        ({"name": "user", "filter": {"users": ["(a"]}}, ".filter.users[0]"),
        ({"name": "user", "filter": {"groups": ["dev", "o.*"]}}, ".filter.groups[1]"),
    ],
)
def test_a_bad_placement_rule_is_refused_at_its_place(rule: Document, path: str) -> None:
    assert refused_place(placementrules=[rule]) == f"partitions[0].placementrules[0]{path}"


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"nodesortpolicy": {"type": "random"}}, "nodesortpolicy.type"),
        ({"nodesortpolicy": {"resourceweights": {"memory": -1}}}, "nodesortpolicy.resourceweights.memory"),
        ({"nodesortpolicy": {"resourceweights": {"memory": "nan"}}}, "nodesortpolicy.resourceweights.memory"),
        ({"usergroupresolver": {"type": "ldap"}}, "usergroupresolver.type"),
        ({"usergroupresolver": {"type": "os", "groups": {}}}, "usergroupresolver.groups"),
        ({"priorityclasses": {"high": 2**31}}, "priorityclasses[0]"),
        ({"preemption": {"enabled": 1}}, "preemption.enabled"),
    ],
)
def test_a_bad_field_of_a_partition_is_refused_at_its_place(fields: Document, path: str) -> None:
    assert refused_place(**fields) == f"partitions[0].{path}"


def test_depth_and_number_of_queues_are_bounded() -> None:
    deep: Document = {"name": "a"}
    for _ in range(40):
        deep = {"name": "a", "queues": [deep]}
    assert refused_place(deep).endswith(".name")
    many = [{"name": f"q{at}"} for at in range(MAX_QUEUES)]
    assert refused_place(*many) == f"partitions[0].queues[{MAX_QUEUES - 1}]"
    partition_of(*many[:-1])


def test_no_value_is_repeated_in_a_refusal() -> None:
    secret = "hunter2 hunter2"  # noqa: S105 - it stands for one
    for document in (
        {secret: 1},
        {"partitions": [{"name": secret, "queues": []}]},
        {"partitions": [{"queues": [{"name": "a", "submitacl": f"{secret} x"}]}]},
        {"partitions": [{"queues": [{"name": "a", "resources": {"max": {"memory": secret}}}]}]},
        {"partitions": [{"queues": [], "placementrules": [{"name": secret}]}]},
    ):
        assert "hunter2" not in str(refused(document))


# ---- properties of all configurations


def read_one(document: Document) -> PartitionConfig:
    return read_configuration({"partitions": [document]}).partitions[0]


def least_max(partition: PartitionConfig, queue: Queue, dimension: str) -> int | None:
    known = [above.max[dimension] for above in partition.upwards(queue.path) if dimension in above.max]
    return min(known, default=None)


def guaranteed(queue: Queue) -> int:
    return queue.guaranteed.get("memory") or sum(guaranteed(child) for child in queue.children)


@given(partitions())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_an_accepted_configuration_holds_every_inequality(document: Document) -> None:
    partition = read_one(document)
    for queue in partition.queues.values():
        most = least_max(partition, queue, "memory")
        promised = sum(guaranteed(child) for child in queue.children)
        if most is not None:
            assert queue.max.get("memory", 0) <= most
            assert queue.guaranteed.get("memory", 0) <= most
            assert promised <= most
        if "memory" in queue.guaranteed:
            assert promised <= queue.guaranteed["memory"]
        for child in queue.children:
            assert child.path.rpartition(".")[0] == queue.path
            if queue.max_applications is not None:
                assert child.max_applications is not None
                assert child.max_applications <= queue.max_applications


Mutation = Callable[[Document, Document | None], str | None]


def unknown_field(queue: Document, parent: Document | None) -> str | None:
    queue["colour"] = "red"
    return ".colour"


def bad_quantity(queue: Document, parent: Document | None) -> str | None:
    if parent is None:
        return None
    queue.setdefault("resources", {})["max"] = {"memory": "1.5"}
    return ".resources.max.memory"


def beyond_the_parent(queue: Document, parent: Document | None) -> str | None:
    if parent is None or "max" not in parent.get("resources", {}):
        return None
    most = int(parent["resources"]["max"]["memory"])
    queue.setdefault("resources", {})["max"] = {"memory": str(most + 1)}
    return ".resources.max.memory"


def promised_beyond_its_own(queue: Document, parent: Document | None) -> str | None:
    if "max" not in queue.get("resources", {}):
        return None
    most = int(queue["resources"]["max"]["memory"])
    queue["resources"]["guaranteed"] = {"memory": str(most + 1)}
    return ".resources.guaranteed.memory"


def children_promised_more(queue: Document, parent: Document | None) -> str | None:
    if "guaranteed" not in queue.get("resources", {}):
        return None
    children = queue.setdefault("queues", [])
    beyond = int(queue["resources"]["guaranteed"]["memory"]) + 1
    most = {"maxapplications": queue["maxapplications"]} if "maxapplications" in queue else {}
    children.append({"name": "more", "resources": {"guaranteed": {"memory": str(beyond)}}, **most})
    return ".resources.guaranteed.memory"


def more_applications(queue: Document, parent: Document | None) -> str | None:
    if parent is None or "maxapplications" not in parent:
        return None
    queue["maxapplications"] = parent["maxapplications"] + 1
    return ".maxapplications"


def unlimited_applications(queue: Document, parent: Document | None) -> str | None:
    if parent is None or "maxapplications" not in parent:
        return None
    queue.pop("maxapplications")
    return ".maxapplications"


def limit_of_nothing(queue: Document, parent: Document | None) -> str | None:
    queue["limits"] = [{"users": ["bob"], "maxresources": {"memory": "0"}}]
    return ".limits[0].maxresources"


@given(
    partitions(),
    st.sampled_from(
        [
            unknown_field,
            bad_quantity,
            beyond_the_parent,
            promised_beyond_its_own,
            children_promised_more,
            more_applications,
            unlimited_applications,
            limit_of_nothing,
        ]
    ),
    st.data(),
)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_one_fault_refuses_all_of_it_at_its_place(
    document: Document, mutate: Mutation, data: st.DataObject
) -> None:
    broken = copy.deepcopy(document)
    path, queue, parent = data.draw(st.sampled_from(list(places(broken))))
    at = mutate(queue, parent)
    if at is None:
        read_one(broken)
    else:
        assert refused({"partitions": [broken]}).path == path + at


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["partitions", "queues", "name", "limits", "resources", "max", "users", "filter"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_any_document_is_read_or_refused(document: object) -> None:
    try:
        config = read_configuration(document)
    except QueueConfigError:
        return
    assert isinstance(config, Configuration)
    assert isinstance(config.partitions[0].queues, Mapping)
