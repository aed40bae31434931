"""Resources written in the two typed shapes of Linkis, so that its tools and records can read them.

`read_resource` reads the stored shape back exactly; the record shape rounds memory to one decimal.
"""

from collections.abc import Mapping

from rm_service.domain.linkis_sizes import format_linkis_size
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

Document = dict[str, object]
_Keys = Mapping[type[Resource], Mapping[str, str]]

# The keys of each type, in the order written, with the dimension whose number they hold. Linkis writes
# some numbers twice.
_STORED_KEYS: _Keys = {
    MemoryResource: {"memory": "memory"},
    CPUResource: {"cores": "vcore"},
    LoadResource: {"memory": "memory", "cores": "vcore"},
    InstanceResource: {"cores": "instances", "instances": "instances"},
    LoadInstanceResource: {
        "memory": "memory",
        "cores": "vcore",
        "instances": "instances",
        "instance": "instances",
    },
    YarnResource: {
        "queueMemory": "yarn.memory",
        "queueCores": "yarn.vcore",
        "queueInstances": "yarn.instances",
    },
    KubernetesResource: {"memory": "k8s.memory", "cores": "k8s.vcore"},
}
_RECORD_KEYS: _Keys = {
    MemoryResource: {"memory": "memory"},
    CPUResource: {"cpu": "vcore"},
    LoadResource: {"memory": "memory", "cpu": "vcore"},
    LoadInstanceResource: {"instance": "instances", "memory": "memory", "cpu": "vcore"},
    YarnResource: {"queueMemory": "yarn.memory", "queueCpu": "yarn.vcore", "instance": "yarn.instances"},
    KubernetesResource: {"memory": "k8s.memory", "cpu": "k8s.vcore"},
}
_MEMORY = frozenset({"memory", "yarn.memory", "k8s.memory"})


def write_stored(resource: Resource) -> Document:
    """The stored shape: exact numbers, bytes and cores (Kubernetes: milli-cores).

    `clusterName` is ours and appears only if a cluster is named.
    """
    match resource:
        case DriverAndYarnResource(driver, yarn):
            return {"loadInstanceResource": write_stored(driver), "yarnResource": write_stored(yarn)}
        case DriverAndKubernetesResource(driver, part):
            return {"loadInstanceResource": write_stored(driver), "kubernetesResource": write_stored(part)}
        case SpecialResource(resources):
            return {"resources": dict(resources)}
        case YarnResource(application_id=application_id):
            return _written(resource, _STORED_KEYS) | {"applicationId": application_id}
        case _:
            return _written(resource, _STORED_KEYS)


def write_record(resource: Resource) -> Document | str:
    """The record shape for people: memory as text ("2.0 GB"); Instance and Special are plain texts."""
    match resource:
        case DriverAndYarnResource(driver, yarn):
            return {"driver": write_record(driver), "yarn": write_record(yarn)}
        case DriverAndKubernetesResource(driver, part):
            return {"driver": write_record(driver), "kubernetes": write_record(part)}
        case SpecialResource(resources):
            return f"Special:{{{', '.join(f'{name}={number}' for name, number in resources.items())}}}"
        case InstanceResource(instances):
            return f"Instance: {instances}"
        case _:
            document = _written(resource, _RECORD_KEYS)
            for key, dimension in _RECORD_KEYS[type(resource)].items():
                if dimension in _MEMORY:
                    document[key] = format_linkis_size(resource.numbers()[dimension])
            return document


def _written(resource: Resource, keys: _Keys) -> Document:
    numbers = resource.numbers()
    document: Document = {key: numbers[dimension] for key, dimension in keys[type(resource)].items()}
    match resource:
        case KubernetesResource(namespace=namespace):
            document["namespace"] = namespace
        case YarnResource(queue_name=queue_name, cluster_name=cluster_name):
            document["queueName"] = queue_name
            if cluster_name:
                document["clusterName"] = cluster_name
    return document
