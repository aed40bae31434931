"""Clients: resource managers that name what they ask for, report what runs, and are told what came of it."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Client:
    """Whom to tell, and under which of its registrations it asks."""

    id: str
    registration: int = 1


class ClientState(StrEnum):
    """Whether a resource manager is there. Only one that runs is granted anything."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"


class Phase(StrEnum):
    """Where an application with members stands, in the Scheduler Interface's own words."""

    NEW = "New"
    ACCEPTED = "Accepted"
    RUNNING = "Running"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    FAILING = "Failing"
    FAILED = "Failed"


class Termination(StrEnum):
    """Why something was released, by its name: the numbers differ between dialects of the interface."""

    UNKNOWN = "UNKNOWN_TERMINATION_TYPE"
    STOPPED_BY_RM = "STOPPED_BY_RM"
    TIMEOUT = "TIMEOUT"
    PREEMPTED_BY_SCHEDULER = "PREEMPTED_BY_SCHEDULER"
    PLACEHOLDER_REPLACED = "PLACEHOLDER_REPLACED"
    SCHEDULING_FAILED_ON_RM = "SCHEDULING_FAILED_ON_RM"


CONFIRMED = frozenset({Termination.TIMEOUT, Termination.PREEMPTED_BY_SCHEDULER})
"""What the client is told first and confirms by the same word."""
