"""The walk through a trace: creations and deletions in their order, one operation at a time."""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rm_service.commands.replay_drivers import Driver, Granted, NotGranted
from rm_service.commands.trace import TraceNode, TraceTask
from rm_service.domain.amounts import minus, plus

REGISTER_TOGETHER = 100

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Step:
    """A moment of the trace, in its seconds, at which a task comes or goes."""

    time: int
    task: TraceTask
    is_deletion: bool


def steps_of(tasks: Iterable[TraceTask]) -> list[Step]:
    """Every step in the order of the walk: by time, at equal times deletions first, then by name.

    Only the deletion of a task that ends in the second of its creation comes behind that creation.
    """
    keyed: list[tuple[tuple[int, bool, str, bool], Step]] = []
    for task in tasks:
        keyed.append(((task.created, True, task.name, False), Step(task.created, task, is_deletion=False)))
        if task.deleted is not None:
            at_once = task.deleted == task.created
            keyed.append(
                ((task.deleted, at_once, task.name, True), Step(task.deleted, task, is_deletion=True))
            )
    return [step for _, step in sorted(keyed, key=lambda pair: pair[0])]


def first_created(tasks: Iterable[TraceTask], limit: int | None) -> list[TraceTask]:
    """The `limit` tasks that are created first, equal times by name; None: all of them."""
    return sorted(tasks, key=lambda task: (task.created, task.name))[:limit]


@dataclass(slots=True)
class Record:
    """What a replay did. Amounts are base units, durations seconds."""

    trace: str
    nodes: int = 0
    total: dict[str, int] = field(default_factory=dict)
    """What all nodes have together."""
    granted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Number of refused tasks by reason."""
    peak: dict[str, int] = field(default_factory=dict)
    """The most that was in use at any one time, for each dimension on its own."""
    latencies: dict[str, list[float]] = field(default_factory=dict)
    """How long each apply, use and release took."""
    seconds: float = 0.0
    """How long the walk took, pauses included."""
    digest: str = hashlib.sha256().hexdigest()
    """SHA-256 over a line `name node` for each grant, in order: equal for equal grants."""
    audit: Mapping[str, Any] = field(default_factory=dict)

    @property
    def operations(self) -> int:
        return sum(len(durations) for durations in self.latencies.values())


class Replay:
    """One replay of a trace through a driver. What it holds at the end, it gives back."""

    def __init__(
        self,
        driver: Driver,
        trace: str,
        *,
        speed: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        """`speed`: seconds of the trace that pass in one second; None: as fast as possible."""
        self.driver = driver
        self.speed = speed
        self.record = Record(trace)
        self._clock = clock
        self._pause = pause
        self._held: dict[str, Granted] = {}
        self._in_use: dict[str, int] = {}
        self._digest = hashlib.sha256()

    def register(self, nodes: Sequence[TraceNode], advance: Callable[[int], object]) -> None:
        """Register all nodes; `advance` hears how many each time."""
        for start in range(0, len(nodes), REGISTER_TOGETHER):
            some = nodes[start : start + REGISTER_TOGETHER]
            self.driver.register(some, self.record.trace)
            for node in some:
                self.record.total = plus(self.record.total, node.total)
            self.record.nodes += len(some)
            advance(len(some))

    def walk(self, steps: Sequence[Step], advance: Callable[[int], object]) -> None:
        """Take every step; `advance` hears of each. Whatever happens, nothing stays held behind it."""
        tasks: dict[str, TraceTask] = {}
        began = self._clock()
        try:
            for step in steps:
                self._wait_for(step, steps[0].time, began)
                tasks[step.task.name] = step.task
                if step.is_deletion:
                    self._release(step.task)
                else:
                    self._apply(step.task)
                advance(1)
        finally:
            for name in list(self._held):
                self._release(tasks[name])
            self.record.seconds = self._clock() - began
            self.record.digest = self._digest.hexdigest()

    def audit(self) -> None:
        """Ask for the audit's verdict."""
        self.record.audit = self.driver.audit()

    def _wait_for(self, step: Step, first: int, began: float) -> None:
        if self.speed is not None:
            ahead = (step.time - first) / self.speed - (self._clock() - began)
            if ahead > 0:
                self._pause(ahead)

    def _apply(self, task: TraceTask) -> None:
        answer = self._timed("apply", lambda: self.driver.apply(task, self.record.trace))
        if isinstance(answer, NotGranted):
            self.record.refused[answer.reason] += 1
            return
        self._held[task.name] = answer
        self._timed("use", lambda: self.driver.use(answer.id))
        self._digest.update(f"{task.name} {answer.node}\n".encode())
        self.record.granted += 1
        self._in_use = plus(self._in_use, task.resource)
        peak = self.record.peak
        for dimension in task.resource:
            peak[dimension] = max(peak.get(dimension, 0), self._in_use[dimension])

    def _release(self, task: TraceTask) -> None:
        granted = self._held.pop(task.name, None)
        if granted is not None:
            self._timed("release", lambda: self.driver.release(granted.id))
            self._in_use = minus(self._in_use, task.resource)

    def _timed(self, operation: str, call: Callable[[], Answer]) -> Answer:
        start = self._clock()
        answer = call()
        self.record.latencies.setdefault(operation, []).append(self._clock() - start)
        return answer
