"""The refresher: looks at every provider ahead of need, so that nobody waits for an external manager.

APScheduler only says when to tick. A tick reads which providers there are, gives up calls that hang, and
starts those that are due; it never waits for a manager. Each call runs on a thread of its own, which a plugin
that hangs keeps, and nothing else; a process that ends does not wait for it. On that thread its plug-in
also parses its configuration first.
"""

import contextlib
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from datetime import UTC, datetime
from threading import Lock, Thread

import structlog
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from external_providers.base import Health, Identity
from rm_service.domain.providers import StoredProvider, provider_key
from rm_service.domain.tags import Tags
from rm_service.services.external.breaker import BreakerState
from rm_service.services.external.feeds import Call, Feed, ProviderStatus, fail, failed
from rm_service.services.external.fetching import (
    ATTEMPTS,
    Clocks,
    Fault,
    FaultKind,
    fault_of,
    fetch,
    health_of,
    quarantine_of,
)
from rm_service.services.external.following import Following, Stored
from rm_service.services.external.metrics import ProviderMetrics
from rm_service.services.external.noting import (
    note_age,
    note_fault,
    note_pace,
    note_running,
    note_unusable,
)
from rm_service.services.external.snapshots import Snapshot, Snapshots
from rm_service.services.external.sources import Source, UnusableProviderError

TICK_SECONDS = 1.0
FETCH_SECONDS = 30.0
"""After so long a fetch is given up, retries included."""
HEALTH_SECONDS = 5.0
HEALTH_EVERY_SECONDS = 60.0
STOP_SECONDS = 2.0
"""How long a snapshot may take to be handed on when the service stops."""
MAX_CALLS = 64
"""So many providers are asked side by side; calls that were given up do not count."""

_log = structlog.get_logger(__name__)

OnSnapshot = Callable[[Source, Snapshot], object]
"""Told of each snapshot that can be believed, on a thread of its provider's: the next look at that provider
waits until it returns.
"""
OnChanged = Callable[[], object]
"""Told when providers have changed, and once at first; told again at the next tick if it raises."""


class Refresher:
    """Follows all stored providers, from `start` to `stop`. Its methods may be called from any thread."""

    def __init__(
        self,
        stored: Stored,
        clocks: Clocks,
        *,
        metrics: ProviderMetrics | None = None,
        fetch_seconds: float = FETCH_SECONDS,
        max_calls: int = MAX_CALLS,
    ) -> None:
        self._clocks = clocks
        self._metrics = metrics
        self._fetch_seconds = fetch_seconds
        self._max_calls = max_calls
        self.snapshots = Snapshots(clocks.monotonic)
        self.on_snapshot: list[OnSnapshot] = []
        self.on_changed: list[OnChanged] = []
        self._lock = Lock()  # around feeds and calls; nothing waits for anybody while it is held
        self._following = Following(stored, clocks.monotonic, self.snapshots, self._lock)
        self._feeds = self._following.feeds
        self._stopped = False
        self._untold = False
        """Whether there is a change that nobody was told of."""
        self._told_in_vain = False
        self._scheduler = BackgroundScheduler(executors={"default": ThreadPoolExecutor(1)}, timezone=UTC)
        if metrics is not None:
            metrics.watch(self.statuses)

    def start(self) -> None:
        """Look at once, and then whenever a provider is due."""
        self._scheduler.add_job(
            self.tick,
            "interval",
            seconds=TICK_SECONDS,
            max_instances=1,
            coalesce=True,
            misfire_grace_time=None,
            next_run_time=datetime.now(UTC),
        )
        self._scheduler.start()

    def stop(self) -> None:
        """Look no more, and take nothing more. Whoever waits is told so; what is being handed on still is."""
        if self._scheduler.running:
            self._scheduler.shutdown()
        with self._lock:
            self._stopped = True
            calls = [feed.call for feed in self._feeds.values() if feed.call is not None]
            handing_on = [call for call in calls if call.settled and not call.asking_health]
            waiting = [
                future
                for feed in self._feeds.values()
                if feed.call not in handing_on
                for future in feed.futures()
            ]
            self._following.end()
        for future in waiting:
            fail(future, "the service is stopping")
        for call in handing_on:
            call.ended.wait(STOP_SECONDS)

    def tick(self) -> None:
        """Take over what has changed, give up what hangs, start what is due."""
        gone = self._following.follow()
        for each in gone or ():
            if self._metrics is not None:
                self._metrics.forget((each.type, each.name))
        self._tell_changes(anew=gone is not None)
        with self._lock:
            now = self._clocks.monotonic()
            for feed in self._feeds.values():
                self._note_age(feed)
                note_running(feed, now)
            given_up = [
                self._give_up(feed, feed.call, now)
                for feed in self._feeds.values()
                if feed.call is not None and feed.call.is_over(now)
            ]
            refused = self._start_due(now)
        for future in (*given_up, *refused):
            fail(future, "no answer in time")

    def ask(self, type_: str, name: str) -> Future[Snapshot]:
        """The next snapshot of a provider: of the fetch that is under way, else of one that starts at once.

        It fails with NoSnapshotError. However many ask, there is one fetch.
        """
        with self._lock:
            feed = self._feeds.get((type_, name))
            now = self._clocks.monotonic()
            if feed is None or feed.problem is not None:
                reason = f"no provider {provider_key(type_, name)}" if feed is None else str(feed.problem)
                return failed(reason)
            if feed.call is not None:
                return feed.call.future
            if feed.breaker.state is BreakerState.OPEN:
                return failed("its breaker is open: it is left alone for a while")
            if not feed.is_callable:
                return failed("its calls hang")
            if feed.asked is None:
                feed.asked = Future()
            asked, feed.next_at = feed.asked, min(feed.next_at, now)
            refused = self._start_due(now)
        for future in refused:
            fail(future, "it cannot be asked now")
        return asked

    def identity_of(self, type_: str) -> Identity | None:
        """What the plug-in of a type is; None if there is none."""
        return self._following.identity_of(type_)

    def speaking_for(self, type_: str, tags: Tags) -> tuple[StoredProvider, Identity] | None:
        """The provider that speaks for a label of these tags, and what kind it is of."""
        return self._following.speaking_for(type_, tags)

    def status(self, type_: str, name: str) -> ProviderStatus | None:
        """How a provider stands here; None for one that is not followed."""
        with self._lock:
            feed = self._feeds.get((type_, name))
            return None if feed is None else self._status(feed)

    def statuses(self) -> list[ProviderStatus]:
        """All that are followed."""
        with self._lock:
            return [self._status(feed) for feed in self._feeds.values()]

    def _tell_changes(self, *, anew: bool) -> None:
        """Whoever is told in vain now is told again by the next tick."""
        with self._lock:
            untold, self._untold = anew or self._untold, False
        if not untold:
            return
        try:
            for tell in self.on_changed:
                tell()
        except Exception as error:  # noqa: BLE001 - a listener may have any fault
            with self._lock:
                self._untold = True
            if not self._told_in_vain:
                _log.warning("provider_changes_not_told", error=str(error).strip(), exc_info=True)
            self._told_in_vain = True
        else:
            self._told_in_vain = False

    # ---- calls; all of it under the lock -------------------------------------------------------------------

    def _start_due(self, now: float) -> list[Future[Snapshot]]:
        """Start those that are due, the most overdue first, as far as there is room; who waits in vain."""
        room = self._max_calls - sum(feed.call is not None for feed in self._feeds.values())
        due = [feed for feed in self._feeds.values() if feed.is_callable and feed.next_at <= now]
        refused: list[Future[Snapshot]] = []
        for feed in sorted(due, key=lambda each: each.next_at):
            if room <= 0 or self._stopped:
                break
            if feed.breaker.may_try():
                refused += self._start_call(feed, now)
                room -= 1
            else:
                feed.next_at = feed.breaker.retry_at or now
                refused += feed.futures()
                feed.asked = None
        return refused

    def _start_call(self, feed: Feed, now: float) -> list[Future[Snapshot]]:
        probing = feed.breaker.state is BreakerState.HALF_OPEN
        call = Call(began=now, deadline=now + self._fetch_seconds, probing=probing)
        if feed.asked is not None:
            call.future, feed.asked = feed.asked, None
        feed.call = call
        thread = Thread(target=self._run, args=(feed, call), name=f"provider-{feed.stored.key}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the machine has no more threads
            feed.call = None
            self._settle(feed, call, None, Fault(FaultKind.DEFECT, str(error), self._clocks.now()))
            return [call.future]
        return []

    def _give_up(self, feed: Feed, call: Call, now: float) -> Future[Snapshot]:
        """Wait for a call no longer; what it brings is not taken any more."""
        feed.call = None
        feed.stuck.append(call)
        if call.settled:
            feed.health, feed.health_at = Health(ok=False, detail="no answer in time"), now
        else:
            reason = f"no answer within {self._fetch_seconds:g} seconds"
            self._settle(feed, call, None, Fault(FaultKind.TIMEOUT, reason, self._clocks.now()))
        return call.future

    def _settle(self, feed: Feed, call: Call, snapshot: Snapshot | None, fault: Fault | None) -> None:
        """Note how a fetch ended, and when the next one is due."""
        call.settled = True
        feed.next_at = call.began + feed.stored.refresh_seconds
        if snapshot is not None:
            self.snapshots.put(feed.key, snapshot)
            self._note_age(feed)
        if fault is None or fault.kind is FaultKind.QUARANTINED:
            feed.breaker.succeeded()  # it answers, whatever it says
        else:
            feed.breaker.failed()
            feed.next_at = max(feed.next_at, feed.breaker.retry_at or 0.0)
        note_fault(feed, fault)
        note_pace(feed, self._clocks.monotonic() - call.began, well=snapshot is not None)
        if self._metrics is not None:
            if fault is not None:
                self._metrics.failed(feed.key, fault.kind)
            if snapshot is not None:
                self._metrics.fetched(feed.key, snapshot.seconds)

    def _note_age(self, feed: Feed) -> None:
        snapshot = self.snapshots.latest(*feed.key)
        if snapshot is not None:  # that nothing has come yet is told as a failure
            note_age(feed, self.snapshots.age(snapshot))

    # ---- on the threads of calls ---------------------------------------------------------------------------

    def _run(self, feed: Feed, call: Call) -> None:
        try:
            self._fetch(feed, call)
            if self._wants_health(feed, call):
                self._ask_health(feed, call)
        finally:
            with self._lock:
                if feed.call is call:
                    feed.call = None
                with contextlib.suppress(ValueError):
                    feed.stuck.remove(call)
                refused = self._start_due(self._clocks.monotonic())
            call.ended.set()
            for future in refused:
                fail(future, "it cannot be asked now")

    def _source(self, feed: Feed, call: Call) -> Source | None:
        """What its plug-in makes of it: anew for each version. None where that cannot be used."""
        with self._lock:
            unparsed, source, is_parsed = feed.unparsed, feed.source, feed.is_parsed
        if is_parsed or unparsed is None:
            return source
        try:
            source, problem = unparsed.parsed(), None
        except UnusableProviderError as error:
            source, problem = None, str(error)
        with self._lock:
            if not self._counts(feed, call) or feed.unparsed is not unparsed:
                return source  # given up, or asked with again when it is parsed anew
            feed.source, feed.problem, feed.is_parsed = source, problem, True
            if problem is not None:
                call.settled = True
                note_unusable(feed)
        if problem is not None:
            fail(call.future, problem)
        return source

    def _fetch(self, feed: Feed, call: Call) -> None:
        source = self._source(feed, call)
        if source is None:
            return
        snapshot: Snapshot | None = None
        fault: Fault | None = None
        try:
            attempts = 1 if call.probing else ATTEMPTS
            snapshot = fetch(source, self._clocks, call.deadline, attempts)
            fault = quarantine_of(source, snapshot, self._clocks.now())
        except BaseException as error:  # noqa: BLE001 - whatever a plugin raises is its provider's fault alone
            fault = fault_of(source, error, self._clocks.now())
        with self._lock:
            if not self._counts(feed, call):
                return  # too late, or the provider is another one by now
            self._settle(feed, call, snapshot, fault)
            source = feed.source or source
        if snapshot is not None:
            self._deliver(source, snapshot)
            with contextlib.suppress(InvalidStateError):
                call.future.set_result(snapshot)
        elif fault is not None:
            fail(call.future, fault.reason)

    def _counts(self, feed: Feed, call: Call) -> bool:
        return feed.call is call and self._feeds.get(feed.key) is feed

    def _deliver(self, source: Source, snapshot: Snapshot) -> None:
        for tell in self.on_snapshot:
            try:
                tell(source, snapshot)
            except Exception:  # noqa: BLE001 - the next snapshot is another try
                _log.exception("on_snapshot_failed", provider=source.stored.key)

    def _wants_health(self, feed: Feed, call: Call) -> bool:
        """Whether to ask: at first, when it says something else than the fetch, and now and then."""
        with self._lock:
            if not self._counts(feed, call) or feed.stuck or feed.source is None:
                return False
            now = self._clocks.monotonic()
            failing = feed.failing and feed.fault is not None and feed.fault.kind is not FaultKind.QUARANTINED
            agrees = feed.health is not None and feed.health.ok is not failing
            if agrees and now - feed.health_at < HEALTH_EVERY_SECONDS:
                return False
            call.deadline, call.asking_health = now + HEALTH_SECONDS, True
            return True

    def _ask_health(self, feed: Feed, call: Call) -> None:
        if feed.source is None:
            return
        health = health_of(feed.source, HEALTH_SECONDS)
        with self._lock:
            if self._counts(feed, call):
                feed.health, feed.health_at = health, self._clocks.monotonic()

    # ---- how it stands -------------------------------------------------------------------------------------

    def _status(self, feed: Feed) -> ProviderStatus:
        snapshot, now = self.snapshots.latest(*feed.key), self._clocks.monotonic()
        return ProviderStatus(
            stored=feed.stored,
            state=feed.state(snapshot, now),
            problem=feed.problem,
            snapshot=snapshot,
            age_seconds=None if snapshot is None else self.snapshots.age(snapshot),
            breaker=feed.breaker.state,
            failures=feed.breaker.failures,
            fault=feed.fault,
            health=feed.health,
            late=feed.is_late(now),
            stuck=len(feed.stuck),
        )
