"""What Prometheus is told of each provider."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from rm_service.domain.amounts import Amounts
from rm_service.services.external.breaker import BreakerState
from rm_service.services.external.fetching import FaultKind
from rm_service.services.external.snapshots import Key

_LABELS = ("type", "name")
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0)
_STATES = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}


@dataclass(frozen=True, slots=True)
class Gauge:
    """How a provider stands at this moment."""

    key: Key
    age_seconds: float | None
    breaker: BreakerState


class ProviderMetrics:
    """Counters of fetches; ages and breakers are read when somebody looks."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._seconds = Histogram(
            "rm_provider_fetch_seconds",
            "Time that a whole fetch of a provider took",
            _LABELS,
            buckets=_SECONDS,
            registry=registry,
        )
        self._failures = Counter(
            "rm_provider_failures", "Fetches that failed, by kind", [*_LABELS, "kind"], registry=registry
        )

    def fetched(self, key: Key, seconds: float) -> None:
        """A fetch ended well."""
        self._seconds.labels(*key).observe(seconds)

    def failed(self, key: Key, kind: FaultKind) -> None:
        """A fetch did not."""
        self._failures.labels(*key, kind.value).inc()

    def forget(self, key: Key) -> None:
        """The provider is gone: nothing more is told of it."""
        labels = dict(zip(_LABELS, key, strict=True))
        self._seconds.remove_by_labels(labels)
        self._failures.remove_by_labels(labels)

    def watch(self, gauges: Callable[[], Iterable[Gauge]]) -> None:
        """Show what this says at each look."""
        self._registry.register(_Gauges(gauges))

    def watch_unseen(self, unseen: Callable[[], Mapping[Key, Amounts]]) -> None:
        """Show what applications were promised and no manager shows, at each look."""
        self._registry.register(_Unseen(unseen))


class _Unseen(Collector):
    def __init__(self, unseen: Callable[[], Mapping[Key, Amounts]]) -> None:
        self._unseen = unseen

    def collect(self) -> Iterator[Metric]:
        gauge = GaugeMetricFamily(
            "rm_provider_unseen",
            "What was promised in the places of a provider and is not shown there, in base units",
            labels=[*_LABELS, "dimension"],
        )
        for key, amounts in dict(self._unseen()).items():
            for dimension, amount in amounts.items():
                gauge.add_metric([*key, dimension], amount)
        yield gauge


class _Gauges(Collector):
    def __init__(self, gauges: Callable[[], Iterable[Gauge]]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        age = GaugeMetricFamily(
            "rm_provider_age_seconds", "Age of the latest snapshot of a provider", labels=_LABELS
        )
        breaker = GaugeMetricFamily(
            "rm_provider_breaker", "Breaker of a provider: 0 closed, 1 half open, 2 open", labels=_LABELS
        )
        for gauge in self._gauges():
            if gauge.age_seconds is not None:
                age.add_metric(gauge.key, gauge.age_seconds)
            breaker.add_metric(gauge.key, _STATES[gauge.breaker])
        yield age
        yield breaker
