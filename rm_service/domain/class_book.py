"""The resource classes in force, and which signatures of devices each of them selects."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

from rm_service.domain.class_expressions import Outcome
from rm_service.domain.device_attributes import Attributes
from rm_service.domain.device_selection import UNIT, Device, Wish, choose, free_units, largest_fraction
from rm_service.domain.device_supply import sums
from rm_service.domain.resource_classes import ResourceClassSpec, verdict

CLASS = "class/"
"""How the dimensions begin by which a shortfall names a resource class; its amounts are thousandths."""

MAX_UNITED = 4
"""Of so many classes asked for together every combination is looked at when nodes are chosen."""

MAX_FORESEEN = 64
"""So many different selections of classes get a column of an order before anybody asks for them."""

MAX_SIGNATURES = 10_000
"""So many distinct attribute sets may ever be registered: a serial number is a name, no attribute."""

MAX_SEARCHES = 32
"""So many different combinations of classes are remembered: more than a wake looks at."""

MAX_SHAPES = 2_000
"""So many shapes are remembered for each of them."""

Shape = frozenset[tuple[str, int, int]]
"""How many units of a signature have so much room: signature, room in thousandths, units.

What a node can give depends on nothing else of its devices.
"""

Classes = tuple[tuple[str, int], ...]
"""What is asked of each class, in thousandths of a device."""


@dataclass(frozen=True, slots=True)
class ResourceClass:
    """A class as it was created; it never changes. `version` is the number of the event that tells of it."""

    name: str
    uid: str
    spec: ResourceClassSpec
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    created_at: int = 0
    version: int = 0


class Supply:
    """What a node's devices could still give, summed up by signature."""

    def __init__(self, devices: Iterable[Device]) -> None:
        self._devices = devices

    @cached_property
    def by_signature(self) -> dict[str, tuple[int, int, int]]:
        """Units, units that are free, and the most that any one unit has left."""
        found: dict[str, tuple[int, int, int]] = {}
        for device in self._devices:
            count, free, largest = found.get(device.signature, (0, 0, 0))
            if device.taken:
                own, part = free_units(device), largest_fraction(device)
            else:  # most are, and this is asked for at each grant
                own, part = device.count, UNIT if device.count else 0
            found[device.signature] = count + device.count, free + own, max(largest, part)
        return found

    @cached_property
    def shape(self) -> Shape:
        """The units that have room."""
        units: Counter[tuple[str, int]] = Counter()
        for device in self._devices:
            units[device.signature, UNIT] += free_units(device)
            for unit, milli in device.taken.items():
                if 0 < milli < UNIT and 0 <= unit < device.count:
                    units[device.signature, UNIT - milli] += 1
        return frozenset([(*kind, count) for kind, count in units.items() if count])

    @cached_property
    def emptied(self) -> Shape:
        """The shape that it would be if nobody held anything of it."""
        return frozenset([(each, UNIT, count) for each, (count, _, _) in self.by_signature.items() if count])

    @cached_property
    def share_left(self) -> float:
        """The part of all units that is free; 1 where there are none."""
        counts = self.by_signature.values()
        total = sum([count for count, _, _ in counts])
        return sum([free for _, free, _ in counts]) / total if total else 1.0


NO_SUPPLY = Supply(())


@dataclass(frozen=True, slots=True)
class Need:
    """What a node has to have of certain signatures: so many free units, or one with so much left."""

    name: str
    """The dimension in which a lack of it is told; of several classes together none."""
    signatures: frozenset[str]
    whole: bool
    amount: int
    """In thousandths."""

    @property
    def key(self) -> tuple[bool, frozenset[str]]:
        """What is looked at, whatever the amount: all who ask for the same share an order of nodes."""
        return self.whole, self.signatures


class ClassSearch:
    """Which shapes can give certain classes together. What was reckoned once is remembered."""

    def __init__(self, wishes: Sequence[Wish]) -> None:
        self._wishes = wishes
        parts = [wish.milli for wish in wishes if wish.is_fraction]
        self._parts = len(parts)
        self._units = self._parts + sum([wish.milli // UNIT for wish in wishes if not wish.is_fraction])
        self._rooms = sorted({room for room in sums(parts) if room < UNIT})
        """The rooms in a unit in use that make a difference: what some of the parts need together."""
        self._stands_for: dict[str, str | None] = {}
        """For each signature the first that was met which the same wishes select; None: no wish does."""
        self._first: dict[tuple[bool, ...], str] = {}
        self._known: dict[Shape, bool] = {}

    def met_by(self, shape: Shape) -> bool:
        """Whether devices of this shape can give all that is asked for."""
        found = self._known.get(shape)
        if found is None:
            needed = self._needed(shape)
            found = self._known.get(needed)
            if found is None:
                found = self._remember(
                    needed, choose(_devices_of(needed), self._wishes, "first_fit") is not None
                )
            self._remember(shape, found)
        return found

    def _needed(self, shape: Shape) -> Shape:
        """The part of a shape that makes a difference here: it is the same for many of them."""
        units: Counter[tuple[str, int]] = Counter()
        for signature, room, count in shape:
            first = self._first_like(signature)
            useful = room if room == UNIT else self._rooms[bisect_right(self._rooms, room) - 1]
            if first is not None and useful:
                units[first, useful] += count
        return frozenset(
            [
                (first, room, min(count, self._units if room == UNIT else self._parts))
                for (first, room), count in units.items()
            ]
        )

    def _first_like(self, signature: str) -> str | None:
        if signature not in self._stands_for:
            selecting = tuple([signature in wish.signatures for wish in self._wishes])
            first = self._first.setdefault(selecting, signature) if any(selecting) else None
            self._stands_for[signature] = first
        return self._stands_for[signature]

    def _remember(self, shape: Shape, found: bool) -> bool:  # noqa: FBT001
        if len(self._known) >= MAX_SHAPES:
            self._known.clear()
        self._known[shape] = found
        return found


def _devices_of(shape: Shape) -> list[Device]:
    """Devices of this shape."""
    return [
        Device(f"{at}", signature, count, {} if room == UNIT else dict.fromkeys(range(count), UNIT - room))
        for at, (signature, room, count) in enumerate(sorted(shape))
    ]


class ClassBook:
    """The classes of one epoch. `attributes` has those of every signature that was met; it only grows."""

    def __init__(self, classes: Mapping[str, ResourceClass], attributes: Mapping[str, Attributes]) -> None:
        self.classes = classes
        self._attributes = attributes
        self._verdicts: dict[tuple[str, str], Outcome] = {}
        self._selected: dict[str, frozenset[str]] = {}
        self._searches: dict[tuple[tuple[int, frozenset[str]], ...], ClassSearch] = {}
        self._looked_at = 0

    def verdict(self, name: str, signature: str) -> Outcome:
        """What a class that is there says of a signature: HOLDS if it selects it, FAILS or UNCOMPARABLE."""
        found = self._verdicts.get((name, signature))
        if found is None:
            found = verdict(self.classes[name].spec, self._attributes[signature])
            self._verdicts[name, signature] = found
        return found

    def selects(self, name: str, signature: str) -> bool:
        return self.verdict(name, signature) is Outcome.HOLDS

    def too_many(self, signatures: Iterable[str]) -> bool:
        """Whether there would be more signatures than are taken, if these came in."""
        new = sum(signature not in self._attributes for signature in signatures)
        return new > 0 and len(self._attributes) + new > MAX_SIGNATURES

    def selected(self, name: str) -> frozenset[str]:
        """The signatures that a class selects, of all that were met; one that is not there selects none."""
        if name not in self.classes:
            return frozenset()
        if self._looked_at != len(self._attributes):
            self._selected, self._looked_at = {}, len(self._attributes)
        found = self._selected.get(name)
        if found is None:
            known = list(self._attributes)
            found = frozenset([each for each in known if self.selects(name, each)])
            self._selected[name] = found
        return found

    def wishes(self, classes: Classes) -> list[Wish]:
        """What is asked of a node's devices."""
        return [Wish(name, milli, self.selected(name)) for name, milli in classes]

    def search(self, classes: Classes) -> ClassSearch:
        """What is known of who can give these classes together; kept for as long as they select the same."""
        key = tuple([(milli, self.selected(name)) for name, milli in classes])
        found = self._searches.get(key)
        if found is None:
            if len(self._searches) >= MAX_SEARCHES:
                self._searches.clear()
            found = self._searches[key] = ClassSearch(self.wishes(classes))
        return found

    def needs(self, classes: Classes) -> list[Need]:
        """What every node that can give these classes has; also what several of them need together."""
        if not classes:
            return []
        found = [
            Need(f"{CLASS}{name}", self.selected(name), milli % UNIT == 0, milli) for name, milli in classes
        ]
        whole = [each for each in found if each.whole]
        sizes = range(2, len(whole) + 1) if len(whole) <= MAX_UNITED else (len(whole),)
        for size in sizes:
            for together in combinations(whole, size):
                united = frozenset().union(*[each.signatures for each in together])
                found.append(Need("", united, True, sum([each.amount for each in together])))
        return found

    def with_all_needs(self, needs: Sequence[Need]) -> Sequence[Need]:
        """These, and whole units of every class there is: sooner or later somebody asks for each."""
        found = {need.key: need for need in needs}
        for name in self.classes:
            if len(found) >= MAX_FORESEEN:
                break
            need = Need(f"{CLASS}{name}", self.selected(name), whole=True, amount=UNIT)
            found.setdefault(need.key, need)
        return list(found.values())


NO_CLASSES = ClassBook({}, {})
