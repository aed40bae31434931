"""Taking turns: each side of a ratio is measured in every round (A B A B), and medians are compared.

A machine grows warm, a disk has its moods, somebody else starts a job: what changes slowly hits both sides.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Load:
    """One stretch of load: operations a second, and the sorted latencies of those finished in it (ms)."""

    rate: float
    latencies: Sequence[float]

    @property
    def p50(self) -> float:
        return percentile(self.latencies, 0.50)

    @property
    def p99(self) -> float:
        return percentile(self.latencies, 0.99)


def alternate(sides: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Measure every side once a round; the answers of each side in the order of the rounds."""
    measured: dict[str, list[T]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, measure in sides.items():
            measured[name].append(measure())
    return measured


def rate(loads: Iterable[Load]) -> float:
    """The median rate of several stretches."""
    return statistics.median(load.rate for load in loads)


def p50(loads: Iterable[Load]) -> float:
    """The median of the stretches' p50 (ms)."""
    return statistics.median(load.p50 for load in loads)


def p99(loads: Iterable[Load]) -> float:
    """The median of the stretches' p99 (ms)."""
    return statistics.median(load.p99 for load in loads)


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` of the sorted values lie."""
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
