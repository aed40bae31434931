"""Linkis resources as the ledger's amounts and tags, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.amounts import INT64_MAX, AmountOverflowError
from rm_service.domain.resource_algebra import Resource, ResourceNumberError
from rm_service.domain.resource_amounts import from_amounts, resource_tags, to_amounts
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
from tests.domain.resource_strategies import resources

G = 2**30
LI, DY, DK, K8s = (
    LoadInstanceResource,
    DriverAndYarnResource,
    DriverAndKubernetesResource,
    KubernetesResource,
)
numbers = st.integers(-(2**31), 2**31)
places = st.sampled_from(["", "a", "b"])


@pytest.mark.parametrize(
    ("resource", "amounts"),
    [
        (MemoryResource(G), {"memory": G}),
        (CPUResource(2), {"vcore": 2000}),
        (LoadResource(G, 2), {"memory": G, "vcore": 2000}),
        (InstanceResource(3), {"instances": 3}),
        (LI(G, 2, 1), {"memory": G, "vcore": 2000, "instances": 1}),
        (YarnResource(G, 2, 1), {"yarn.memory": G, "yarn.vcore": 2000, "yarn.instances": 1}),
        (K8s(G, 1500), {"k8s.memory": G, "k8s.vcore": 1500}),
        (
            DY(LI(1, 2, 3), YarnResource(4, 5, 6)),
            {
                "memory": 1,
                "vcore": 2000,
                "instances": 3,
                "yarn.memory": 4,
                "yarn.vcore": 5000,
                "yarn.instances": 6,
            },
        ),
        (
            DK(LI(1, 2, 3), K8s(4, 5)),
            {"memory": 1, "vcore": 2000, "instances": 3, "k8s.memory": 4, "k8s.vcore": 5},
        ),
        (SpecialResource({"gpu": 2, "vcore": 500}), {"gpu": 2, "vcore": 500}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Resource) else "",
)
def test_whole_cores_become_milli_cores(resource: Resource, amounts: dict[str, int]) -> None:
    assert to_amounts(resource) == amounts


def test_queue_cluster_and_namespace_become_tags() -> None:
    server = LI(1, 1, 1)
    yarn = YarnResource(1, 1, 1, "root.a", cluster_name="east")
    assert resource_tags(yarn) == {"yarnQueue": "root.a", "yarnCluster": "east"}
    assert resource_tags(DY(server, yarn)) == {"yarnQueue": "root.a", "yarnCluster": "east"}
    assert resource_tags(DY(server, YarnResource(1, 1, 1))) == {}
    assert resource_tags(K8s(1, 1, "jobs")) == {"k8sNamespace": "jobs"}
    assert resource_tags(DK(server, K8s(1, 1, "jobs"))) == {"k8sNamespace": "jobs"}
    assert resource_tags(server) == {}


@given(resources(numbers, places))
def test_amounts_and_tags_turn_back_into_the_resource(resource: Resource) -> None:
    kind = ResourceType(type(resource).__name__)
    assert from_amounts(kind, to_amounts(resource), resource_tags(resource)) == resource


def test_missing_dimension_is_zero() -> None:
    assert from_amounts(ResourceType.LoadInstance, {"memory": 1}) == LI(1, 0, 0)


@pytest.mark.parametrize(
    ("amounts", "name"), [({"memory": 1, "gpu": 1}, "gpu"), ({"memory": 1, "vcore": 1500}, "vcore")]
)
def test_what_the_type_cannot_hold_is_refused(amounts: dict[str, int], name: str) -> None:
    with pytest.raises(ResourceNumberError) as refusal:
        from_amounts(ResourceType.Load, amounts)
    assert refusal.value.name == name


def test_milli_cores_beyond_64_bits_are_refused() -> None:
    with pytest.raises(AmountOverflowError, match="vcore"):
        to_amounts(CPUResource(INT64_MAX))
