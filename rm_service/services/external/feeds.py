"""Feeds: what this process knows of each provider that it follows, and how that is shown."""

import contextlib
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Event

from external_providers.base import Health
from rm_service.domain.providers import StoredProvider
from rm_service.services.external.breaker import Breaker, BreakerState
from rm_service.services.external.fetching import Fault, FaultKind
from rm_service.services.external.snapshots import Key, Snapshot
from rm_service.services.external.sources import Source, Unparsed

MAX_STUCK = 3
"""So many calls of one provider may hang at a time; then it is not called again until one comes back."""


class NoSnapshotError(Exception):
    """There is no newer snapshot of a provider, and this is why."""


class ProviderState(StrEnum):
    """How a provider stands."""

    PENDING = "pending"
    """It has not been looked at yet."""
    OK = "ok"
    LATE = "late"
    """The look that runs, or the last one, takes longer than the time between two."""
    FAILING = "failing"
    """The last look brought nothing; an earlier snapshot may be there."""
    QUARANTINED = "quarantined"
    """The last look brought what cannot be."""
    UNUSABLE = "unusable"
    """It cannot be asked at all: its plugin, its configuration or its key is missing, or its row is bad."""


@dataclass(eq=False, slots=True)
class Call:
    """One call of a plugin on a thread of its own."""

    began: float
    deadline: float
    """When it is given up; both on the monotonic clock."""
    probing: bool = False
    """It decides whether a breaker closes."""
    settled: bool = False
    """Its result has been taken; what follows is handing it on."""
    asking_health: bool = False
    future: Future[Snapshot] = field(default_factory=Future)
    ended: Event = field(default_factory=Event)

    def is_over(self, now: float) -> bool:
        """Whether to wait for it no longer. Handing on is never given up: nobody else would do it."""
        return now >= self.deadline and (self.asking_health or not self.settled)


@dataclass(eq=False, slots=True)
class Feed:
    """One provider that is followed. It belongs to the refresher and its lock."""

    stored: StoredProvider
    unparsed: Unparsed | None
    problem: str | None
    """Why it cannot be asked."""
    breaker: Breaker
    next_at: float
    """When it is to be looked at next."""
    source: Source | None = None
    """What its plug-in has made of it; None until a call has had it parsed."""
    is_parsed: bool = False
    """Whether `source` is what the plug-in makes of the version that is stored now."""
    call: Call | None = None
    stuck: list[Call] = field(default_factory=list)
    """Calls that were given up and have not come back."""
    asked: Future[Snapshot] | None = None
    """Whoever wants the next snapshot waits for this one."""
    fault: Fault | None = None
    """The last one, also after it is over."""
    failing: bool = False
    stale: bool = False
    """Whether what was seen of it last was too old when that was looked at last."""
    late: bool = False
    """Whether a look took longer than the time between two when that was looked at last."""
    health: Health | None = None
    health_at: float = 0.0

    @property
    def key(self) -> Key:
        return self.stored.type, self.stored.name

    @property
    def is_callable(self) -> bool:
        return self.problem is None and self.call is None and len(self.stuck) < MAX_STUCK

    def is_late(self, now: float) -> bool:
        """Whether the look that runs takes longer than the time between two; else, whether the last did."""
        call = self.call
        return self.late or (call is not None and not call.settled and self.is_overdue(now - call.began))

    def is_overdue(self, seconds: float) -> bool:
        """Whether a look that takes so long ends after the next one was due."""
        return seconds > self.stored.refresh_seconds

    def futures(self) -> list[Future[Snapshot]]:
        """Whoever waits for it."""
        now = [] if self.call is None else [self.call.future]
        return now if self.asked is None else [*now, self.asked]

    def state(self, snapshot: Snapshot | None, now: float) -> ProviderState:
        """How it stands, with this as its latest snapshot."""
        if self.problem is not None:
            return ProviderState.UNUSABLE
        if self.failing and self.fault is not None:
            quarantined = self.fault.kind is FaultKind.QUARANTINED
            return ProviderState.QUARANTINED if quarantined else ProviderState.FAILING
        if self.is_late(now):
            return ProviderState.LATE
        return ProviderState.PENDING if snapshot is None else ProviderState.OK


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """How a provider stands at this moment in this process."""

    stored: StoredProvider
    state: ProviderState
    problem: str | None
    snapshot: Snapshot | None
    age_seconds: float | None
    breaker: BreakerState
    failures: int
    """In a row."""
    fault: Fault | None
    health: Health | None
    late: bool
    """Whether the look that runs, or the last one, takes longer than the time between two."""
    stuck: int
    """Calls that were given up and have not come back."""

    @property
    def is_stale(self) -> bool:
        """Whether what is known is older than it may be relied on; or nothing is known."""
        return self.age_seconds is None or is_too_old(self.stored, self.age_seconds)


def is_too_old(stored: StoredProvider, age_seconds: float) -> bool:
    """Whether a snapshot of this age may not be relied on."""
    return age_seconds >= stored.stale_seconds


def fail(future: Future[Snapshot], reason: str) -> None:
    """Tell whoever waits why there is nothing; too late is harmless."""
    with contextlib.suppress(InvalidStateError):
        future.set_exception(NoSnapshotError(reason))


def failed(reason: str) -> Future[Snapshot]:
    """A wait that is over at once."""
    future: Future[Snapshot] = Future()
    fail(future, reason)
    return future
