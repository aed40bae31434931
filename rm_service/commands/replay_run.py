"""The walk through a trace: creations and deletions in their order, one operation at a time."""

import hashlib
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from rm_service.commands.replay_drivers import Driver, NotGranted
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
    """How long each operation took, by its name."""
    seconds: float = 0.0
    """How long the walk took, pauses included."""
    audit: Mapping[str, Any] = field(default_factory=dict)
    class_checks: int = 0
    """How often what resource classes say was compared with a recomputation."""
    _in_use: dict[str, int] = field(default_factory=dict)
    _grants: list[str] = field(default_factory=list)

    @property
    def operations(self) -> int:
        return sum(len(durations) for durations in self.latencies.values())

    @property
    def digest(self) -> str:
        """SHA-256 over a line `name node` for each grant, in order: equal for equal grants."""
        return hashlib.sha256("".join(self._grants).encode()).hexdigest()

    def registered(self, nodes: Sequence[TraceNode]) -> None:
        for node in nodes:
            self.total = plus(self.total, node.total)
        self.nodes += len(nodes)

    def grant(self, task: TraceTask, node: str) -> None:
        """A task has got its resource on this node."""
        self._grants.append(f"{task.name} {node}\n")
        self.granted += 1
        self._in_use = plus(self._in_use, task.resource)
        for dimension in task.resource:
            self.peak[dimension] = max(self.peak.get(dimension, 0), self._in_use[dimension])

    def give_back(self, task: TraceTask) -> None:
        """A granted task has ended."""
        self._in_use = minus(self._in_use, task.resource)

    def took(self, operation: str, seconds: float) -> None:
        self.latencies.setdefault(operation, []).append(seconds)


class Ground(Protocol):
    """What every replay stands on."""

    def register(self, nodes: Sequence[TraceNode], trace: str) -> None:
        """Register nodes of a trace."""

    def audit(self) -> Mapping[str, Any]:
        """The audit's verdict, in the shape of `GET /api/v1/audit`."""

    def close(self) -> None:
        """Let go of what was opened."""


AnyGround = TypeVar("AnyGround", bound=Ground)


class Walk(ABC, Generic[AnyGround]):
    """One replay of a trace through a driver. What it holds at the end, it gives back."""

    def __init__(
        self,
        driver: AnyGround,
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
        self._first = 0
        self._began = 0.0
        self._held: dict[str, tuple[TraceTask, str]] = {}
        """Who holds something, by the name: the task, and the id that gives it back."""

    def register(self, nodes: Sequence[TraceNode], advance: Callable[[int], object]) -> None:
        """Register all nodes; `advance` hears how many each time."""
        for start in range(0, len(nodes), REGISTER_TOGETHER):
            some = nodes[start : start + REGISTER_TOGETHER]
            self.driver.register(some, self.record.trace)
            self.record.registered(some)
            advance(len(some))

    def walk(self, steps: Sequence[Step], advance: Callable[[int], object]) -> None:
        """Take every step; `advance` hears how many each time. Whatever happens, nothing stays held."""
        self._began = self._clock()
        self._first = steps[0].time if steps else 0
        try:
            self._take(steps, advance)
        finally:
            self._give_all_back()
            self.record.seconds = self._clock() - self._began

    def audit(self) -> None:
        """Ask for the audit's verdict."""
        self.record.audit = self.driver.audit()

    @abstractmethod
    def _take(self, steps: Sequence[Step], advance: Callable[[int], object]) -> None: ...

    @abstractmethod
    def _give_all_back(self) -> None: ...

    def _ahead(self, step: Step) -> float:
        """Seconds until a step is due; 0 or less if it is."""
        if self.speed is None:
            return 0.0
        return (step.time - self._first) / self.speed - (self._clock() - self._began)

    def _wait_for(self, step: Step) -> None:
        ahead = self._ahead(step)
        if ahead > 0:
            self._pause(ahead)


class Replay(Walk[Driver]):
    """One operation at a time: apply and use, later release."""

    def _take(self, steps: Sequence[Step], advance: Callable[[int], object]) -> None:
        for step in steps:
            self._wait_for(step)
            if step.is_deletion:
                self._release(step.task.name)
            else:
                self._apply(step.task)
            advance(1)

    def _give_all_back(self) -> None:
        for name in list(self._held):
            self._release(name)

    def _apply(self, task: TraceTask) -> None:
        answer = self._timed("apply", lambda: self.driver.apply(task, self.record.trace))
        if isinstance(answer, NotGranted):
            self.record.refused[answer.reason] += 1
            return
        self._held[task.name] = (task, answer.id)
        self._timed("use", lambda: self.driver.use(answer.id))
        self.record.grant(task, answer.node)

    def _release(self, name: str) -> None:
        if name in self._held:
            task, application_id = self._held.pop(name)
            self._timed("release", lambda: self.driver.release(application_id))
            self.record.give_back(task)

    def _timed(self, operation: str, call: Callable[[], Answer]) -> Answer:
        start = self._clock()
        answer = call()
        self.record.took(operation, self._clock() - start)
        return answer
