"""A queue configuration that cannot be: what is refused, and where."""

from typing import Any

import pytest

from rm_service.domain.queue_documents import MAX_QUEUES
from tests.domain.queue_reading import partition_of, refused, refused_place
from tests.domain.queue_strategies import Document


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


def test_nor_is_a_number() -> None:
    child = {"name": "b", "maxapplications": 77777}
    error = refused(
        {"partitions": [{"queues": [{"name": "a", "maxapplications": 54321, "queues": [child]}]}]}
    )
    assert error.path == f"{QUEUE}.queues[0].maxapplications"
    assert "54321" not in error.reason
    assert "77777" not in error.reason


LIMIT = {"users": ["bob"], "maxresources": {"vcore": 2, "hunter2": 3}}


@pytest.mark.parametrize(
    ("queue", "path"),
    [
        ({"resources": {"max": {"memory": 1, "hunter2": -1}}}, ".resources.max[1]"),
        ({"resources": {"guaranteed": {"hunter2": "x"}}}, ".resources.guaranteed[0]"),
        (
            {"resources": {"guaranteed": {"memory": 0, "hunter2": 2}, "max": {"hunter2": 1}}},
            ".resources.guaranteed[1]",
        ),
        ({"resources": {"max": {"hunter2": 2}}, "limits": [LIMIT]}, ".limits[0].maxresources[1]"),
        ({"properties": {"hunter2": ["x"]}}, ".properties[0]"),
        ({"properties": {"priority.offset": 1, "hunter2": {}}}, ".properties[1]"),
        ({"childtemplate": {"properties": {"hunter2": []}}}, ".childtemplate.properties[0]"),
        (
            {
                "resources": {"max": {"hunter2": 1}},
                "queues": [{"name": "b", "resources": {"guaranteed": {"hunter2": 2}}}],
            },
            ".resources.max",
        ),
        (
            {
                "resources": {"guaranteed": {"hunter2": 1}},
                "queues": [{"name": "b", "resources": {"guaranteed": {"hunter2": 2}}}],
            },
            ".resources.guaranteed",
        ),
    ],
)
def test_a_name_that_anybody_may_choose_is_no_part_of_a_place(queue: Document, path: str) -> None:
    assert refused_place({"name": "a", **queue}) == f"{QUEUE}{path}"


def test_nor_is_the_name_of_a_weight() -> None:
    policy = {"resourceweights": {"memory": 1, "hunter2": "x"}}
    assert refused_place(nodesortpolicy=policy) == "partitions[0].nodesortpolicy.resourceweights[1]"
