"""Limits from a configuration service: asked for before they are needed, judged by from our own table.

Two threads ask: one for combinations that nobody here has asked for yet, whose applications wait for it, and
one that keeps those in use fresh. So a long round of the second does not hold up the first, and whatever
hangs, an application waits for as long as the settings say and no longer.
"""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from threading import Condition, Event, Thread

import structlog

from rm_service.domain.providers import StalePolicy
from rm_service.domain.tags import Tags
from rm_service.ledger.ledger import Ledger
from rm_service.services.external.breaker import BreakerState
from rm_service.services.external.fetching import Clocks
from rm_service.services.limit_sources.asking import BATCH, Asking
from rm_service.services.limit_sources.combinations import Combination, combinations_of
from rm_service.services.limit_sources.metrics import Gauges, SourceMetrics, oldest
from rm_service.services.limit_sources.sources import LimitSource
from rm_service.services.limit_sources.standings import Standings
from rm_service.services.limit_sources.table import LimitTable

TICK_SECONDS = 1.0
STOP_SECONDS = 3.0
_BREAKERS = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """How a source is asked, and what holds while it cannot be. Seconds."""

    key_sets: Sequence[tuple[str, ...]]
    """Each in the order of its keys."""
    refresh_seconds: float = 60.0
    stale_seconds: float = 600.0
    stale_policy: StalePolicy = StalePolicy.LAST_KNOWN
    timeout_seconds: float = 2.0
    """An application waits at most so long."""
    tick_seconds: float = TICK_SECONDS
    """How often it is looked whether anything is due."""


class LimitSources:
    """Keeps the table as a source says. Start it after the ledger is open, stop it before it is closed."""

    def __init__(
        self,
        ledger: Ledger,
        source: LimitSource,
        owner: str,
        settings: SourceSettings,
        clocks: Clocks,
        metrics: SourceMetrics | None = None,
    ) -> None:
        self._ledger = ledger
        self._settings = settings
        self._clocks = clocks
        self._standings = Standings(settings.refresh_seconds, settings.stale_seconds)
        self._asking = Asking(source, LimitTable(ledger, owner), self._standings, clocks, metrics)
        self._wanted: dict[Combination, Future[None]] = {}
        self._queue: deque[Combination] = deque()
        self._change = Condition()  # around the two above; nothing waits for anybody else while it is held
        self._stopping = Event()
        self._threads = [
            Thread(target=self._answer_wanted, name="limits-wanted", daemon=True),
            Thread(target=self._keep_fresh, name="limits-fresh", daemon=True),
        ]
        if metrics is not None:
            metrics.watch(self._gauges)

    def start(self) -> None:
        """Begin to ask."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ask no more. Whoever waits for an answer goes on without."""
        self._stopping.set()
        with self._change:
            waiting, self._wanted = list(self._wanted.values()), {}
            self._queue.clear()
            self._change.notify_all()
        for future in waiting:
            future.set_result(None)
        for thread in self._threads:
            if thread.is_alive():
                thread.join(STOP_SECONDS)

    def unknown(self, applications: Sequence[Tags]) -> list[Tags | None]:
        """For the (converted) tags of each of these applications the combination whose limits are not known
        and without which it must not be judged, None if there is none.

        Asks first for what nobody here has asked for, and waits for that at most for as long as the settings
        say. Raises TagError.
        """
        rules = self._ledger.book().rules
        now = self._clocks.monotonic()
        wanted = [combinations_of(tags, self._settings.key_sets, rules) for tags in applications]
        new = {each for found in wanted for each in found if self._standings.used(each, now) is None}
        if new:
            self._wait_for(new, now)
            now = self._clocks.monotonic()
        if self._settings.stale_policy is not StalePolicy.DENY:
            return [None] * len(wanted)
        return [next((dict(each) for each in found if self._is_old(each, now)), None) for found in wanted]

    def refresh(self) -> None:
        """Ask for what is due, and take away what may not be judged by any more. A failure ends the round."""
        due = self._standings.due(self._clocks.monotonic())
        for start in range(0, len(due), BATCH):
            if self._stopping.is_set() or self._asking.breaker is BreakerState.OPEN:
                break
            if not self._asking.ask(due[start : start + BATCH]):
                break
        if self._settings.stale_policy is StalePolicy.IGNORE:
            self._asking.drop(self._standings.too_old(self._clocks.monotonic()))

    def _is_old(self, combination: Combination, now: float) -> bool:
        return not self._standings.is_fresh(self._standings.used(combination, now), now)

    def _wait_for(self, combinations: set[Combination], now: float) -> None:
        with self._change:
            if self._stopping.is_set():
                return
            # Looked at again: an answer may have come since, and who brought it has left the lock.
            new = [each for each in sorted(combinations) if self._standings.used(each, now) is None]
            futures = [self._want(each) for each in new]
            self._change.notify_all()
        wait(futures, self._settings.timeout_seconds)

    def _want(self, combination: Combination) -> Future[None]:
        """However many want it, it is asked for once."""
        future = self._wanted.get(combination)
        if future is None:
            future = self._wanted[combination] = Future()
            self._queue.append(combination)
        return future

    # ---- on threads of their own ---------------------------------------------------------------------------

    def _answer_wanted(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._queue or self._stopping.is_set())
                if self._stopping.is_set():
                    return
                batch = [self._queue.popleft() for _ in range(min(len(self._queue), BATCH))]
            try:
                answered = self._asking.ask(batch)
                if not answered and self._settings.stale_policy is StalePolicy.IGNORE:
                    self._asking.drop(batch)
            except Exception:  # noqa: BLE001 - a defect must not end all asking
                _log.exception("limits_not_asked")
            with self._change:
                futures = [future for each in batch if (future := self._wanted.pop(each, None)) is not None]
            for future in futures:
                future.set_result(None)

    def _keep_fresh(self) -> None:
        while not self._stopping.wait(self._settings.tick_seconds):
            try:
                self.refresh()
            except Exception:  # noqa: BLE001 - the next tick is another try
                _log.exception("limits_not_refreshed")

    def _gauges(self) -> Gauges:
        ages = self._standings.ages(self._clocks.monotonic())
        return oldest(ages, _BREAKERS[self._asking.breaker])
