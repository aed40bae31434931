"""What was registered: nodes and the engines that run on them."""

from collections.abc import Mapping
from dataclasses import dataclass

from rm_service.domain.application import Instant
from rm_service.domain.tags import Tags


@dataclass(frozen=True, slots=True)
class Node:
    """A registered node; its amounts are the balance of its label. Times are microseconds UTC."""

    label_id: int
    instance: str
    target: int
    """Its durable number, given at the first registration and never to another node."""
    resource_type: str
    tags: Tags
    attributes: Mapping[str, object]
    devices: tuple[Mapping[str, object], ...]
    registered_at: Instant
    reason: str | None = None
    """Why it is drained or lost."""
    last_heartbeat: Instant | None = None
    deadline: Instant | None = None
    """When silence makes it lost; None until it has sent a heartbeat."""
    removed: bool = False
    partition: str = ""
    """The partition whose node it is; the empty one: a node of the ledger's own, registered by itself."""
    client: str | None = None
    """The resource manager that registered it, if one did."""
    registration: int | None = None
    """The client's registration under which it was last reported."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A started engine and the application that it runs for."""

    instance: str
    application_id: str
    node: str | None
    tags: Tags
    registered_at: Instant
    last_heartbeat: Instant | None = None
    deadline: Instant | None = None
    removed: bool = False
