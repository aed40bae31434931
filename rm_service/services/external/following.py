"""Which providers there are: what is stored is taken over whenever it has changed, on every replica."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Protocol

import structlog
from sqlalchemy.exc import SQLAlchemyError

from external_providers.base import Identity
from rm_service.domain.providers import StoredProvider, most_specific_first, speaking_for
from rm_service.domain.tags import Tags
from rm_service.ledger.providers import Generation
from rm_service.services.external.breaker import Breaker
from rm_service.services.external.feeds import Feed, fail
from rm_service.services.external.snapshots import Key, Snapshots
from rm_service.services.external.sources import Unparsed, UnusableProviderError

LONGEST_OPEN_SECONDS = 60.0
"""A breaker stays open at most so long, or two refreshes where that is longer."""

_log = structlog.get_logger(__name__)


class Stored(Protocol):
    """Where the providers are kept."""

    def generation(self) -> Generation: ...

    def all(self) -> Sequence[StoredProvider]: ...

    def unseal(self, stored: StoredProvider) -> Unparsed: ...

    def identity_of(self, type_: str) -> Identity | None: ...


class Following:
    """The feeds of the stored providers. `lock` is that of the refresher, around all feeds."""

    def __init__(self, stored: Stored, clock: Callable[[], float], snapshots: Snapshots, lock: Lock) -> None:
        self._stored = stored
        self._clock = clock
        self._snapshots = snapshots
        self._lock = lock
        self._one_at_a_time = Lock()
        self._generation: Generation | None = None
        self._unreadable = False
        self._ended = False
        self._ordered: dict[str, tuple[StoredProvider, ...]] = {}
        self.feeds: dict[Key, Feed] = {}

    def identity_of(self, type_: str) -> Identity | None:
        """What the plugin of a type is; None if there is none."""
        return self._stored.identity_of(type_)

    def speaking_for(self, type_: str, tags: Tags) -> tuple[StoredProvider, Identity] | None:
        """The provider that speaks for a label of these tags, and what kind it is of. Takes no lock: it is
        asked before each application.
        """
        stored = speaking_for(self._ordered.get(type_, ()), tags)
        identity = None if stored is None else self.identity_of(type_)
        return None if stored is None or identity is None else (stored, identity)

    def end(self) -> None:
        """Follow nothing any more. The lock is held."""
        self._ended = True
        self.feeds.clear()

    def follow(self) -> list[StoredProvider] | None:
        """Take over what has changed: which providers are gone, None where all is as it was.

        While nothing can be read all stays as it is. No plug-in is asked here: what it makes of a
        configuration is found out by the first call.
        """
        with self._one_at_a_time:
            try:
                generation = self._stored.generation()
                if generation == self._generation:
                    self._unreadable = False
                    return None
                stored = self._stored.all()
            except (SQLAlchemyError, ValueError) as error:
                if not self._unreadable:
                    _log.warning("providers_unreadable", error=str(getattr(error, "orig", error)).strip())
                self._unreadable = True
                return None
            known = {key: feed.stored.version for key, feed in list(self.feeds.items())}
            changed = [each for each in stored if known.get((each.type, each.name)) != each.version]
            gone = self._take_over(stored, [(each, self._unsealed(each)) for each in changed])
            self._generation, self._unreadable = generation, False
            return gone

    def _unsealed(self, stored: StoredProvider) -> Unparsed | str:
        try:
            return self._stored.unseal(stored)
        except UnusableProviderError as error:
            _log.warning("provider_unusable", provider=stored.key, reason=str(error))
            return str(error)

    def _take_over(
        self, stored: Sequence[StoredProvider], unsealed: Sequence[tuple[StoredProvider, Unparsed | str]]
    ) -> list[StoredProvider] | None:
        """Have a feed for each that is stored, and for nobody else: who is gone."""
        kept = {(each.type, each.name) for each in stored}
        with self._lock:
            if self._ended:
                return None
            gone = [feed for key, feed in self.feeds.items() if key not in kept]
            left = list(gone)
            for feed in gone:
                del self.feeds[feed.key]
                self._snapshots.forget(feed.key)
            for each, unparsed in unsealed:
                before = self.feeds.get((each.type, each.name))
                if before is not None and self._goes_on(before, each, unparsed):
                    continue
                left += [] if before is None else [before]
                self._begin(each, unparsed)
            self._ordered = _ordered(stored)
        for feed in left:
            for future in feed.futures():
                fail(future, "the provider was changed")
        return [feed.stored for feed in gone]

    def _goes_on(self, feed: Feed, stored: StoredProvider, unparsed: Unparsed | str) -> bool:
        """Whether a feed stays with what it has seen, because the same manager is asked the same."""
        if feed.problem is not None or feed.unparsed is None or isinstance(unparsed, str):
            return False
        if not unparsed.asks_as(feed.unparsed):
            return False
        feed.stored, feed.unparsed, feed.is_parsed = stored, unparsed, False
        feed.next_at = self._clock()
        return True

    def _begin(self, stored: StoredProvider, unparsed: Unparsed | str) -> None:
        usable, problem = (None, unparsed) if isinstance(unparsed, str) else (unparsed, None)
        two_refreshes = 2.0 * stored.refresh_seconds
        breaker = Breaker(
            self._clock,
            least_seconds=two_refreshes,
            most_seconds=max(LONGEST_OPEN_SECONDS, two_refreshes),
        )
        feed = Feed(stored, usable, problem, breaker, next_at=self._clock())
        self.feeds[feed.key] = feed
        self._snapshots.forget(feed.key)


def _ordered(stored: Sequence[StoredProvider]) -> dict[str, tuple[StoredProvider, ...]]:
    """By type, the most specific first."""
    types = {each.type for each in stored}
    return {
        type_: tuple(most_specific_first(each for each in stored if each.type == type_)) for type_ in types
    }
