"""The walk through a trace in messages: as a resource manager tells of it over the Scheduler Interface."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rm_service.commands.replay_run import Ground, Step, Walk
from rm_service.commands.trace import TraceTask

HAD_TO_WAIT = "had to wait"
TOGETHER = 100
"""Steps in one message."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What one message led to, by the names of its tasks; durations are seconds from its sending on."""

    nodes: dict[str, str] = field(default_factory=dict)
    """Where each granted task is; what is not here has to wait, and is withdrawn."""
    asked: dict[str, float] = field(default_factory=dict)
    """When the answer to each ask was there; to one that has to wait: when that was known."""
    released: dict[str, float] = field(default_factory=dict)


class Carrier(Ground, Protocol):
    """Carries messages to a scheduler."""

    def carry(self, asks: Sequence[TraceTask], releases: Sequence[TraceTask], trace: str) -> Carried:
        """Send one message and wait for all that comes of it. Its asks come before its releases, whatever
        their order in the trace; an ask that is not granted at once is withdrawn.
        """


class MessageReplay(Walk[Carrier]):
    """Up to `together` steps in one message, in the order of the trace; the next when it is answered."""

    def __init__(
        self,
        driver: Carrier,
        trace: str,
        together: int = TOGETHER,
        *,
        speed: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        """As Walk. With a `speed` a message holds what is due by then, so it may be shorter."""
        super().__init__(driver, trace, speed=speed, clock=clock, pause=pause)
        self.together = together

    def _take(self, steps: Sequence[Step], advance: Callable[[int], object]) -> None:
        start = 0
        while start < len(steps):
            self._wait_for(steps[start])
            end = start + 1
            while end < len(steps) and end - start < self.together and self._ahead(steps[end]) <= 0:
                end += 1
            self._send(steps[start:end])
            advance(end - start)
            start = end

    def _give_all_back(self) -> None:
        held = [task for task, _ in self._held.values()]
        for start in range(0, len(held), self.together):
            self._end(self._carry([], held[start : start + self.together]).released)

    def _send(self, steps: Sequence[Step]) -> None:
        asks = [step.task for step in steps if not step.is_deletion]
        names = self._held.keys() | {task.name for task in asks}
        ends = [step.task for step in steps if step.is_deletion and step.task.name in names]
        if not asks and not ends:
            return
        carried = self._carry(asks, ends)
        for task in asks:
            self.record.took("ask", carried.asked[task.name])
            if task.name in carried.nodes:
                node = carried.nodes[task.name]
                self._held[task.name] = (task, node)
                self.record.grant(task, node)
            else:
                self.record.refused[HAD_TO_WAIT] += 1
        self._end(carried.released)

    def _carry(self, asks: Sequence[TraceTask], releases: Sequence[TraceTask]) -> Carried:
        return self.driver.carry(asks, releases, self.record.trace)

    def _end(self, released: Mapping[str, float]) -> None:
        for name, seconds in released.items():
            self.record.took("release", seconds)
            self.record.give_back(self._held.pop(name)[0])
