"""One fetch: a manager is asked for its applications and its places, and again if there was no answer."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from tenacity import RetryCallState, Retrying, retry_if_exception_type
from tenacity.wait import wait_exponential, wait_random

from external_providers.base import (
    AbsurdError,
    DeniedError,
    Health,
    MalformedError,
    ProviderError,
    UnreachableError,
)
from rm_service.domain.application import Instant
from rm_service.services.external.snapshot_check import check_look, in_words
from rm_service.services.external.snapshots import Snapshot
from rm_service.services.external.sources import Source

ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 2.0
_PAUSES = wait_exponential(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS) + wait_random(0, FIRST_PAUSE_SECONDS)


class FaultKind(StrEnum):
    """What went wrong with a fetch."""

    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    """The plugin did not come back in time: its call was given up."""
    DENIED = "denied"
    MALFORMED = "malformed"
    QUARANTINED = "quarantined"
    """What came cannot be, so it is not used."""
    DEFECT = "defect"
    """The plugin failed in a way that it should not."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why there is no newer snapshot. `reason` holds no secret."""

    kind: FaultKind
    reason: str
    at: Instant
    traceback: str = field(default="", repr=False)
    """Where a plugin's defect is."""

    def is_as(self, other: "Fault | None") -> bool:
        """Whether it was told already."""
        return other is not None and (self.kind, self.reason) == (other.kind, other.reason)


@dataclass(frozen=True, slots=True)
class Clocks:
    """Time as this process has it, and how it passes."""

    monotonic: Callable[[], float]
    now: Callable[[], Instant]
    pause: Callable[[float], None]
    """Wait for so many seconds; may end early when the service stops."""


def fetch(source: Source, clocks: Clocks, deadline: float, attempts: int = ATTEMPTS) -> Snapshot:
    """Look at the manager. `deadline` is on the monotonic clock: pauses and attempts end before it.

    Only what had no answer is tried again. Raises ProviderError, and whatever a plugin raises that has
    a defect.
    """

    def too_late(state: RetryCallState) -> bool:
        return clocks.monotonic() + state.upcoming_sleep >= deadline

    retrying = Retrying(
        retry=retry_if_exception_type(UnreachableError),
        wait=_PAUSES,
        stop=lambda state: state.attempt_number >= attempts or too_late(state),
        sleep=clocks.pause,
        reraise=True,
    )
    return retrying(_look, source, clocks, deadline)


def _look(source: Source, clocks: Clocks, deadline: float) -> Snapshot:
    """Both questions anew in each attempt: the two answers belong together."""
    began, at = clocks.monotonic(), clocks.now()
    applications = tuple(source.plugin.applications(source.request(_left(clocks, deadline))))
    places = tuple(source.plugin.places(source.request(_left(clocks, deadline))))
    checked = check_look(source.identity, places, applications)
    return Snapshot(
        checked.places,
        tuple(checked.applications),
        at,
        began,
        clocks.monotonic() - began,
        frozenset(checked.quarantined),
        tuple(checked.faults),
    )


def _left(clocks: Clocks, deadline: float) -> float:
    left = deadline - clocks.monotonic()
    if left <= 0:
        raise UnreachableError("no answer in time")
    return left


def health_of(source: Source, seconds: float) -> Health:
    """What the plugin says of its manager's health."""
    try:
        health = source.plugin.health(source.request(seconds))
    except Exception as error:  # noqa: BLE001 - a plugin may have any defect
        return Health(ok=False, detail=source.told(error))
    return Health(bool(health.ok), source.secrets.scrubbed(str(health.detail))[:1000])


_KINDS: tuple[tuple[type[Exception], FaultKind], ...] = (
    (AbsurdError, FaultKind.QUARANTINED),
    (DeniedError, FaultKind.DENIED),
    (MalformedError, FaultKind.MALFORMED),
    (UnreachableError, FaultKind.UNREACHABLE),
    (ProviderError, FaultKind.UNREACHABLE),
)


def quarantine_of(source: Source, snapshot: Snapshot, at: Instant) -> Fault | None:
    """What of a snapshot cannot be and is not used; the rest of it is."""
    if not snapshot.faults:
        return None
    return Fault(FaultKind.QUARANTINED, source.told(AbsurdError(in_words(snapshot.faults))), at)


def fault_of(source: Source, error: BaseException, at: Instant) -> Fault:
    """What an error of a fetch is to operators."""
    for kind, name in _KINDS:
        if isinstance(error, kind):
            return Fault(name, source.told(error), at)
    where = source.secrets.scrubbed("".join(traceback.format_exception(error)))
    return Fault(FaultKind.DEFECT, f"{type(error).__name__}: {source.told(error)}", at, where)
