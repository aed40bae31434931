"""The resource classes in force, and which signatures of devices each of them selects."""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from rm_service.domain.device_attributes import Attributes
from rm_service.domain.device_selection import UNIT, Device, Wish, free_units, largest_fraction
from rm_service.domain.resource_classes import Match, ResourceClassSpec, match

CLASS = "class/"
"""How the dimensions begin by which a shortfall names a resource class; its amounts are thousandths."""

MAX_UNITED = 4
"""Of so many classes asked for together every combination is looked at when nodes are chosen."""


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


@dataclass(frozen=True, slots=True)
class Need:
    """What a node has to have for certain classes: so many units that are free, or one with so much left.

    `key` names what is selected, so that an order of nodes serves all who ask for the same.
    """

    key: str
    name: str
    """The dimension in which a lack of it is told; of several classes together none."""
    whole: bool
    amount: int
    """In thousandths."""
    signatures: Container[str]

    def left(self, devices: Iterable[Device]) -> int:
        """What these devices could still give, in thousandths: of whole units all, else of the best unit."""
        selected = [device for device in devices if device.signature in self.signatures]
        if self.whole:
            return sum([free_units(device) for device in selected]) * UNIT
        return max([largest_fraction(device) for device in selected], default=0)

    def total(self, devices: Iterable[Device]) -> int:
        """The same if nothing were taken."""
        counts = [device.count for device in devices if device.signature in self.signatures]
        return sum(counts) * UNIT if self.whole else min(UNIT, sum(counts) * UNIT)


class ClassBook:
    """The classes of one epoch. `attributes_of` knows the attributes of every signature."""

    def __init__(
        self, classes: Mapping[str, ResourceClass], attributes_of: Callable[[str], Attributes]
    ) -> None:
        self.classes = classes
        self._attributes_of = attributes_of
        self._matches: dict[tuple[str, str], Match] = {}

    def match(self, name: str, signature: str) -> Match:
        """What a class that is there says of a signature."""
        found = self._matches.get((name, signature))
        if found is None:
            found = match(self.classes[name].spec, self._attributes_of(signature))
            self._matches[name, signature] = found
        return found

    def selected_by(self, *names: str) -> "Selected":
        """The signatures that any of these classes selects."""
        return Selected(self, names)

    def wishes(self, classes: tuple[tuple[str, int], ...]) -> list[Wish]:
        """What is asked of a node's devices."""
        return [Wish(name, milli, self.selected_by(name)) for name, milli in classes]

    def needs(self, classes: tuple[tuple[str, int], ...]) -> list[Need]:
        """What every node that can give these classes has; also what several of them need together."""
        if not classes:
            return []
        whole = [(name, milli) for name, milli in classes if milli % UNIT == 0]
        found = [self._need([name], milli, whole=False) for name, milli in classes if milli % UNIT]
        sizes = range(1, len(whole) + 1) if len(whole) <= MAX_UNITED else (1, len(whole))
        for size in sizes:
            for together in combinations(whole, size):
                names = [name for name, _ in together]
                found.append(self._need(names, sum(milli for _, milli in together), whole=True))
        return found

    def _need(self, names: list[str], milli: int, *, whole: bool) -> Need:
        key = "|".join(sorted(f"{name} {self._uid(name)}" for name in names)) + ("" if whole else " part")
        dimension = f"{CLASS}{names[0]}" if len(names) == 1 else key
        return Need(key, dimension, whole, milli, self.selected_by(*names))

    def _uid(self, name: str) -> str:
        known = self.classes.get(name)
        return "" if known is None else known.uid


@dataclass(frozen=True, slots=True)
class Selected:
    """The signatures that any of some classes selects. A class that is not there selects nothing."""

    book: ClassBook
    names: tuple[str, ...]

    def __contains__(self, signature: object) -> bool:
        book = self.book
        return any(name in book.classes and book.match(name, str(signature)).selected for name in self.names)


NO_CLASSES = ClassBook({}, lambda _: {})
