"""Snapshots: what a manager had when it was last looked at, and the check that it can be."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import TypeVar

import orjson

from external_providers.base import ExternalApplication, Identity, Place
from rm_service.domain.amounts import Amounts
from rm_service.domain.application import SECOND, Instant
from rm_service.domain.tags import key_fault, value_fault
from rm_service.ledger.queries.paging import Key as PageKey
from rm_service.ledger.queries.paging import Page, read_cursor, write_cursor

T = TypeVar("T")

MAX_AMOUNT = 2**62
"""More is no amount of anything, and two of them would leave 64 bits."""
MAX_PLACES = 100_000
MAX_TEXT = 512

Key = tuple[str, str]
"""Type and name of a provider."""


class AbsurdSnapshotError(ValueError):
    """What came cannot be: it is not used."""


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


def check_snapshot(
    identity: Identity, places: Sequence[Place], applications: Sequence[ExternalApplication]
) -> Mapping[str, Place]:
    """The places by name. Raises AbsurdSnapshotError for what no manager can have."""
    if len(places) > MAX_PLACES:
        raise AbsurdSnapshotError(f"{len(places)} places are more than {MAX_PLACES}")
    by_name: dict[str, Place] = {}
    for place in places:
        _check_name("a place", place.name)
        if place.name in by_name:
            raise AbsurdSnapshotError(f"place {place.name} is there twice")
        by_name[place.name] = place
        for what in ("total", "used", "guaranteed", "pending"):
            _check_amounts(identity, f"place {place.name}: {what}", getattr(place, what))
        _check_json(f"place {place.name}: details", place.details)
    for application in applications:
        _check_name("an application", application.id)
        _check_amounts(identity, f"application {application.id}: allocated", application.allocated)
    _check_sums(applications)
    return by_name


def _check_name(what: str, name: object) -> None:
    fault = "it is empty" if name == "" else value_fault(name)
    if fault:
        raise AbsurdSnapshotError(f"the name of {what} cannot be, {fault}: {name!r:.80}")


def _check_amounts(identity: Identity, where: str, amounts: Amounts) -> None:
    for dimension, amount in amounts.items():
        if key_fault(dimension) or (identity.dimensions and dimension not in identity.dimensions):
            raise AbsurdSnapshotError(f"{where}: {dimension!r:.80} is nothing that {identity.type} counts")
        if type(amount) is not int:
            raise AbsurdSnapshotError(f"{where}.{dimension}: {amount!r:.80} is no whole number")
        if not 0 <= amount <= MAX_AMOUNT:
            reason = "is below 0" if amount < 0 else "is more than 2^62"
            raise AbsurdSnapshotError(f"{where}.{dimension}: {amount} {reason}")


def _check_sums(applications: Collection[ExternalApplication]) -> None:
    sums: dict[tuple[str, str], int] = {}
    for application in applications:
        for dimension, amount in application.allocated.items():
            at = (application.place, dimension)
            sums[at] = sums.get(at, 0) + amount
    for (place, dimension), total in sums.items():
        if total > MAX_AMOUNT:
            raise AbsurdSnapshotError(f"place {place}: its applications have more than 2^62 {dimension}")


def _check_json(where: str, document: object) -> None:
    try:
        orjson.dumps(document)
    except TypeError as error:
        raise AbsurdSnapshotError(f"{where}: {error}") from error


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
