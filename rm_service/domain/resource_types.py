"""The Linkis resource types as immutable values: memory in bytes, cores whole (Kubernetes: milli-cores).

Their operators are those of resource_algebra.py. resource_amounts.py turns them into the ledger's amounts,
resource_shapes.py reads and writes them as JSON.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import ClassVar, Self

from rm_service.domain.resource_algebra import Numbers, Resource, check_numbers


class ResourceType(Enum):
    """The types by their Linkis names; the class name ("LoadResource") is understood too."""

    Default = "Default"
    """Means Load."""
    Memory = "Memory"
    CPU = "CPU"
    Load = "Load"
    Instance = "Instance"
    LoadInstance = "LoadInstance"
    Yarn = "Yarn"
    DriverAndYarn = "DriverAndYarn"
    Kubernetes = "Kubernetes"
    DriverAndKubernetes = "DriverAndKubernetes"
    Special = "Special"

    @classmethod
    def _missing_(cls, value: object) -> "ResourceType | None":
        if isinstance(value, str) and value.endswith("Resource"):
            return cls.__members__.get(value.removesuffix("Resource"))
        return None


@dataclass(frozen=True)
class _FlatResource(Resource):
    """A resource whose numbers are fields of its own."""

    resource_type: ClassVar[ResourceType]
    fields_by_dimension: ClassVar[Mapping[str, str]]

    def __post_init__(self) -> None:
        check_numbers(self.numbers())

    def numbers(self) -> Numbers:
        return {dimension: getattr(self, name) for dimension, name in self.fields_by_dimension.items()}

    def with_numbers(self, numbers: Numbers) -> Self:
        return replace(
            self, **{name: numbers[dimension] for dimension, name in self.fields_by_dimension.items()}
        )


@dataclass(frozen=True)
class MemoryResource(_FlatResource):
    """Bytes."""

    memory: int
    resource_type = ResourceType.Memory
    fields_by_dimension = MappingProxyType({"memory": "memory"})


@dataclass(frozen=True)
class CPUResource(_FlatResource):
    """Whole cores."""

    cores: int
    resource_type = ResourceType.CPU
    fields_by_dimension = MappingProxyType({"vcore": "cores"})


@dataclass(frozen=True)
class LoadResource(_FlatResource):
    """Bytes and whole cores."""

    memory: int
    cores: int
    resource_type = ResourceType.Load
    fields_by_dimension = MappingProxyType({"memory": "memory", "vcore": "cores"})


@dataclass(frozen=True)
class InstanceResource(_FlatResource):
    """A number of engine instances. Not a kind of CPU here, as it is in the reference."""

    instances: int
    resource_type = ResourceType.Instance
    fields_by_dimension = MappingProxyType({"instances": "instances"})


@dataclass(frozen=True)
class LoadInstanceResource(_FlatResource):
    """What a server has: bytes, whole cores, engine instances."""

    memory: int
    cores: int
    instances: int
    resource_type = ResourceType.LoadInstance
    fields_by_dimension = MappingProxyType({"memory": "memory", "vcore": "cores", "instances": "instances"})


@dataclass(frozen=True)
class YarnResource(_FlatResource):
    """A part of a YARN queue: bytes, whole cores, containers; the queue, its cluster, the YARN application.

    An empty name is one not given. Order looks at memory and cores only; `==` also at the containers and at
    queue and cluster. Of a sum, the right operand's queue and cluster win, and the application is dropped.
    """

    queue_memory: int
    queue_cores: int
    queue_instances: int
    queue_name: str = ""
    application_id: str = field(default="", compare=False)
    cluster_name: str = ""
    resource_type = ResourceType.Yarn
    fields_by_dimension = MappingProxyType(
        {"yarn.memory": "queue_memory", "yarn.vcore": "queue_cores", "yarn.instances": "queue_instances"}
    )

    def ordered_numbers(self) -> Numbers:
        return {"yarn.memory": self.queue_memory, "yarn.vcore": self.queue_cores}

    def named_after(self, other: Self) -> Self:
        return replace(
            self,
            queue_name=other.queue_name or self.queue_name,
            cluster_name=other.cluster_name or self.cluster_name,
            application_id="",
        )


@dataclass(frozen=True)
class KubernetesResource(_FlatResource):
    """A part of a Kubernetes namespace: bytes and milli-cores.

    Resources of two namespaces are not comparable, and a sum keeps the left operand's namespace.
    """

    memory: int
    cores: int
    namespace: str = ""
    resource_type = ResourceType.Kubernetes
    fields_by_dimension = MappingProxyType({"k8s.memory": "memory", "k8s.vcore": "cores"})

    def shares_place_with(self, other: Self) -> bool:
        return self.namespace == other.namespace


@dataclass(frozen=True)
class DriverAndYarnResource(Resource):
    """A driver on a server with its executors in a YARN queue."""

    driver: LoadInstanceResource
    yarn: YarnResource
    resource_type: ClassVar[ResourceType] = ResourceType.DriverAndYarn

    def numbers(self) -> Numbers:
        return self.driver.numbers() | self.yarn.numbers()

    def with_numbers(self, numbers: Numbers) -> Self:
        return replace(self, driver=self.driver.with_numbers(numbers), yarn=self.yarn.with_numbers(numbers))

    def ordered_numbers(self) -> Numbers:
        return self.driver.ordered_numbers() | self.yarn.ordered_numbers()

    def named_after(self, other: Self) -> Self:
        return replace(self, yarn=self.yarn.named_after(other.yarn))

    def widened(self, smaller: Resource) -> Self | None:
        if isinstance(smaller, YarnResource):
            return replace(self, driver=LoadInstanceResource(0, 0, 0), yarn=smaller)
        return super().widened(smaller)

    def part_for(self, left: Resource) -> Resource:
        return self.driver if isinstance(left, LoadInstanceResource) else self


@dataclass(frozen=True)
class DriverAndKubernetesResource(Resource):
    """A driver on a server with its executors in a Kubernetes namespace."""

    driver: LoadInstanceResource
    kubernetes: KubernetesResource
    resource_type: ClassVar[ResourceType] = ResourceType.DriverAndKubernetes

    def numbers(self) -> Numbers:
        return self.driver.numbers() | self.kubernetes.numbers()

    def with_numbers(self, numbers: Numbers) -> Self:
        return replace(
            self, driver=self.driver.with_numbers(numbers), kubernetes=self.kubernetes.with_numbers(numbers)
        )

    def shares_place_with(self, other: Self) -> bool:
        return self.kubernetes.shares_place_with(other.kubernetes)

    def widened(self, smaller: Resource) -> Self | None:
        if isinstance(smaller, KubernetesResource):
            return replace(self, driver=LoadInstanceResource(0, 0, 0), kubernetes=smaller)
        return super().widened(smaller)

    def part_for(self, left: Resource) -> Resource:
        return self.driver if isinstance(left, LoadInstanceResource) else self


@dataclass(frozen=True)
class SpecialResource(Resource):
    """Counts under names of the caller's own; a name that one operand lacks counts as 0 there."""

    resources: Mapping[str, int]
    resource_type: ClassVar[ResourceType] = ResourceType.Special
    dimensions_are_fixed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_numbers(dict(self.resources))
        # A copy that nobody can change, sorted so that equal resources are written alike.
        object.__setattr__(self, "resources", MappingProxyType(dict(sorted(self.resources.items()))))

    def __hash__(self) -> int:
        return hash(tuple(self.resources.items()))

    def numbers(self) -> Numbers:
        return dict(self.resources)

    def with_numbers(self, numbers: Numbers) -> Self:
        return replace(self, resources=numbers)

    def widened(self, smaller: Resource) -> Self | None:  # noqa: ARG002 - its names mean nothing to other types
        return None
