"""What Prometheus is told of a limit source."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from rm_service.services.external.fetching import FaultKind


@dataclass(frozen=True, slots=True)
class Gauges:
    """How a source stands at this moment."""

    oldest_seconds: float
    answered: int
    unanswered: int
    breaker: int


class SourceMetrics:
    """Counts failures; ages are read when somebody looks."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._failures = Counter(
            "rm_limit_source_failures",
            "Questions to the limit source that failed, by kind",
            ["kind"],
            registry=registry,
        )
        self._unusable = Counter(
            "rm_limit_source_unusable",
            "Limits of tag combinations in its answers that cannot be",
            registry=registry,
        )

    def failed(self, kind: FaultKind) -> None:
        """A question was not answered."""
        self._failures.labels(kind.value).inc()

    def unusable(self, count: int) -> None:
        """An answer held so many limits that cannot be."""
        self._unusable.inc(count)

    def watch(self, gauges: Callable[[], Gauges]) -> None:
        """Show what this says at each look."""
        self._registry.register(_Collected(gauges))


class _Collected(Collector):
    def __init__(self, gauges: Callable[[], Gauges]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        gauges = self._gauges()
        yield GaugeMetricFamily(
            "rm_limit_source_age_seconds",
            "Age of the oldest answer about a tag combination in use",
            value=gauges.oldest_seconds,
        )
        yield GaugeMetricFamily(
            "rm_limit_source_breaker",
            "Breaker of the limit source: 0 closed, 1 half open, 2 open",
            value=gauges.breaker,
        )
        combinations = GaugeMetricFamily(
            "rm_limit_source_combinations", "Tag combinations in use", labels=["state"]
        )
        combinations.add_metric(["answered"], gauges.answered)
        combinations.add_metric(["unanswered"], gauges.unanswered)
        yield combinations


def oldest(ages: Iterable[float | None], breaker: int) -> Gauges:
    """The gauges of combinations of these ages."""
    known = list(ages)
    answered = [age for age in known if age is not None]
    return Gauges(max(answered, default=0.0), len(answered), len(known) - len(answered), breaker)
