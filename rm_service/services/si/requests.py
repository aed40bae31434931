"""What a resource manager (RM) says, in words that all dialects of the Scheduler Interface share.

A façade reads its messages into these. Amounts are in base units as on the wire; an empty text means that
nothing was said. Enum numbers that nobody knows arrive as UNKNOWN.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rm_service.domain.amounts import Amounts
from rm_service.domain.clients import Termination

__all__ = [
    "Ask",
    "Dialect",
    "ExistingAllocation",
    "NewApplication",
    "NodeAction",
    "NodeChange",
    "Preemption",
    "Registration",
    "Release",
    "RemovedApplication",
    "Termination",
    "Update",
]


MAX_TIMEOUT_MS = 100 * 365 * 86_400_000
"""A longer execution timeout counts as this one, so that every deadline is a number that can be kept."""


class Dialect(StrEnum):
    """Which generation of the Scheduler Interface an RM speaks."""

    OLD = "old"
    """One Update stream (v0.11)."""
    SEED = "seed"
    """Three streams, asks apart from allocations (v1.0 to v1.5)."""
    NEWEST = "newest"
    """Three streams, an ask is an allocation without a node (since v1.6)."""


class NodeAction(StrEnum):
    UNKNOWN = "UNKNOWN_ACTION_FROM_RM"
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DRAIN_NODE = "DRAIN_NODE"
    DECOMISSION = "DECOMISSION"
    DRAIN_TO_SCHEDULABLE = "DRAIN_TO_SCHEDULABLE"
    CREATE_DRAIN = "CREATE_DRAIN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """RegisterResourceManagerRequest. `config` and the values of `extra_config` are secret: never logged."""

    rm_id: str
    version: str = ""
    policy_group: str = ""
    build_info: Mapping[str, str] = field(default_factory=dict)
    config: str = field(default="", repr=False)
    extra_config: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewApplication:
    """AddApplicationRequest."""

    application: str
    queue: str = ""
    partition: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    timeout_ms: int = 0
    placeholder_ask: Amounts = field(default_factory=dict)
    gang_style: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedApplication:
    """RemoveApplicationRequest."""

    application: str
    partition: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    """PreemptionPolicy, where one was sent."""

    allow_self: bool = False
    allow_other: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """AllocationAsk, or in the newest dialect an Allocation without a node."""

    key: str
    application: str = ""
    partition: str = ""
    resource: Amounts | None = None
    count: int = 1
    """maxAllocations; 1 where the dialect has none."""
    priority: int | str = 0
    """A number (higher first), or the name of a priority class."""
    timeout_ms: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)
    task_group: str = ""
    placeholder: bool = False
    originator: bool = False
    preemption: Preemption | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingAllocation:
    """An Allocation that the RM reports as running: one with a node."""

    key: str
    node: str
    application: str = ""
    partition: str = ""
    id: str = ""
    """UUID or allocationID, if one was sent."""
    resource: Amounts | None = None
    priority: int | str = 0
    tags: Mapping[str, str] = field(default_factory=dict)
    task_group: str = ""
    placeholder: bool = False
    originator: bool = False
    preemption: Preemption | None = None
    queue: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """NodeInfo, or NewNodeInfo (CREATE) and UpdateNodeInfo. None: the field was not sent."""

    node: str
    action: NodeAction
    attributes: Mapping[str, str] = field(default_factory=dict)
    schedulable: Amounts | None = None
    occupied: Amounts | None = None
    existing: tuple[ExistingAllocation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """AllocationRelease, or AllocationAskRelease (`only_ask`)."""

    application: str = ""
    key: str = ""
    id: str = ""
    """UUID or allocationID, if one was sent."""
    partition: str = ""
    termination: Termination = Termination.UNKNOWN
    message: str = ""
    only_ask: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Everything that one message asks for; carried out in the order of these fields."""

    rm_id: str
    dialect: Dialect
    applications: tuple[NewApplication, ...] = ()
    nodes: tuple[NodeChange, ...] = ()
    allocations: tuple[ExistingAllocation, ...] = ()
    asks: tuple[Ask, ...] = ()
    releases: tuple[Release, ...] = ()
    removals: tuple[RemovedApplication, ...] = ()
