"""Linkis resources as the ledger's amounts and tags, and back.

Whole cores become milli-cores; where a queue, a cluster or a namespace is named, it becomes a tag.
"""

from rm_service.domain.amounts import Amounts
from rm_service.domain.resource_algebra import Resource, ResourceNumberError, check_numbers
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
from rm_service.domain.tags import Tags

YARN_QUEUE = "yarnQueue"
YARN_CLUSTER = "yarnCluster"
K8S_NAMESPACE = "k8sNamespace"

_NO_TAGS: Tags = {}
_MILLI = 1000
_WHOLE_CORES = frozenset({"vcore", "yarn.vcore"})
"""Dimensions that the typed resources count in whole cores; Kubernetes counts milli-cores already."""


def to_amounts(resource: Resource) -> dict[str, int]:
    """The resource by ledger dimension in base units; raises AmountOverflowError beyond 64 bits.

    A Special resource's names are ledger dimensions in base units as they are.
    """
    amounts = resource.numbers()
    if isinstance(resource, SpecialResource):
        return amounts
    for dimension in _WHOLE_CORES & amounts.keys():
        amounts[dimension] *= _MILLI
    check_numbers(amounts)
    return amounts


def resource_tags(resource: Resource) -> dict[str, str]:
    """The tags that a resource carries: `yarnQueue`, `yarnCluster`, `k8sNamespace`, each only if named."""
    match resource:
        case DriverAndYarnResource(yarn=part) | (YarnResource() as part):
            names = {YARN_QUEUE: part.queue_name, YARN_CLUSTER: part.cluster_name}
        case DriverAndKubernetesResource(kubernetes=part) | (KubernetesResource() as part):
            names = {K8S_NAMESPACE: part.namespace}
        case _:
            names = {}
    return {key: name for key, name in names.items() if name}


def from_amounts(resource_type: ResourceType, amounts: Amounts, tags: Tags = _NO_TAGS) -> Resource:
    """The resource of this type that `to_amounts` and `resource_tags` turn into these amounts and tags.

    A dimension that is missing is 0, as in a request or a capacity (a quota, where missing means unlimited,
    has no typed form). Raises ResourceNumberError naming a dimension that the type does not have, or
    milli-cores that are no whole cores: nothing is dropped or rounded.
    """
    if resource_type is ResourceType.Special:
        return SpecialResource(amounts)
    empty = _empty(resource_type, tags)
    numbers = dict.fromkeys(empty.numbers(), 0)
    for dimension, amount in amounts.items():
        if dimension not in numbers:
            raise ResourceNumberError(dimension, f"a {resource_type.name} has no such dimension")
        if dimension not in _WHOLE_CORES:
            numbers[dimension] = amount
        elif amount % _MILLI:
            raise ResourceNumberError(dimension, f"{amount} milli-cores are no whole number of cores")
        else:
            numbers[dimension] = amount // _MILLI
    return empty.with_numbers(numbers)


def _empty(resource_type: ResourceType, tags: Tags) -> Resource:
    """Nothing, of this type, in the queue or namespace that the tags name."""
    driver = LoadInstanceResource(0, 0, 0)
    yarn = YarnResource(0, 0, 0, queue_name=tags.get(YARN_QUEUE, ""), cluster_name=tags.get(YARN_CLUSTER, ""))
    kubernetes = KubernetesResource(0, 0, namespace=tags.get(K8S_NAMESPACE, ""))
    kinds: dict[ResourceType, Resource] = {
        ResourceType.Default: LoadResource(0, 0),
        ResourceType.Memory: MemoryResource(0),
        ResourceType.CPU: CPUResource(0),
        ResourceType.Load: LoadResource(0, 0),
        ResourceType.Instance: InstanceResource(0),
        ResourceType.LoadInstance: driver,
        ResourceType.Yarn: yarn,
        ResourceType.DriverAndYarn: DriverAndYarnResource(driver, yarn),
        ResourceType.Kubernetes: kubernetes,
        ResourceType.DriverAndKubernetes: DriverAndKubernetesResource(driver, kubernetes),
    }
    return kinds[resource_type]
