"""What Prometheus is told of each provider."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from rm_service.domain.amounts import Amounts
from rm_service.services.external.breaker import BreakerState
from rm_service.services.external.feeds import ProviderStatus
from rm_service.services.external.fetching import FaultKind
from rm_service.services.external.snapshots import Key

_LABELS = ("type", "name")
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0)
_STATES = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}


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

    def watch(self, statuses: Callable[[], Iterable[ProviderStatus]]) -> None:
        """Show how providers stand at each look."""
        self._registry.register(_Gauges(statuses))

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
    def __init__(self, statuses: Callable[[], Iterable[ProviderStatus]]) -> None:
        self._statuses = statuses

    def collect(self) -> Iterator[Metric]:
        age = GaugeMetricFamily(
            "rm_provider_age_seconds", "Age of the latest snapshot of a provider", labels=_LABELS
        )
        breaker = GaugeMetricFamily(
            "rm_provider_breaker", "Breaker of a provider: 0 closed, 1 half open, 2 open", labels=_LABELS
        )
        late = GaugeMetricFamily(
            "rm_provider_late", "1: looks at a provider take longer than the time between two", labels=_LABELS
        )
        stuck = GaugeMetricFamily(
            "rm_provider_stuck", "Calls of a provider that were given up and still hang", labels=_LABELS
        )
        for status in self._statuses():
            key = (status.stored.type, status.stored.name)
            if status.age_seconds is not None:
                age.add_metric(key, status.age_seconds)
            breaker.add_metric(key, _STATES[status.breaker])
            late.add_metric(key, int(status.late))
            stuck.add_metric(key, status.stuck)
        yield from (age, breaker, late, stuck)
