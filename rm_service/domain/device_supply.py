"""Whether demands that compete for the same units can all be met, and how much each may take of what.

A *demand* wants units, each with so much room, on devices that match all its wishes. *Kinds* of supply say
how many alike units there are. By the theorem of Hall (max-flow min-cut) all demands can be met exactly when
no set of demands wants more units than there are for any of it: with at most 8 demands these are 256 sums,
however many units and devices there are, and no search is needed afterwards.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

WishSet = int
"""A set of wishes: bit `1 << n` is the wish numbered n."""


class Kind(NamedTuple):
    """Units that are alike: the wishes that they match, and the room in thousandths that each has."""

    wishes: WishSet
    room: int


class Demand(NamedTuple):
    """Units that are wanted: for which wishes together, with how much room in thousandths each, how many."""

    wishes: WishSet
    room: int
    units: int


class Supply:
    """Units for which demands compete. As long as it is `possible`, all of what is left to give can be given.

    `slack[S]` is how many units there are for any of the demands in the set S, beyond what these want. Each
    wish is in exactly one demand.
    """

    def __init__(self, demands: Sequence[Demand], units: Mapping[Kind, int]) -> None:
        self._demands = demands
        self._open = everyone = (1 << len(demands)) - 1
        self._left = [demand.units for demand in demands]
        self._sets: dict[Kind, int] = {}
        only_for = [0] * (everyone + 1)
        for kind, count in units.items():
            only_for[self._set(kind)] += count
        for bit in _bits(everyone):
            for each in range(everyone + 1):
                if each & bit:
                    only_for[each] += only_for[each ^ bit]
        total = only_for[everyone]
        wanted = sums(self._left)
        self._slack = [total - only_for[everyone ^ each] - wanted[each] for each in range(everyone + 1)]
        self.possible = min(self._slack) >= 0

    def together(self, wish: WishSet) -> WishSet:
        """The wishes that are met by the same units as this one, with itself."""
        return self._demands[self._demand(wish)].wishes

    def limit(self, wish: WishSet, kind: Kind) -> int:
        """How many units of this kind the wish may take, so that all the others can still be met."""
        number = self._demand(wish)
        competing = self._set(kind)
        if not competing >> number & 1:
            return 0
        limit = self._left[number]
        slack = self._slack
        for each in _subsets(self._open & ~(1 << number)):
            if each & competing and slack[each] < limit:
                limit = slack[each]
        return limit

    def take(self, wish: WishSet, kind: Kind, units: int) -> None:
        """Give the wish so many units of this kind: at most `limit`, and at most as many as there are."""
        number = self._demand(wish)
        competing = self._set(kind)
        self._left[number] -= units
        if not self._left[number]:
            self._open &= ~(1 << number)
        # A set with the demand itself has fewer units and wants fewer, so that its slack stays.
        for each in _subsets(self._open & ~(1 << number)):
            if each & competing:
                self._slack[each] -= units

    def _demand(self, wish: WishSet) -> int:
        return next(number for number, demand in enumerate(self._demands) if demand.wishes & wish)

    def _set(self, kind: Kind) -> int:
        """The demands that units of this kind can meet."""
        known = self._sets.get(kind)
        if known is None:
            known, bit = 0, 1
            wishes, room = kind
            for wanting, least, _ in self._demands:
                if least <= room and wanting & wishes == wanting:
                    known |= bit
                bit <<= 1
            self._sets[kind] = known
        return known


def competing_in(selected: Iterable[WishSet]) -> list[WishSet]:
    """The wishes in groups that have no device in common, not even by way of others."""
    groups: list[WishSet] = []
    for each in set(selected) - {0}:
        apart = [group for group in groups if not group & each]
        groups = [*apart, each | sum([group for group in groups if group & each])]
    return groups


def partitions(wishes: Sequence[WishSet]) -> Iterator[tuple[WishSet, ...]]:
    """Each way to put these wishes together into groups; of four wishes there are 15."""
    if not wishes:
        yield ()
        return
    first, rest = wishes[0], wishes[1:]
    for groups in partitions(rest):
        for at, group in enumerate(groups):
            yield (*groups[:at], group | first, *groups[at + 1 :])
        yield (first, *groups)


def _bits(of: int) -> Iterator[int]:
    while of:
        yield of & -of
        of &= of - 1


@lru_cache(maxsize=256)
def _subsets(of: int) -> tuple[int, ...]:
    """Each non-empty subset."""
    return tuple([each for each in range(1, of + 1) if each & of == each])


def sums(numbers: Iterable[int]) -> list[int]:
    """The sum of each subset."""
    found = [0]
    for number in numbers:
        found += [each + number for each in found]
    return found
