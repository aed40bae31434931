"""Which units of a node's devices an application gets that asks for resource classes.

An amount of a device is in thousandths of a unit (milli). A unit is one card, one port: a device registered
with a count of 4 has the units 0 to 3. A request wants of a class either whole units, which have to be
entirely free and may be of several devices, or a fraction of one unit. Classes may overlap: whenever the
units of a node can be given so that every class gets its own, such an assignment is found.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import itemgetter

from rm_service.domain.device_strategies import STRATEGIES, shares, unit_rank
from rm_service.domain.device_supply import Demand, Kind, Supply, WishSet, competing_in, partitions, sums

UNIT = 1000
"""The thousandths of a whole unit."""

MAX_CLASSES = 8
MAX_FRACTIONS = 4
MAX_UNITS = 10_000
"""So many whole units one request may ask for, of all classes together."""


class ClassesError(ValueError):
    """Classes cannot be asked for in this way. `field` is the place: `classes`, or `classes.NAME` of one."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        self.reason = reason
        super().__init__(f"{field}: {reason}")


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a node, with what is taken of it.

    A unit that `taken` does not name is free. A report may leave more than 1000 on a unit, and something on a
    unit that the device does not have any more; nothing is given of these.
    """

    name: str
    signature: str
    """Stands for its distinct set of attributes."""
    count: int
    taken: Mapping[int, int]
    """Unit to thousandths."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked of one class: whole units (a multiple of 1000) or a fraction of one unit (1 to 999)."""

    resource_class: str
    milli: int
    signatures: Container[str]
    """Those of the devices that the class selects."""

    @property
    def is_fraction(self) -> bool:
        """Whether it wants a part of one unit."""
        return self.milli < UNIT


@dataclass(frozen=True, slots=True)
class Held:
    """Units of one device that an application has through one class."""

    resource_class: str
    device: str
    signature: str
    units: tuple[tuple[int, int], ...]
    """Pairs of a unit and the thousandths of it, ascending; in JSON a list of lists."""

    @property
    def milli(self) -> int:
        """The thousandths of all its units together."""
        return sum([milli for _, milli in self.units])


def check_wishes(wishes: Sequence[Wish]) -> None:
    """Refuse what `choose` does not take: raises ClassesError."""
    if len(wishes) > MAX_CLASSES:
        raise ClassesError(
            "classes", f"{len(wishes)} classes are asked for, at most {MAX_CLASSES} are allowed"
        )
    whole = fractions = 0
    for wish in wishes:
        if wish.milli <= 0 or (wish.milli > UNIT and wish.milli % UNIT):
            raise ClassesError(
                f"classes.{wish.resource_class}", "must be a whole number of units, or less than one unit"
            )
        if wish.milli < UNIT:
            fractions += 1
        else:
            whole += wish.milli // UNIT
    if fractions > MAX_FRACTIONS:
        raise ClassesError(
            "classes", f"fractions of {fractions} classes are asked for, at most {MAX_FRACTIONS} are allowed"
        )
    if whole > MAX_UNITS:
        raise ClassesError("classes", f"{whole} units are asked for, at most {MAX_UNITS} are allowed")


def choose(devices: Sequence[Device], wishes: Sequence[Wish], strategy: str) -> tuple[Held, ...] | None:
    """The units that meet all the wishes, in the order of the wishes; None if this node cannot meet them.

    `devices` are all of the node's, in the order of its list. `strategy` is one of `STRATEGIES`, which say
    which of several answers is given. Without wishes nothing is given: an empty tuple. Raises ClassesError as
    `check_wishes` does, ValueError for another strategy.
    """
    check_wishes(wishes)
    if strategy not in STRATEGIES:
        raise ValueError(f"{strategy!r} is no strategy; known are {', '.join(STRATEGIES)}")
    if len(wishes) == 1:
        held = _alone(devices, wishes[0], strategy)
        return None if held is None else tuple(held)
    wishes_of = {each: _selecting(each, wishes) for each in {device.signature for device in devices}}
    selected = [wishes_of[device.signature] for device in devices]
    found: dict[WishSet, list[Held]] = {}
    for competing in competing_in(selected):
        if competing & (competing - 1):
            part = _Choice(devices, wishes, [each & competing for each in selected], strategy).made()
        else:
            wish = wishes[competing.bit_length() - 1]
            alone = _alone(devices, wish, strategy)
            part = None if alone is None else {competing: alone}
        if part is None:
            return None
        found |= part
    if len(found) < len(wishes):
        return None
    return tuple([held for number in range(len(wishes)) for held in found[1 << number]])


def free_units(device: Device) -> int:
    """How many units are entirely free."""
    taken, count = device.taken, device.count
    if not taken:
        return count
    return count - sum([1 for unit, milli in taken.items() if milli and 0 <= unit < count])


def largest_fraction(device: Device) -> int:
    """The room of the emptiest unit in thousandths, 0 to 1000: no larger fraction of one unit can be had."""
    if free_units(device):
        return UNIT
    return max((room for _, room in _rooms(device, 1)), default=0)


def take(device: Device, units: Iterable[tuple[int, int]]) -> Device:
    """The device with so many thousandths more taken of these units; what a report says may be over 1000."""
    taken = dict(device.taken)
    for unit, milli in units:
        taken[unit] = taken.get(unit, 0) + milli
    return replace(device, taken=taken)


def give_back(device: Device, units: Iterable[tuple[int, int]]) -> Device:
    """The inverse of `take`. Raises ValueError if less than that is taken of a unit."""
    taken = dict(device.taken)
    for unit, milli in units:
        left = taken.pop(unit, 0) - milli
        if left < 0:
            raise ValueError(
                f"{milli} of unit {unit} of {device.name} are given back, {left + milli} are taken"
            )
        if left:
            taken[unit] = left
    return replace(device, taken=taken)


_Place = tuple[tuple[int, ...], int, int, int, bool]
"""A unit that has room for a fraction: its rank in the strategy's order, the place of its device in the
node's list, the unit, its room, whether it is free. They are sorted as they are."""


def _alone(devices: Sequence[Device], wish: Wish, strategy: str) -> list[Held] | None:
    """What a wish gets when no other wishes for the same devices."""
    signatures = {each for each in {device.signature for device in devices} if each in wish.signatures}
    if wish.is_fraction:
        selected = [(at, device) for at, device in enumerate(devices) if device.signature in signatures]
        place = _best_place(selected, wish.milli, strategy)
        return None if place is None else [_held(wish, devices[place[1]], [(place[2], wish.milli)])]
    free = {}
    for at, device in enumerate(devices):
        if device.signature in signatures and (count := free_units(device)):
            free[at] = count
    wanted = wish.milli // UNIT
    if sum(free.values()) < wanted:
        return None
    return [
        _whole(wish, devices[at], units) for at, units in shares(wanted, free, strategy, free.__getitem__)
    ]


class _Choice:
    """The choice for wishes that compete for devices.

    Each way to put the fractions together on units makes of them demands for one unit each, which a Supply
    weighs against the whole units that are wanted. Only ways that can still be had are kept: each step takes
    the first in the strategy's order that one of them allows, and drops those that do not.
    """

    def __init__(
        self, devices: Sequence[Device], wishes: Sequence[Wish], selected: Sequence[WishSet], strategy: str
    ) -> None:
        self._strategy = strategy
        self._selected = selected
        self._devices = list(devices)
        self._free = {at: free_units(devices[at]) for at, each in enumerate(selected) if each}
        competing = [(1 << at, wish) for at, wish in enumerate(wishes) if any(1 << at & s for s in selected)]
        self._fractions = [(number, wish) for number, wish in competing if wish.is_fraction]
        self._whole = [(number, wish) for number, wish in competing if not wish.is_fraction]
        self._all_fractions = sum([number for number, _ in self._fractions])
        self._rooms = sorted(
            {room for room in sums([wish.milli for _, wish in self._fractions]) if room <= UNIT}
        )
        """The rooms that make a difference: what some of the fractions need together."""
        self._opened: dict[tuple[int, int], WishSet] = {}
        """The fractions that have been placed, by device and unit."""
        self._ways = self._possible_ways()

    def made(self) -> dict[WishSet, list[Held]] | None:
        """What each of the wishes gets, or None."""
        if not self._ways:
            return None
        held = {number: [self._place(number, wish)] for number, wish in self._fractions}
        for number, wish in self._whole:
            held[number] = self._give(number, wish)
        return held

    def _possible_ways(self) -> list[Supply]:
        units: Counter[Kind] = Counter()
        for at, free in self._free.items():
            units[self._kind(at, UNIT, is_free=True)] += free
            if self._fractions:
                rooms = _rooms(self._devices[at], self._rooms[1])
                units.update([self._kind(at, room, is_free=False) for _, room in rooms])
        milli = {number: wish.milli for number, wish in self._fractions}
        whole = [Demand(number, UNIT, wish.milli // UNIT) for number, wish in self._whole]
        ways = []
        for groups in partitions(list(milli)):
            together = [
                Demand(group, sum([milli[number] for number in milli if number & group]), 1)
                for group in groups
            ]
            if all(demand.room <= UNIT for demand in together):
                ways.append(Supply(whole + together, units))
        return [way for way in ways if way.possible]

    def _kind(self, at: int, room: int, *, is_free: bool) -> Kind:
        wishes = self._selected[at]
        if is_free:
            return Kind(wishes, UNIT)
        return Kind(wishes & self._all_fractions, self._rooms[bisect_right(self._rooms, room) - 1])

    def _place(self, number: WishSet, wish: Wish) -> Held:
        selected = [(at, self._devices[at]) for at in self._free if self._selected[at] & number]
        contested = any(self._selected[at] & ~self._all_fractions for at, _ in selected)
        places = sorted(_places(selected, wish.milli, self._strategy))
        if contested:
            places.sort(key=itemgetter(-1))
        known: dict[Kind, list[Supply]] = {}
        for _, at, unit, room, is_free in places:
            kind = self._kind(at, room, is_free=is_free)
            placed = self._opened.get((at, unit), 0)
            if placed:
                ways = [way for way in self._ways if way.together(number) & placed]
            elif kind in known:
                ways = known[kind]
            else:
                ways = known[kind] = [way for way in self._ways if way.limit(number, kind)]
            if ways:
                break
        else:
            raise AssertionError("a way that is possible has a place for each fraction")
        if not placed:
            for way in ways:
                way.take(number, kind, 1)
            self._free[at] -= is_free
        self._ways = ways
        self._opened[at, unit] = placed | number
        return self._taken(at, _held(wish, self._devices[at], [(unit, wish.milli)]))

    def _give(self, number: WishSet, wish: Wish) -> list[Held]:
        way = self._ways[0]  # with all fractions placed there is only one
        free = {at: units for at, units in self._free.items() if units and self._selected[at] & number}
        kinds = {at: self._kind(at, UNIT, is_free=True) for at in free}
        held = []
        for at, units in shares(
            wish.milli // UNIT, free, self._strategy, lambda at: min(free[at], way.limit(number, kinds[at]))
        ):
            way.take(number, kinds[at], units)
            self._free[at] -= units
            held.append(self._taken(at, _whole(wish, self._devices[at], units)))
        return held

    def _taken(self, at: int, held: Held) -> Held:
        self._devices[at] = take(self._devices[at], held.units)
        return held


def _selecting(signature: str, wishes: Sequence[Wish]) -> WishSet:
    """The wishes whose class selects the signature."""
    return sum([1 << number for number, wish in enumerate(wishes) if signature in wish.signatures])


def _places(devices: Iterable[tuple[int, Device]], milli: int, strategy: str) -> Iterator[_Place]:
    """The units with room for a fraction: all that are taken in part, and of each device one that is free."""
    for at, device in devices:
        free = free_units(device)
        if free:
            yield unit_rank(strategy, UNIT, free), at, _lowest_free(device, 1)[0], UNIT, True
        if device.taken:
            for unit, room in _rooms(device, milli):
                yield unit_rank(strategy, room, free), at, unit, room, False


def _best_place(devices: Sequence[tuple[int, Device]], milli: int, strategy: str) -> _Place | None:
    if strategy == "first_fit":  # the devices behind the first that has room need no look
        places = (min(_places([each], milli, strategy), default=None) for each in devices)
        return next(filter(None, places), None)
    return min(_places(devices, milli, strategy), default=None)


def _rooms(device: Device, least: int) -> Iterator[tuple[int, int]]:
    """The units that are taken in part and have so much room, with their room."""
    most = UNIT - least
    for unit, milli in device.taken.items():
        if 0 < milli <= most and 0 <= unit < device.count:
            yield unit, UNIT - milli


def _lowest_free(device: Device, count: int) -> list[int]:
    taken = device.taken
    return list(islice((unit for unit in range(device.count) if not taken.get(unit)), count))


def _whole(wish: Wish, device: Device, count: int) -> Held:
    return _held(wish, device, [(unit, UNIT) for unit in _lowest_free(device, count)])


def _held(wish: Wish, device: Device, units: Sequence[tuple[int, int]]) -> Held:
    return Held(wish.resource_class, device.name, device.signature, tuple(units))
