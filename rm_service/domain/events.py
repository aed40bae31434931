"""Events: what happened, numbered without gaps, each with the change of balances that it stands for.

The balances move only through events, so folding the events from a checkpoint gives the balances again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rm_service.domain.amounts import Amounts
from rm_service.domain.application import Instant
from rm_service.domain.tags import Tags


class Kind(StrEnum):
    """What kinds of events there are; the word before the dot says what the subject is."""

    APPLICATION_WAITING = "application.waiting"
    APPLICATION_LOCKED = "application.locked"
    APPLICATION_USED = "application.used"
    APPLICATION_ADJUSTED = "application.adjusted"
    APPLICATION_RENEWED = "application.renewed"
    APPLICATION_RELEASED = "application.released"
    APPLICATION_EXPIRED = "application.expired"
    APPLICATION_RECLAIMED = "application.reclaimed"
    APPLICATION_LOST = "application.lost"
    APPLICATION_REBOOKED = "application.rebooked"
    APPLICATION_PREEMPTED = "application.preempted"
    APPLICATION_REPORTED = "application.reported"
    """Its client, registered anew, knows of it; nothing has changed."""
    APPLICATION_ENDING = "application.ending"
    """Its client was told to end it and is to confirm that; until then it holds what it holds."""
    APPLICATION_RESERVED = "application.reserved"
    """A node is kept for an ask that has waited for long."""
    APPLICATION_PHASE = "application.phase"
    """An application with members came into another phase."""
    NODE_REGISTERED = "node.registered"
    NODE_DRAINING = "node.draining"
    NODE_UNDRAINED = "node.undrained"
    NODE_LOST = "node.lost"
    NODE_REMOVED = "node.removed"
    ENGINE_REGISTERED = "engine.registered"
    ENGINE_REMOVED = "engine.removed"
    LIMIT_SET = "limit.set"
    LIMIT_REMOVED = "limit.removed"
    LIMITS_TAKEN = "limits.taken"
    """A limit source says something else about some tag combinations than before."""
    RULES_CHANGED = "rules.changed"
    CLIENT_REGISTERED = "client.registered"
    CLIENT_PAUSED = "client.paused"
    CLIENT_RESUMED = "client.resumed"
    CLIENT_STOPPED = "client.stopped"
    CLIENT_REJECTED = "client.rejected"
    """Something that a client asked for was refused; nothing has changed."""
    EXTERNAL_OBSERVED = "external.observed"
    """A place of an external manager has, or uses, something else than at the last look."""
    PROVIDER_STORED = "provider.stored"
    PROVIDER_REMOVED = "provider.removed"
    CLASS_CREATED = "class.created"
    CLASS_REMOVED = "class.removed"
    DEADLINES_SHIFTED = "deadlines.shifted"


@dataclass(slots=True)
class Event:
    """One row of the outbox; never changed."""

    seq: int
    time: Instant
    kind: Kind
    subject: str
    """The application's id, the node's or engine's instance, or the limit's id."""
    label_ids: tuple[int, ...] = ()
    """The labels whose balances it changes."""
    locked: Amounts = field(default_factory=dict)
    """What it adds to `locked` of each of these labels (negative: takes away)."""
    used: Amounts = field(default_factory=dict)
    holders: int = 0
    """What it adds to the count of applications that hold something there."""
    tags: Tags | None = None
    detail: Mapping[str, object] | None = None
    """What else there is to know, by kind: a node's `total`, `protected`, `closed`; a `reason`."""
    client: str | None = None
    """The resource manager that is told of it."""
    answer: Mapping[str, object] | None = None
    """What it is told: rm_service/domain/answers.py."""
