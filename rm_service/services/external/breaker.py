"""A circuit breaker: who does not answer is left alone for a while, longer each time.

It is our own (docs/decisions/0020-own-breaker.md): its owner asks `may_try` before a call that
runs elsewhere, and tells later how that ended. It is not safe for threads: its owner's lock is around it.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum


class BreakerState(StrEnum):
    """Where a breaker stands."""

    CLOSED = "closed"
    """Calls go through."""
    OPEN = "open"
    """None does, until its time is over."""
    HALF_OPEN = "half_open"
    """One does, and decides."""


@dataclass(slots=True)
class Breaker:
    """Opens after `threshold` failures in a row: for `least_seconds`, each time twice as long, at most for
    `most_seconds`.
    """

    clock: Callable[[], float]
    """Seconds that only ever grow."""
    threshold: int = 3
    least_seconds: float = 5.0
    most_seconds: float = 60.0
    chance: Callable[[float, float], float] = random.uniform
    """Spreads the end of an open time, so that replicas do not probe all at once."""
    failures: int = 0
    """In a row."""
    retry_at: float | None = None
    """When the next call may be made; None: at any time."""
    _opened: int = field(default=0, init=False)
    _probing: bool = field(default=False, init=False)

    @property
    def state(self) -> BreakerState:
        if self.retry_at is None:
            return BreakerState.CLOSED
        due = self._probing or self.clock() >= self.retry_at
        return BreakerState.HALF_OPEN if due else BreakerState.OPEN

    def may_try(self) -> bool:
        """Whether a call may be made now; when half open, only the first asker is told so."""
        if self.state is BreakerState.HALF_OPEN:
            allowed = not self._probing
            self._probing = True
            return allowed
        return self.state is BreakerState.CLOSED

    def succeeded(self) -> None:
        """A call was answered."""
        self.failures = self._opened = 0
        self.retry_at = None
        self._probing = False

    def failed(self) -> None:
        """A call was not answered."""
        self.failures += 1
        if self._probing or self.failures >= self.threshold:
            seconds = min(self.least_seconds * 2.0**self._opened, self.most_seconds)
            self.retry_at = self.clock() + self.chance(0.9, 1.1) * seconds
            self._opened = min(self._opened + 1, 32)
        self._probing = False
