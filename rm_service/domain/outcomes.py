"""Outcomes: what became of an operation, or why it was refused."""

from dataclasses import dataclass
from enum import StrEnum

from rm_service.domain.accounts import Shortfall
from rm_service.domain.application import Application
from rm_service.domain.class_book import ResourceClass
from rm_service.domain.registrations import Engine, Node
from rm_service.domain.tags import Tags


class Code(StrEnum):
    """Why an operation was refused; a closed list, and where several hold, the first one is told."""

    UNKNOWN_APPLICATION = "unknown_application"
    UNKNOWN_NODE = "unknown_node"
    UNKNOWN_ENGINE = "unknown_engine"
    UNKNOWN_LIMIT = "unknown_limit"
    UNKNOWN_PROVIDER = "unknown_provider"
    PROVIDER_TIE = "provider_tie"
    UNKNOWN_CLASS = "unknown_class"
    CLASS_EXISTS = "class_exists"
    TOO_MANY_CLASSES = "too_many_classes"
    TOO_MANY_SIGNATURES = "too_many_signatures"
    """Devices have so many different sets of attributes that they tell every device from all others."""
    INVALID_CLASSES = "invalid_classes"
    ID_REUSED = "id_reused"
    ENGINE_EXISTS = "engine_exists"
    WRONG_NODE = "wrong_node"
    INVALID_LIMIT = "invalid_limit"
    LIMITS_UNKNOWN = "limits_unknown"
    """The source of limits cannot be asked, and without it nothing is granted."""
    INVALID_RULES = "invalid_rules"
    OVERFLOW = "overflow"
    EXPIRED = "expired"
    NO_LOCK = "no_lock"
    NODE_LOST = "node_lost"
    NODE_IN_USE = "node_in_use"
    NODE_NOT_SCHEDULABLE = "node_not_schedulable"
    INSUFFICIENT_RESOURCES = "insufficient_resources"
    NOT_DONE = "not_done"
    """Nothing wrong with this one, but another operation of its group was refused."""


@dataclass(frozen=True, slots=True)
class Done:
    """The operation took place, or had taken place before (`repeated`)."""

    application: Application | None = None
    node: Node | None = None
    engine: Engine | None = None
    limit_id: int | None = None
    registration: int | None = None
    """Of a client: how often it has registered."""
    resource_class: ResourceClass | None = None
    created: bool = False
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing changed, and this is why."""

    code: Code
    detail: str
    shortfalls: tuple[Shortfall, ...] = ()
    state: str | None = None
    field: str | None = None
    label: Tags | None = None


Outcome = Done | Refused
