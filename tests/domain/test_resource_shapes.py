"""Resources as JSON: plain vectors and the typed shapes of Linkis."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.amounts import INT64_MAX
from rm_service.domain.resource_algebra import Resource
from rm_service.domain.resource_amounts import resource_tags, to_amounts
from rm_service.domain.resource_documents import write_record, write_stored
from rm_service.domain.resource_shapes import read_amounts, read_resource
from rm_service.domain.resource_types import (
    CPUResource,
    DriverAndKubernetesResource,
    DriverAndYarnResource,
    InstanceResource,
    KubernetesResource,
    LoadInstanceResource,
    LoadResource,
    MemoryResource,
    ResourceType,
    SpecialResource,
    YarnResource,
)
from rm_service.domain.shape_fields import ShapeError
from tests.domain.resource_strategies import resources

G = 2**30
places = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp")), max_size=20)
# Whole gibibytes from two on are written without loss even in the record shape.
counts = st.integers(0, 2**50)
sizes = st.integers(2, 1000).map(lambda gibibytes: gibibytes * G)

DRIVER = LoadInstanceResource(2 * G, 2, 1)
# One row a type: the resource, its stored shape, its record shape.
SHAPES: list[tuple[Resource, dict[str, Any], dict[str, Any] | str]] = [
    (MemoryResource(G), {"memory": G}, {"memory": "1024.0 MB"}),
    (CPUResource(4), {"cores": 4}, {"cpu": 4}),
    (LoadResource(2 * G, 4), {"memory": 2 * G, "cores": 4}, {"memory": "2.0 GB", "cpu": 4}),
    (InstanceResource(3), {"cores": 3, "instances": 3}, "Instance: 3"),
    (
        DRIVER,
        {"memory": 2 * G, "cores": 2, "instances": 1, "instance": 1},
        {"instance": 1, "memory": "2.0 GB", "cpu": 2},
    ),
    (
        YarnResource(4 * G, 4, 2, "root.a", cluster_name="east"),
        {
            "queueMemory": 4 * G,
            "queueCores": 4,
            "queueInstances": 2,
            "queueName": "root.a",
            "applicationId": "",
            "clusterName": "east",
        },
        {"queueName": "root.a", "queueMemory": "4.0 GB", "queueCpu": 4, "instance": 2, "clusterName": "east"},
    ),
    (
        DriverAndYarnResource(DRIVER, YarnResource(4 * G, 4, 2, "root.a")),
        {
            "loadInstanceResource": {"memory": 2 * G, "cores": 2, "instances": 1, "instance": 1},
            "yarnResource": {
                "queueMemory": 4 * G,
                "queueCores": 4,
                "queueInstances": 2,
                "queueName": "root.a",
                "applicationId": "",
            },
        },
        {
            "driver": {"instance": 1, "memory": "2.0 GB", "cpu": 2},
            "yarn": {"queueName": "root.a", "queueMemory": "4.0 GB", "queueCpu": 4, "instance": 2},
        },
    ),
    (
        KubernetesResource(4 * G, 1500, "jobs"),
        {"memory": 4 * G, "cores": 1500, "namespace": "jobs"},
        {"namespace": "jobs", "memory": "4.0 GB", "cpu": 1500},
    ),
    (
        DriverAndKubernetesResource(DRIVER, KubernetesResource(4 * G, 1500, "jobs")),
        {
            "loadInstanceResource": {"memory": 2 * G, "cores": 2, "instances": 1, "instance": 1},
            "kubernetesResource": {"memory": 4 * G, "cores": 1500, "namespace": "jobs"},
        },
        {
            "driver": {"instance": 1, "memory": "2.0 GB", "cpu": 2},
            "kubernetes": {"namespace": "jobs", "memory": "4.0 GB", "cpu": 1500},
        },
    ),
    (SpecialResource({"gpu": 2, "fpga": 1}), {"resources": {"gpu": 2, "fpga": 1}}, "Special:{fpga=1, gpu=2}"),
]
by_type = pytest.mark.parametrize(
    ("resource", "stored", "record"), SHAPES, ids=[type(row[0]).__name__ for row in SHAPES]
)


@by_type
def test_both_shapes_are_written(resource: Resource, stored: dict[str, Any], record: object) -> None:
    assert write_stored(resource) == stored
    assert write_record(resource) == record


@by_type
def test_both_shapes_are_read_and_the_type_is_recognised(
    resource: Resource, stored: dict[str, Any], record: object
) -> None:
    assert read_resource(stored) == resource
    assert read_resource(record) == resource


@by_type
def test_both_shapes_stand_for_the_same_amounts_and_tags(
    resource: Resource, stored: dict[str, Any], record: object
) -> None:
    expected = (to_amounts(resource), resource_tags(resource))
    assert read_amounts(stored) == expected
    if not isinstance(resource, MemoryResource):  # {"memory": "1024.0 MB"} alone is a vector's quantity
        assert read_amounts(record) == expected


@given(resources(counts, places))
def test_stored_shape_reads_back(resource: Resource) -> None:
    assert read_resource(write_stored(resource)) == resource


@given(resources(sizes, st.sampled_from(["", "a"])))
def test_record_shape_reads_back_what_one_decimal_holds(resource: Resource) -> None:
    assert read_resource(write_record(resource)) == resource


@given(resources(st.integers(-(2**63), 2**63 - 1), places))
def test_any_resource_can_be_written(resource: Resource) -> None:
    assert write_stored(resource)
    assert write_record(resource)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, {}),
        (
            {"memory": "8Gi", "vcore": "500m", "gpu": 2},
            {"memory": 8 * G, "vcore": 500, "gpu": 2},
        ),
        ({"memory": G, "vcore": 1000, "instances": 1}, {"memory": G, "vcore": 1000, "instances": 1}),
        ({"memory": "10G"}, {"memory": 10**10}),
        ({"yarn.vcore": "2", "nvidia.com/gpu": 0}, {"yarn.vcore": 2000, "nvidia.com/gpu": 0}),
        ({"instances": 3}, {"instances": 3}),
    ],
)
def test_plain_vector(document: dict[str, Any], expected: dict[str, int]) -> None:
    assert read_amounts(document) == (expected, {})
    assert read_amounts(document, ResourceType.LoadInstance) == (expected, {})


@pytest.mark.parametrize(
    ("document", "amounts", "tags"),
    [
        ({"cores": 4}, {"vcore": 4000}, {}),
        ({"memory": "10G", "cores": 4}, {"memory": 10 * G, "vcore": 4000}, {}),
        ({"memory": "8Gi", "cpu": "4"}, {"memory": 8 * G, "vcore": 4000}, {}),
        ({"instance": 3}, {"instances": 3}, {}),
        ({"memory": 1, "cores": 2, "instance": 3}, {"memory": 1, "vcore": 2000, "instances": 3}, {}),
        ({"memory": 1, "cores": "500m", "namespace": None}, {"k8s.memory": 1, "k8s.vcore": 500}, {}),
        ({"resources": {"gpu": "2k", "vcore": "500m"}}, {"gpu": 2000, "vcore": 500}, {}),
        (
            {"queueMemory": "1.5g", "queueCores": 1, "queueInstances": 0, "queueName": "q"},
            {"yarn.memory": 3 * G // 2, "yarn.vcore": 1000, "yarn.instances": 0},
            {"yarnQueue": "q"},
        ),
        (
            {
                "loadInstanceResource": {"memory": 1, "cores": 1, "instances": 1},
                "kubernetesResource": {"memory": 2, "cores": 3, "namespace": "n"},
                "moduleOperate": {"anything": 1},
            },
            {"memory": 1, "vcore": 1000, "instances": 1, "k8s.memory": 2, "k8s.vcore": 3},
            {"k8sNamespace": "n"},
        ),
    ],
)
def test_typed_shape(document: dict[str, Any], amounts: dict[str, int], tags: dict[str, str]) -> None:
    assert read_amounts(document) == (amounts, tags)


def test_type_given_decides_where_keys_do_not() -> None:
    document = {"memory": 1, "cores": 2000}
    assert read_resource(document) == LoadResource(1, 2000)
    assert read_resource(document, ResourceType.Default) == LoadResource(1, 2000)
    assert read_resource(document, ResourceType.Kubernetes) == KubernetesResource(1, 2000)


YARN = {"queueMemory": 1, "queueCores": 1, "queueInstances": 1}
LOAD_INSTANCE = {"memory": 1, "cores": 1, "instances": 1}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        # Missing: Linkis takes each of these for "infinite".
        ({"memory": 1, "cpu": None}, "cores"),
        ({"queueCores": 1}, "queueMemory"),
        ({"queueName": "q"}, "queueMemory"),
        ({"memory": 1, "instance": 1}, "cores"),
        ({"cpu": 1, "instance": 1, "namespace": "n"}, "memory"),
        ({"driver": LOAD_INSTANCE}, "yarnResource"),
        ({"yarnResource": YARN}, "loadInstanceResource"),
        ({"driver": LOAD_INSTANCE, "yarn": {"queueMemory": 1, "queueCpu": 1}}, "yarn.queueInstances"),
        # Unknown.
        ({"cores": 1, "gpu": 1}, "gpu"),
        ({"memory": 1, "vcore": 1, "cores": 1}, "vcore"),
        ({"loadInstanceResource": LOAD_INSTANCE, "yarnResource": YARN | {"x": 1}}, "yarnResource.x"),
        ({"moduleOperate": 1, "cores": 1}, "moduleOperate"),
        # Contradicting.
        ({"memory": 1, "cores": 1, "instances": 4, "instance": 3}, "instance"),
        ({"cores": 3, "instances": 4}, "cores"),
        ({"cores": 3, "cpu": 4}, "cpu"),
        ({"driver": LOAD_INSTANCE, "loadInstanceResource": LOAD_INSTANCE, "yarn": YARN}, "driver"),
        # No amounts.
        ({"memory": -1}, "memory"),
        ({"memory": 2**63}, "memory"),
        ({"memory": 1.5}, "memory"),
        ({"memory": True}, "memory"),
        ({"memory": "10GB"}, "memory"),
        ({"gpu": None}, "gpu"),
        ({"cores": -1}, "cores"),
        ({"cores": "500m"}, "cores"),
        ({"cores": INT64_MAX}, "cores"),
        ({"memory": "1e3", "cores": 1}, "memory"),
        ({"memory": "-1g", "cores": 1}, "memory"),
        ({"queueMemory": "x", "queueCores": 1, "queueInstances": 1}, "queueMemory"),
        ({"resources": {"gpu": -1}}, "resources.gpu"),
        ({"resources": 1}, "resources"),
        ({"driver": 1, "yarn": YARN}, "driver"),
        # No names.
        ({"foo bar": 1}, "foo bar"),
        ({"": 1}, ""),
        ({"x" * 129: 1}, "x" * 129),
        (YARN | {"queueName": 1}, "queueName"),
        (YARN | {"queueName": "a\nb"}, "queueName"),
        ({"memory": 1, "cores": 1, "namespace": "x" * 257}, "namespace"),
        # No objects.
        (None, ""),
        (3, ""),
        ([], ""),
        ("", ""),
        ("Instance: -3", ""),
        ("Special:{gpu=2, gpu=3}", ""),
        ("Special:{gpu}", ""),
        ({f"d{number}": 1 for number in range(65)}, ""),
    ],
    ids=repr,
)
def test_anything_else_is_refused_with_the_path(document: object, path: str) -> None:
    with pytest.raises(ShapeError) as refusal:
        read_amounts(document)
    assert refusal.value.path == path
    assert refusal.value.reason in str(refusal.value)


@pytest.mark.parametrize("text", ["Instance: 99999999999999999999", "Special:{gpu=9999999999999999999}"])
def test_text_beyond_64_bits_is_refused(text: str) -> None:
    with pytest.raises(ShapeError):
        read_amounts(text)


@pytest.mark.parametrize("document", [{}, {"vcore": 1}])
def test_vector_is_no_typed_shape(document: dict[str, Any]) -> None:
    with pytest.raises(ShapeError, match="no known resource"):
        read_resource(document)


def test_type_given_refuses_other_shapes() -> None:
    with pytest.raises(ShapeError, match="memory: is missing"):
        read_amounts({"cores": 4}, ResourceType.Load)
    with pytest.raises(ShapeError, match="memory: is missing"):
        read_amounts("Instance: 3", ResourceType.Load)


@pytest.mark.parametrize(
    ("resource_type", "own_name"),
    [(ResourceType.Yarn, "yarn.memory"), (ResourceType.Kubernetes, "k8s.memory")],
)
def test_memory_of_an_external_resource_is_not_taken_for_a_servers(
    resource_type: ResourceType, own_name: str
) -> None:
    with pytest.raises(ShapeError, match=own_name):
        read_amounts({"memory": 1}, resource_type)
    assert read_amounts({own_name: 1}, resource_type) == ({own_name: 1}, {})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["memory", "cores", "instance", "driver", "yarn", "queueMemory", "resources", "gpu"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(json_values, st.none() | st.sampled_from(ResourceType))
def test_any_document_is_read_or_refused(document: object, resource_type: ResourceType | None) -> None:
    try:
        amounts, _ = read_amounts(document, resource_type)
    except ShapeError:
        return
    assert all(type(amount) is int and 0 <= amount <= INT64_MAX for amount in amounts.values())
