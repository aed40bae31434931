"""Which devices of a node are preferred for whole units, and which units for a fraction."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush

STRATEGIES = ("first_fit", "best_fit", "spread")
"""Which units are taken. What the other wishes of the request need is left to them, whatever the strategy.

Fractions are placed before whole units, and each of the two in the order of the request. What the request has
taken so far counts as taken. Of equal devices the first of the node's list comes first, in a device the unit
with the lowest number.

- `first_fit`. Whole units: the devices in the order of the node's list, from each as many as are free. A
  fraction: the first unit of the first device that has room for it.
- `best_fit`. Whole units: of the devices that can give all of them the one with the fewest free units; while
  no device can, the one that can give most gives what it can. A fraction: the unit with the least room that
  is enough, of equal ones that of the device with the fewest free units.
- `spread`. Whole units: the devices in the order of their free units, most first, from each as many as are
  free. A fraction: the emptiest unit, of equal ones that of the device with the most free units.

A fraction of a class that shares devices with a class of which whole units are asked for goes on a unit that
is taken in part, by any of the strategies, as long as there is one for it.
"""


def shares(
    wanted: int, free: Mapping[int, int], strategy: str, limit: Callable[[int], int]
) -> Iterator[tuple[int, int]]:
    """Which device gives how many whole units, as pairs; nothing after what is wanted is had.

    `free` are the free units by the device's place in the node's list, ascending by place. `limit` is what a
    device may give of them; it is asked again after each answer.
    """
    if strategy == "best_fit":
        yield from _best_shares(wanted, sorted(free, key=free.__getitem__), limit)
        return
    order = sorted(free, key=free.__getitem__, reverse=True) if strategy == "spread" else free
    for at in order:
        if units := min(limit(at), wanted):
            yield at, units
            wanted -= units
            if not wanted:
                return


def unit_rank(strategy: str, room: int, free: int) -> tuple[int, ...]:
    """What the units for a fraction are sorted by, smallest first.

    `room` is the unit's, `free` are the free units of its device.
    """
    match strategy:
        case "best_fit":
            return room, free
        case "spread":
            return -room, -free
        case _:
            return ()


def _best_shares(
    wanted: int, fullest_first: Sequence[int], limit: Callable[[int], int]
) -> Iterator[tuple[int, int]]:
    """Limits only fall, so that those that were seen last are enough to know who can give most."""
    seen = [(-limit(at), number, at) for number, at in enumerate(fullest_first)]
    heapify(seen)
    while wanted and seen:
        most, number, at = heappop(seen)
        units = limit(at)
        if units < -most:
            heappush(seen, (-units, number, at))
        elif units < wanted:
            yield at, units
            wanted -= units
        else:
            left = sorted([(number, at), *((number, at) for _, number, at in seen)])
            yield next(at for _, at in left if limit(at) >= wanted), wanted
            return
