"""Resources read from JSON: the plain vector of the API and the two typed shapes of Linkis.

The stored shape holds numbers ({"memory": 1073741824, "cores": 2}), the record shape texts for people
({"memory": "1024.0 MB", "cpu": 2}); the names of both are read. A missing number is an error, never
"infinite". docs/resource-types.md shows every shape, resource_documents.py writes them.
"""

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from rm_service.domain.amount_vectors import read_vector
from rm_service.domain.resource_algebra import Resource
from rm_service.domain.resource_amounts import resource_tags, to_amounts
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
from rm_service.domain.shape_fields import Fields, ShapeError, read_whole

_INSTANCE_TEXT = re.compile(r"Instance: ([0-9]{1,19})")
_SPECIAL_TEXT = re.compile(r"Special:\{(.*)\}")
_SPECIAL_ENTRY = re.compile(r"([^=]+)=([0-9]{1,19})")

_QUEUE_KEYS = frozenset(
    {"queueMemory", "queueCores", "queueCpu", "queueInstances", "queueName", "clusterName", "applicationId"}
)
_YARN_PARTS = frozenset({"yarnResource", "yarn"})
_KUBERNETES_PARTS = frozenset({"kubernetesResource", "kubernetes"})
_DRIVER_PARTS = frozenset({"loadInstanceResource", "driver"})
_CORES = frozenset({"cores", "cpu"})
_INSTANCES = frozenset({"instances", "instance"})
_TYPED_KEYS = frozenset(
    _QUEUE_KEYS
    | _YARN_PARTS
    | _KUBERNETES_PARTS
    | _DRIVER_PARTS
    | _CORES
    | {"instance", "namespace", "resources"}
)
"""Keys that make a document a typed shape; `memory` and `instances` mean the same in a plain vector."""

_NAMESPACES = {ResourceType.Yarn: "yarn.", ResourceType.Kubernetes: "k8s."}


def read_amounts(
    document: object, resource_type: ResourceType | None = None
) -> tuple[dict[str, int], dict[str, str]]:
    """The amounts, in base units, and the tags that a resource of the API stands for.

    An object is a plain vector ({"memory": "8Gi", "vcore": "500m", "gpu": 2}) unless it has a key that only
    typed shapes have, such as `cores`; a typed shape is read as `resource_type`, or as what its keys show.
    Texts in a vector are quantities ("10G" is 10^10 bytes), in a typed shape Linkis sizes ("10G" is
    10 * 2^30). Raises ShapeError.
    """
    if isinstance(document, dict) and _TYPED_KEYS.isdisjoint(document):
        amounts = read_vector(document)
        if resource_type in _NAMESPACES:
            _refuse_driver_dimensions(amounts, _NAMESPACES[resource_type])
        return amounts, {}
    resource = read_resource(document, resource_type)
    return to_amounts(resource), resource_tags(resource)


def read_resource(document: object, resource_type: ResourceType | None = None) -> Resource:
    """Read a typed shape, stored or record, as the type given or else as the one that its keys show.

    Raises ShapeError for a number that is missing, negative or too large, a key that the type does not have,
    and two names of one number that disagree.
    """
    if isinstance(document, str):
        document = _read_text(document)
    if not isinstance(document, Mapping):
        raise ShapeError("", "must be an object")
    return read_whole(document, "", _READERS[resource_type or _recognised(document.keys())])


def _refuse_driver_dimensions(amounts: Mapping[str, int], namespace: str) -> None:
    """`memory` of a Yarn or Kubernetes resource must not be taken for a server's."""
    for dimension in amounts:
        if dimension in {"memory", "vcore", "instances"}:
            raise ShapeError(dimension, f"is a server's; this resource's is {namespace}{dimension}")


def _recognised(keys: AbstractSet[str]) -> ResourceType:
    """The type that has these keys; where some are missing, the one that they hint at."""
    if keys & _KUBERNETES_PARTS:
        return ResourceType.DriverAndKubernetes
    if keys & (_YARN_PARTS | _DRIVER_PARTS):
        return ResourceType.DriverAndYarn
    if keys & _QUEUE_KEYS:
        return ResourceType.Yarn
    if "namespace" in keys:
        return ResourceType.Kubernetes
    if "resources" in keys:
        return ResourceType.Special
    return _recognised_server("memory" in keys, bool(keys & _CORES), bool(keys & _INSTANCES))


def _recognised_server(memory: bool, cores: bool, instances: bool) -> ResourceType:  # noqa: FBT001 - three facts
    match memory, cores, instances:
        case True, _, True:
            return ResourceType.LoadInstance
        case True, True, False:
            return ResourceType.Load
        case True, False, False:
            return ResourceType.Memory
        case False, _, True:
            return ResourceType.Instance
        case False, True, False:
            return ResourceType.CPU
    raise ShapeError("", "is no known resource: none of its fields is known")


def _read_text(text: str) -> dict[str, object]:
    """The stored shape of the two types whose record shape is no JSON: "Instance: 3", "Special:{gpu=2}"."""
    if instance := _INSTANCE_TEXT.fullmatch(text):
        return {"instances": int(instance[1])}
    special = _SPECIAL_TEXT.fullmatch(text)
    if special is None:
        raise ShapeError("", 'a text must be like "Instance: 3" or "Special:{gpu=2}"')
    resources: dict[str, int] = {}
    for entry in special[1].split(", ") if special[1] else ():
        pair = _SPECIAL_ENTRY.fullmatch(entry)
        if pair is None or pair[1] in resources:
            raise ShapeError("", f"{entry[:100]!r} is not one more name=number")
        resources[pair[1]] = int(pair[2])
    return {"resources": resources}


def _read_memory(fields: Fields) -> MemoryResource:
    return MemoryResource(fields.size("memory"))


def _read_cpu(fields: Fields) -> CPUResource:
    return CPUResource(fields.cores("cores", "cpu"))


def _read_load(fields: Fields) -> LoadResource:
    return LoadResource(fields.size("memory"), fields.cores("cores", "cpu"))


def _read_instance(fields: Fields) -> InstanceResource:
    """Linkis repeats the instances as cores; cores alone are no instances."""
    instances = fields.count("instances", "instance")
    if fields.has("cores"):
        fields.count("instances", "instance", "cores")
    return InstanceResource(instances)


def _read_load_instance(fields: Fields) -> LoadInstanceResource:
    return LoadInstanceResource(
        memory=fields.size("memory"),
        cores=fields.cores("cores", "cpu"),
        instances=fields.count("instances", "instance"),
    )


def _read_yarn(fields: Fields) -> YarnResource:
    return YarnResource(
        queue_memory=fields.size("queueMemory"),
        queue_cores=fields.cores("queueCores", "queueCpu"),
        queue_instances=fields.count("queueInstances", "instance"),
        queue_name=fields.text("queueName"),
        application_id=fields.text("applicationId"),
        cluster_name=fields.text("clusterName"),
    )


def _read_kubernetes(fields: Fields) -> KubernetesResource:
    return KubernetesResource(
        memory=fields.size("memory"),
        cores=fields.milli_cores("cores", "cpu"),
        namespace=fields.text("namespace"),
    )


def _read_driver_and_yarn(fields: Fields) -> DriverAndYarnResource:
    return DriverAndYarnResource(
        driver=fields.part(_read_load_instance, "loadInstanceResource", "driver"),
        yarn=fields.part(_read_yarn, "yarnResource", "yarn"),
    )


def _read_driver_and_kubernetes(fields: Fields) -> DriverAndKubernetesResource:
    fields.ignore("moduleOperate")  # Linkis writes it by accident; it says nothing about amounts.
    return DriverAndKubernetesResource(
        driver=fields.part(_read_load_instance, "loadInstanceResource", "driver"),
        kubernetes=fields.part(_read_kubernetes, "kubernetesResource", "kubernetes"),
    )


def _read_special(fields: Fields) -> SpecialResource:
    path, resources = fields.part_document("resources")
    return SpecialResource(read_vector(resources, path))


_READERS: Mapping[ResourceType, Callable[[Fields], Resource]] = {
    ResourceType.Default: _read_load,
    ResourceType.Memory: _read_memory,
    ResourceType.CPU: _read_cpu,
    ResourceType.Load: _read_load,
    ResourceType.Instance: _read_instance,
    ResourceType.LoadInstance: _read_load_instance,
    ResourceType.Yarn: _read_yarn,
    ResourceType.DriverAndYarn: _read_driver_and_yarn,
    ResourceType.Kubernetes: _read_kubernetes,
    ResourceType.DriverAndKubernetes: _read_driver_and_kubernetes,
    ResourceType.Special: _read_special,
}
