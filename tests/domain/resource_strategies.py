"""Resources of every Linkis type, drawn by hypothesis."""

from hypothesis import strategies as st

from rm_service.domain.resource_algebra import Resource
from rm_service.domain.resource_types import (
    CPUResource,
    DriverAndKubernetesResource,
    DriverAndYarnResource,
    InstanceResource,
    KubernetesResource,
    LoadInstanceResource,
    LoadResource,
    MemoryResource,
    SpecialResource,
    YarnResource,
)

TYPES: list[type[Resource]] = [
    MemoryResource,
    CPUResource,
    LoadResource,
    InstanceResource,
    LoadInstanceResource,
    YarnResource,
    DriverAndYarnResource,
    KubernetesResource,
    DriverAndKubernetesResource,
    SpecialResource,
]


def resources_of(
    kind: type[Resource], numbers: st.SearchStrategy[int], places: st.SearchStrategy[str]
) -> st.SearchStrategy[Resource]:
    """Resources of one type; `places` are the names of queues, clusters and namespaces."""
    driver = st.builds(LoadInstanceResource, numbers, numbers, numbers)
    yarn = st.builds(YarnResource, numbers, numbers, numbers, places, cluster_name=places)
    kubernetes = st.builds(KubernetesResource, numbers, numbers, places)
    by_type: dict[type[Resource], st.SearchStrategy[Resource]] = {
        MemoryResource: st.builds(MemoryResource, numbers),
        CPUResource: st.builds(CPUResource, numbers),
        LoadResource: st.builds(LoadResource, numbers, numbers),
        InstanceResource: st.builds(InstanceResource, numbers),
        LoadInstanceResource: driver,
        YarnResource: yarn,
        DriverAndYarnResource: st.builds(DriverAndYarnResource, driver, yarn),
        KubernetesResource: kubernetes,
        DriverAndKubernetesResource: st.builds(DriverAndKubernetesResource, driver, kubernetes),
        SpecialResource: st.builds(
            SpecialResource, st.dictionaries(st.sampled_from(["gpu", "fpga", "x.y"]), numbers)
        ),
    }
    return by_type[kind]


def resources(numbers: st.SearchStrategy[int], places: st.SearchStrategy[str]) -> st.SearchStrategy[Resource]:
    """Resources of any type."""
    return st.sampled_from(TYPES).flatmap(lambda kind: resources_of(kind, numbers, places))


def pairs(
    numbers: st.SearchStrategy[int], places: st.SearchStrategy[str]
) -> st.SearchStrategy[tuple[Resource, Resource]]:
    """Two resources of one type."""
    return st.sampled_from(TYPES).flatmap(
        lambda kind: st.tuples(resources_of(kind, numbers, places), resources_of(kind, numbers, places))
    )
