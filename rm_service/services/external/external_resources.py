"""External resources: the stored providers, and what their managers were last seen to have."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event

from rm_service.domain.outcomes import Outcome
from rm_service.domain.providers import StoredProvider
from rm_service.ledger.ledger import Ledger
from rm_service.services.external.drift import Drift
from rm_service.services.external.feeds import ProviderStatus
from rm_service.services.external.fetching import Clocks
from rm_service.services.external.keys import Keys
from rm_service.services.external.metrics import ProviderMetrics
from rm_service.services.external.observing import Observing
from rm_service.services.external.plugins import PluginFault, Plugins
from rm_service.services.external.providers import Providers, ProviderWish
from rm_service.services.external.refresher import Refresher
from rm_service.services.external.rule_check import warn_of_uncounted


@dataclass(frozen=True, slots=True)
class ProviderView:
    """A stored provider, and how it stands in this process; None where it is not followed yet."""

    stored: StoredProvider
    status: ProviderStatus | None


@dataclass(slots=True)
class ExternalResources:
    """Start it once after the ledger is open, stop it before the ledger is closed."""

    ledger: Ledger
    keys: Keys
    plugins: Plugins = field(default_factory=Plugins.discover)
    metrics: ProviderMetrics | None = None
    clocks: Clocks | None = None
    providers: Providers = field(init=False)
    refresher: Refresher = field(init=False)
    observing: Observing = field(init=False)
    _stopping: Event = field(init=False, default_factory=Event)

    def __post_init__(self) -> None:
        self.providers = Providers(self.ledger, self.plugins, self.keys)
        clocks = self.clocks or Clocks(time.monotonic, _microseconds, self._pause)
        self.refresher = Refresher(self.providers, clocks, metrics=self.metrics)
        self.observing = Observing(self.ledger, self.refresher)
        if self.metrics is not None:
            drift = Drift(self.ledger, self.refresher, clocks.monotonic)
            self.metrics.watch_unseen(drift.unseen)
        self.refresher.on_snapshot.append(self.observing.refreshed)
        self.refresher.on_changed.append(self.observing.changed)

    def start(self) -> None:
        """Follow the stored providers."""
        warn_of_uncounted(self.ledger.book().rules, self.plugins.by_type)
        self.refresher.start()

    def stop(self) -> None:
        """Ask nobody any more."""
        self._stopping.set()
        self.refresher.stop()
        self.plugins.close()

    @property
    def faults(self) -> tuple[PluginFault, ...]:
        """Plugins that were found and cannot be used."""
        return self.plugins.faults

    def store(self, wish: ProviderWish) -> Outcome:
        """Store a provider, or what changed of it; it is looked at at once. Raises ProviderFaultError."""
        return self._then_look(lambda: self.providers.store(wish))

    def remove(self, type_: str, name: str) -> Outcome:
        """Take a provider away; nothing more is asked of its manager."""
        return self._then_look(lambda: self.providers.remove(type_, name))

    def read(self, type_: str, name: str) -> ProviderView | None:
        """One provider, None if there is none of this name."""
        stored = self.providers.read(type_, name)
        return None if stored is None else self._view(stored)

    def all(self) -> list[ProviderView]:
        """All of them, by type and name."""
        return [self._view(stored) for stored in self.providers.all()]

    def _view(self, stored: StoredProvider) -> ProviderView:
        return ProviderView(stored, self.refresher.status(stored.type, stored.name))

    def _then_look(self, change: Callable[[], Outcome]) -> Outcome:
        outcome = change()
        self.refresher.tick()
        return outcome

    def _pause(self, seconds: float) -> None:
        self._stopping.wait(seconds)


def _microseconds() -> int:
    return time.time_ns() // 1000
