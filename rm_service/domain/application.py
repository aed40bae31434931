"""An application: one request for resources, from its asking to its end.

apply ──▶ LOCKED ──use──▶ USED ──release──▶ RELEASED     (a client's: apply ──▶ USED)
  │         └─ lease over ─▶ RECLAIMED  └─ node or engine lost ─▶ LOST
  └▶ WAITING ──room──▶ LOCKED
        └─ deadline ─▶ EXPIRED
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rm_service.domain.amounts import NOTHING, Amounts, least
from rm_service.domain.device_selection import Held
from rm_service.domain.devices import amounts_of
from rm_service.domain.tags import Tags

Instant = int
"""A moment as microseconds since 1970-01-01 UTC."""

SECOND: Instant = 1_000_000


class State(StrEnum):
    """Where an application stands; the last five are final and hold nothing."""

    WAITING = "waiting"
    LOCKED = "locked"
    USED = "used"
    RELEASED = "released"
    EXPIRED = "expired"
    RECLAIMED = "reclaimed"
    PREEMPTED = "preempted"
    LOST = "lost"


LIVE = frozenset({State.WAITING, State.LOCKED, State.USED})
HOLDING = frozenset({State.LOCKED, State.USED})


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of a client's application beside what it holds."""

    registration: int = 1
    """The client's registration under which it was last reported."""
    run_for: Instant = 0
    """How long it may run, in microseconds; 0: without end."""
    ending: str | None = None
    """The Termination that its client was told and has not confirmed yet."""
    uuid: str | None = None
    """What its client calls the allocation, where that is no id of the ledger's."""
    reserved: int | None = None
    """The label of the node that is kept for an ask which has waited for long."""
    required_node: str | None = None
    """The only node that its client wants it on."""
    phase: str | None = None
    """Only for an application with members, as are all below."""
    waiting: int = 0
    """How many members wait; `holding`: hold something."""
    holding: int = 0
    run_until: Instant | None = None
    adopted: bool = False
    """Known, or known again, only by its members: its client has not named it under this registration."""


@dataclass(frozen=True, slots=True)
class External:
    """What an application is in an external manager."""

    ids: tuple[str, ...] = ()
    """What it is called there, as its engine has said."""
    shown: Amounts = field(default_factory=dict)
    """What the manager's list showed of it at the last look."""


@dataclass(slots=True)
class Application:
    """One application as its row holds it. Times are microseconds UTC, amounts base units.

    Never changed, always replaced - by agreement only: a frozen dataclass takes four times as long to make.
    """

    id: str
    state: State
    tags: Tags
    label_ids: tuple[int, ...]
    """The labels that it is charged to while it holds something."""
    requested: Amounts
    """What was asked for; charged as `locked` while the state is LOCKED."""
    request: Mapping[str, object]
    """The request as it was sent, to recognise a repetition."""
    priority: int
    lock_seconds: int
    created_at: Instant
    used: Amounts | None = None
    """What was reported as used; charged as `used` while the state is USED."""
    locked_at: Instant | None = None
    used_at: Instant | None = None
    finished_at: Instant | None = None
    deadline: Instant | None = None
    """When its present state ends by itself: the wait, the lock's lease, or the execution time."""
    since: Instant = 0
    """Since when it holds what it holds; once finished: held what it held last."""
    over_limit: bool = False
    reason: str | None = None
    """Why it waits, or why it ended other than by a release."""
    engine: str | None = None
    """The instance of the engine that runs it."""
    waits_on: tuple[int, ...] = ()
    """While WAITING: the labels that refused it, in whose queues it stands."""
    wait_seq: int | None = None
    """Its place in a queue among equal priorities: the number of the event that parked it."""
    placement: Mapping[str, Any] | None = None
    """What it asked for when it asked for a node instead of naming one."""
    client: str | None = None
    """The resource manager that is told what becomes of it. Its applications are used as soon as granted."""
    name: str | None = None
    """What the client calls it; the allocations of one ask share a name."""
    parent: str | None = None
    """The id of the application that it is a member of."""
    standing: Standing | None = None
    """Where a client's application stands; None for one without a client."""
    external: External | None = None
    """None as long as nothing is known of it outside."""
    alternatives: tuple[Tags, ...] = ()
    """While it waits: all of its tags as they may be instead, in the order of preference."""
    devices: tuple[Held, ...] = ()
    """The units of its node's devices that it was given; it holds them while it holds anything."""

    @property
    def has_members(self) -> bool:
        """Whether it stands for a client's application, whose members are asks and allocations."""
        return self.standing is not None and self.standing.phase is not None

    @property
    def outside_id(self) -> str:
        """What its client calls an allocation: mostly the ledger's id."""
        standing = self.standing
        return (standing.uuid if standing is not None else None) or str(self.request.get("uuid") or self.id)

    @property
    def is_told_of(self) -> bool:
        """Whether its client is told what becomes of it; of work that is not its own it is not."""
        return self.client is not None and not self.has_members and not self.request.get("foreign")

    @property
    def device_amounts(self) -> Amounts:
        """The devices that it was given, as amounts beside `requested` and `used`."""
        return amounts_of(self.devices) if self.devices else NOTHING

    @property
    def locked_now(self) -> Amounts:
        """What its labels count as locked for it."""
        if self.state is not State.LOCKED:
            return NOTHING
        return {**self.requested, **self.device_amounts} if self.devices else self.requested

    @property
    def used_now(self) -> Amounts:
        """What its labels count as used by it."""
        if self.state is not State.USED:
            return NOTHING
        used = self.used or NOTHING
        return {**used, **self.device_amounts} if self.devices else used

    @property
    def devices_now(self) -> tuple[Held, ...]:
        """The devices that it holds."""
        return self.devices if self.state in HOLDING else ()

    @property
    def seen_now(self) -> Amounts:
        """The part of what it holds that its external manager shows."""
        if self.external is None or not self.external.shown:
            return NOTHING
        return least(self.locked_now or self.used_now, self.external.shown)

    @property
    def resource(self) -> Amounts:
        """The amount that speaks for its present state: used when it was ever used, else requested."""
        return self.requested if self.used is None else self.used
