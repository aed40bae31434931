"""Snapshots: what a manager had when it was last looked at."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import TypeVar

from external_providers.base import ExternalApplication, Place
from rm_service.domain.application import SECOND, Instant
from rm_service.ledger.queries.paging import Key as PageKey
from rm_service.ledger.queries.paging import Page, read_cursor, write_cursor

T = TypeVar("T")

Key = tuple[str, str]
"""Type and name of a provider."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One look at a manager: its applications first, its places afterwards."""

    places: Mapping[str, Place]
    """By their names."""
    applications: tuple[ExternalApplication, ...]
    at: Instant
    """When the look began, microseconds UTC."""
    began: float = field(repr=False)
    """The same on the clock of this process, from which its age is reckoned."""
    seconds: float
    """How long it took."""
    quarantined: frozenset[str] = frozenset()
    """The names of places that it had, and that cannot be as it had them."""
    faults: tuple[str, ...] = ()
    """Why those are not used, and why applications are left out."""
    _by_place: Mapping[str, Sequence[ExternalApplication]] = field(init=False, repr=False, compare=False)
    _homes: Sequence[str] = field(init=False, repr=False, compare=False)
    """The places that have applications, sorted."""

    def __post_init__(self) -> None:
        by_place: dict[str, list[ExternalApplication]] = defaultdict(list)
        for application in self.applications:
            by_place[application.place].append(application)
        object.__setattr__(self, "_by_place", dict(by_place))
        object.__setattr__(self, "_homes", sorted(by_place))

    def listed(self, place: str, separator: str | None = None) -> list[ExternalApplication]:
        """The applications of a place; with a separator of levels those of all places beneath it, too."""
        found = list(self._by_place.get(place, ()))
        if separator:
            beneath = place + separator
            for home in self._homes[bisect_left(self._homes, beneath) :]:
                if not home.startswith(beneath):
                    break
                found += self._by_place[home]
        return found


class Snapshots:
    """The latest snapshot of each provider. Its methods may be called from any thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._latest: dict[Key, Snapshot] = {}

    def latest(self, type_: str, name: str) -> Snapshot | None:
        """The last one that could be believed; None before the first."""
        return self._latest.get((type_, name))

    def age(self, snapshot: Snapshot) -> float:
        """Seconds since its look began."""
        return max(0.0, self._clock() - snapshot.began)

    def age_in_microseconds(self, snapshot: Snapshot) -> Instant:
        """The same as the ledger counts time."""
        return int(self.age(snapshot) * SECOND)

    def put(self, key: Key, snapshot: Snapshot) -> None:
        self._latest[key] = snapshot

    def forget(self, key: Key) -> None:
        self._latest.pop(key, None)


def page_of_places(snapshot: Snapshot | None, limit: int, cursor: str | None) -> Page[Place]:
    """A page of the places, by name. Raises CursorError."""
    after = None if cursor is None else read_cursor("places", cursor, str)
    places = () if snapshot is None else snapshot.places.values()
    return _page("places", places, lambda place: (place.name,), limit, after)


def page_of_applications(
    snapshot: Snapshot | None, place: str | None, limit: int, cursor: str | None
) -> Page[ExternalApplication]:
    """A page of the applications of a place, of all places for None, by id. Raises CursorError."""
    after = None if cursor is None else read_cursor("external_applications", cursor, str)
    found: Iterable[ExternalApplication] = ()
    if snapshot is not None:
        found = snapshot.applications if place is None else snapshot.listed(place)
    return _page("external_applications", found, lambda each: (each.id,), limit, after)


def _page(
    listing: str, items: Iterable[T], key_of: Callable[[T], PageKey], limit: int, after: PageKey | None
) -> Page[T]:
    """The next look may have others: a page begins behind the last one that was shown, wherever that is."""
    left = [each for each in items if after is None or key_of(each) > after]
    page = nsmallest(limit + 1, left, key=key_of)
    more = len(page) > limit
    return Page(page[:limit], write_cursor(listing, key_of(page[limit - 1])) if more else None)
