"""What the log is told of each provider: everything once when it begins, and once when it is over.

All of it is called under the refresher's lock.
"""

import structlog

from rm_service.services.external.feeds import Feed, is_too_old
from rm_service.services.external.fetching import Fault, FaultKind

_log = structlog.get_logger(__name__)


def note_fault(feed: Feed, fault: Fault | None) -> None:
    """How the last look ended."""
    key = feed.stored.key
    if fault is None:
        if feed.failing:
            _log.info("provider_recovered", provider=key)
    elif not (feed.failing and fault.is_as(feed.fault)):
        if fault.traceback:
            _log.error("provider_defect", provider=key, traceback=fault.traceback)
        _log.warning("provider_failed", provider=key, kind=fault.kind.value, reason=fault.reason)
    feed.failing = fault is not None
    feed.fault = fault or feed.fault
    answers = fault is None or fault.kind is FaultKind.QUARANTINED
    if feed.health is not None and feed.health.ok is not answers:
        feed.health = None  # it was looked at before this


def note_age(feed: Feed, age_seconds: float) -> None:
    """How old what was seen last is: too old where looks fail, and where every answer comes late."""
    stored = feed.stored
    stale = is_too_old(stored, age_seconds)
    if stale is not feed.stale:
        tell = _log.warning if stale else _log.info
        event = "provider_stale" if stale else "provider_fresh"
        policy = stored.stale_policy.value
        tell(event, provider=stored.key, age_seconds=round(age_seconds, 3), policy=policy)
    feed.stale = stale


def note_running(feed: Feed, now: float) -> None:
    """How long the look that runs, if one does, has taken by now."""
    if feed.is_late(now) and not feed.late and feed.call is not None:
        _tell_late(feed, now - feed.call.began)
        feed.late = True


def note_pace(feed: Feed, seconds: float, *, well: bool) -> None:
    """How long the last look took, and whether it ended well."""
    late = feed.is_overdue(seconds)
    if late and not feed.late:
        _tell_late(feed, seconds)
    elif feed.late and not late and well:
        _log.info("provider_in_time", provider=feed.stored.key, seconds=round(seconds, 3))
    feed.late = late


def note_unusable(feed: Feed) -> None:
    """It cannot be asked at all."""
    _log.warning("provider_unusable", provider=feed.stored.key, reason=feed.problem)


def _tell_late(feed: Feed, seconds: float) -> None:
    stored = feed.stored
    _log.warning(
        "provider_late",
        provider=stored.key,
        seconds=round(seconds, 3),
        refresh_seconds=stored.refresh_seconds,
    )
