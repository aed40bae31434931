"""Asking a source for combinations, and taking over into the table what it says. One batch at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

import structlog
from sqlalchemy.exc import SQLAlchemyError

from external_providers.base import DeniedError, MalformedError, ProviderError
from rm_service.domain.tags import label_key
from rm_service.ledger.errors import LedgerClosedError, LedgerUnavailableError, OutcomeUnknownError
from rm_service.services.external.breaker import Breaker, BreakerState
from rm_service.services.external.fetching import Clocks, FaultKind
from rm_service.services.limit_sources.combinations import Combination
from rm_service.services.limit_sources.metrics import SourceMetrics
from rm_service.services.limit_sources.sources import LimitSource, Said
from rm_service.services.limit_sources.standings import Standings
from rm_service.services.limit_sources.table import LimitTable, NotTakenError

BATCH = 500
"""Combinations of one question."""
_LEDGER_FAULTS = (SQLAlchemyError, LedgerUnavailableError, OutcomeUnknownError, LedgerClosedError)

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Asking:
    """Its methods may be called from several threads; no lock is held while anybody is asked."""

    source: LimitSource
    table: LimitTable
    standings: Standings
    clocks: Clocks
    metrics: SourceMetrics | None = None
    _breaker: Breaker = field(init=False)
    _lock: Lock = field(init=False, default_factory=Lock)
    _told: tuple[FaultKind, str] | None = field(init=False, default=None)
    """The fault that was logged last, None since it answers again."""

    def __post_init__(self) -> None:
        self._breaker = Breaker(self.clocks.monotonic)

    def ask(self, combinations: Sequence[Combination]) -> bool:
        """Ask for at most 500; whether there was an answer that the table has now. Raises nothing."""
        with self._lock:
            allowed = self._breaker.may_try()
        now = self.clocks.monotonic()
        if not allowed:
            self.standings.unanswered(dict.fromkeys(combinations, "the source is left alone"), now)
            return False
        try:
            said = self.source.limits_of([dict(each) for each in combinations])
        except Exception as error:  # noqa: BLE001 - whatever it is, the policy decides
            self._failed(combinations, error)
            return False
        with self._lock:
            self._breaker.succeeded()
        return self._take(combinations, said, now)

    def drop(self, combinations: Sequence[Combination]) -> None:
        """Take away what the table has of the source about these, as far as it cannot be relied on."""
        now = self.clocks.monotonic()
        for start in range(0, len(combinations), BATCH):
            batch = combinations[start : start + BATCH]
            try:
                if self.table.take([dict(each) for each in batch], ()):
                    _log.warning("limits_ignored", combinations=len(batch))
            except (*_LEDGER_FAULTS, NotTakenError) as error:
                _log.warning("limits_not_ignored", error=str(error).strip())
                return
            self.standings.dropped(batch, now)

    @property
    def breaker(self) -> BreakerState:
        with self._lock:
            return self._breaker.state

    def _take(self, combinations: Sequence[Combination], said: Said, asked_at: float) -> bool:
        try:
            possible = self.table.possible(said.limits)
            unusable = _faults(combinations, {**said.unusable, **possible.unusable})
            usable = [each for each in combinations if each not in unusable]
            changed = self.table.take([dict(each) for each in usable], possible.limits)
        except (*_LEDGER_FAULTS, NotTakenError) as error:
            reason = str(error).strip()
            self.standings.unanswered(dict.fromkeys(combinations, reason), self.clocks.monotonic())
            _log.warning("limits_not_taken", error=reason)
            return False
        self.standings.answered(usable, asked_at)
        if changed:
            _log.info("limits_taken", source=str(self.source), combinations=len(usable))
        for each in self.standings.unanswered(unusable, self.clocks.monotonic()):
            _log.warning("limit_unusable", tags=dict(each), reason=unusable[each])
        if self.metrics is not None:
            self.metrics.unusable(len(unusable))
        self._note(None)
        return True

    def _failed(self, combinations: Sequence[Combination], error: Exception) -> None:
        kind = _kind(error)
        if kind is FaultKind.DEFECT:
            _log.error("limit_source_defect", exc_info=error)
        with self._lock:
            self._breaker.failed()
        self.standings.unanswered(dict.fromkeys(combinations, str(error)), self.clocks.monotonic())
        if self.metrics is not None:
            self.metrics.failed(kind)
        self._note((kind, str(error)))

    def _note(self, fault: tuple[FaultKind, str] | None) -> None:
        """Tell once what has changed."""
        with self._lock:
            before, self._told = self._told, fault
        if fault is not None and fault != before:
            _log.warning("limit_source_failed", source=str(self.source), kind=fault[0].value, reason=fault[1])
        elif fault is None and before is not None:
            _log.info("limit_source_recovered", source=str(self.source))


def _faults(combinations: Sequence[Combination], unusable: Mapping[str, str]) -> Mapping[Combination, str]:
    if not unusable:
        return {}
    keys = {each: label_key(dict(each)) for each in combinations}
    return {each: unusable[key] for each, key in keys.items() if key in unusable}


def _kind(error: Exception) -> FaultKind:
    match error:
        case DeniedError():
            return FaultKind.DENIED
        case MalformedError():
            return FaultKind.MALFORMED
        case ProviderError():
            return FaultKind.UNREACHABLE
    return FaultKind.DEFECT
