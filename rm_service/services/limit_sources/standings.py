"""What this process knows of each combination: when it was used, when the source last spoke of it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from threading import Lock

from rm_service.services.limit_sources.combinations import Combination

USED_SECONDS = 3600.0
"""A combination that nobody has used for so long is forgotten; whoever uses it next, asks anew."""
RETRY_SECONDS = 5.0
"""After so long what was not answered is asked again, if the breaker allows."""
MAX_STANDINGS = 100_000


@dataclass(slots=True)
class Standing:
    """One combination. Times are seconds of the monotonic clock."""

    used_at: float
    next_at: float
    """When it is asked for next."""
    answered_at: float | None = None
    """When the question was put whose answer counts; None: it was never answered."""
    fault: str | None = None
    """Why the last answer could not be used."""
    dropped: bool = False
    """Nothing of the source's is left in the table, because it is too old."""

    def age(self, now: float) -> float | None:
        return None if self.answered_at is None else max(now - self.answered_at, 0.0)


class Standings:
    """All combinations that were used lately. Its methods may be called from any thread."""

    def __init__(self, refresh_seconds: float, stale_seconds: float) -> None:
        self._refresh_seconds = refresh_seconds
        self._stale_seconds = stale_seconds
        self._lock = Lock()
        self._of: dict[Combination, Standing] = {}

    def used(self, combination: Combination, now: float) -> Standing | None:
        """It is used. None: nobody has asked for it yet. On everybody's way, so it takes no lock."""
        standing = self._of.get(combination)
        if standing is not None:
            standing.used_at = now
        return standing

    def is_fresh(self, standing: Standing | None, now: float) -> bool:
        """Whether what the source said can be relied on."""
        age = None if standing is None else standing.age(now)
        return age is not None and age <= self._stale_seconds

    def answered(self, combinations: Iterable[Combination], asked_at: float) -> None:
        """The source has spoken of these, and the table says so."""
        with self._lock:
            for each in combinations:
                standing = self._standing(each, asked_at)
                standing.answered_at, standing.fault, standing.dropped = asked_at, None, False
                standing.next_at = asked_at + self._refresh_seconds

    def unanswered(self, faults: Mapping[Combination, str], now: float) -> list[Combination]:
        """The source has said nothing that is of use, and why; those of which that is news."""
        news = []
        with self._lock:
            for each, fault in faults.items():
                standing = self._standing(each, now)
                if standing.fault != fault:
                    standing.fault = fault
                    news.append(each)
                standing.next_at = now + RETRY_SECONDS
        return news

    def due(self, now: float) -> list[Combination]:
        """Those whose turn it is, the longest overdue first; who is not used any more is forgotten."""
        with self._lock:
            for each in [each for each, of in self._of.items() if now - of.used_at > USED_SECONDS]:
                del self._of[each]
            due = [(of.next_at, each) for each, of in self._of.items() if of.next_at <= now]
        return [each for _, each in sorted(due)]

    def too_old(self, now: float) -> list[Combination]:
        """Those that cannot be relied on and still may have something in the table."""
        with self._lock:
            found = [(each, of) for each, of in self._of.items() if not of.dropped]
        return [each for each, of in found if not self.is_fresh(of, now)]

    def dropped(self, combinations: Iterable[Combination], now: float) -> None:
        """Nothing of the source's is left in the table of those of these that cannot be relied on."""
        with self._lock:
            for each in combinations:
                standing = self._of.get(each)
                if standing is not None and not self.is_fresh(standing, now):
                    standing.dropped = True

    def ages(self, now: float) -> Iterator[float | None]:
        """How old each is; None: never answered."""
        with self._lock:
            standings = list(self._of.values())
        return (standing.age(now) for standing in standings)

    def _standing(self, combination: Combination, now: float) -> Standing:
        standing = self._of.get(combination)
        if standing is None:
            if len(self._of) >= MAX_STANDINGS:
                oldest = nsmallest(MAX_STANDINGS // 10, self._of, key=lambda each: self._of[each].used_at)
                for each in oldest:
                    del self._of[each]
            standing = self._of[combination] = Standing(now, now)
        return standing
