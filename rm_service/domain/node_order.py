"""An order of nodes that is kept while ranks change, and that finds a node with room without trying them all.

A tree of blocks of nodes that stand side by side. Each block knows the most that any of its nodes has left in
each dimension, and some requests that fit on none of them; so most blocks are passed over. What was proved
stays true while amounts fall: only what comes in or rises is held against it.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from operator import le
from typing import Any, Generic, Self, TypeVar

Place = tuple[float, str, int]
"""Where a node stands: its rank (smallest first), its name, the id of its label."""

Vector = tuple[int, ...]
"""Amounts by position: what is left in each requested dimension. What follows takes no part in fitting."""

WIDTH = 32
"""A block holds at most so many parts, 8 or more. With less than a quarter of them it joins its neighbour."""

MAX_REFUSED = 16
"""So many requests that did not fit are remembered by each block."""

Part = TypeVar("Part")


class NodeOrder:
    """Nodes in ascending order of their places."""

    def __init__(self, places: Iterable[tuple[Place, Vector]]) -> None:
        ordered = sorted(places)
        self._places = {place[2]: place for place, _ in ordered}
        self._root: _Leaf | _Branch = _Leaf(
            [place for place, _ in ordered], [vector for _, vector in ordered]
        )
        while len(self._root.parts) > WIDTH:
            self._root = _Branch.of(self._root.in_pieces())

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, label_id: int) -> bool:
        return label_id in self._places

    def put(self, place: Place, vector: Vector) -> None:
        """Take a node in; if it is there already, move it and take over its amounts."""
        label_id = place[2]
        if self._places.get(label_id, place) != place:
            self.remove(label_id)
        self._places[label_id] = place
        self._root.put(place, vector)
        if len(self._root.parts) > WIDTH:
            self._root = _Branch.of([self._root, self._root.halve()])

    def remove(self, label_id: int) -> None:
        """Drop a node. Raises KeyError if it is not there."""
        self._root.take(self._places.pop(label_id))
        while isinstance(self._root, _Branch) and len(self._root.parts) == 1:
            self._root = self._root.parts[0]

    def fitting(self, wanted: Vector) -> Iterator[int]:
        """The label ids of the nodes that have all of this, in order. Of what may be negative more than 0 is
        wanted; where 0 is, it is not looked at.

        The order must not change while the iterator is in use.
        """
        return iter(()) if self._root.has_refused(wanted) else self._root.fitting(wanted)

    def most(self) -> Vector:
        """The exact maximum of all vectors, position by position; empty when there is no node."""
        self._root.tighten()
        return self._root.most


class _Block(ABC, Generic[Part]):
    """Parts side by side; `places[i]` is not above any place in `parts[i]`, and above all before it."""

    __slots__ = ("most", "parts", "places", "refused", "stale")

    def __init__(self, places: list[Place], parts: list[Part]) -> None:
        self.places = places
        self.parts = parts
        self.refused: list[Vector] = []
        """Requests of which it is certain that they fit on no node here."""
        self.most: Vector
        """An upper bound of all vectors, position by position."""
        self.stale: bool
        """Whether `most` may be above the maximum."""
        self._measure()

    @abstractmethod
    def put(self, place: Place, vector: Vector) -> None:
        """Take a node in, or what it has now. The caller halves the block when it has become too wide."""

    @abstractmethod
    def take(self, place: Place) -> None:
        """Drop the node that stands here. The caller joins the block to another when it has become narrow."""

    @abstractmethod
    def fitting(self, wanted: Vector) -> Iterator[int]:
        """As NodeOrder says. A search that finds nothing leaves the block knowing more."""

    @abstractmethod
    def tighten(self) -> None:
        """Make `most` exact."""

    def has_refused(self, wanted: Vector) -> bool:
        """Whether it was proved that no node here has all of this."""
        for shape in self.refused:  # noqa: SIM110 - asked very often, and `any` takes twice as long
            if all(map(le, shape, wanted)):
                return True
        return False

    def halve(self) -> Self:
        """Give the second half away, to be the next block."""
        middle = len(self.parts) // 2
        half = type(self)(self.places[middle:], self.parts[middle:])
        del self.places[middle:], self.parts[middle:]
        half.refused = self.refused.copy()
        self._measure()
        return half

    def in_pieces(self) -> list[Self]:
        """The same as blocks of three quarters of the width, so that the first moves split none."""
        size = WIDTH * 3 // 4
        return [
            type(self)(self.places[start : start + size], self.parts[start : start + size])
            for start in range(0, len(self.parts), size)
        ]

    def join(self, following: Self) -> None:
        """Take over all parts of the next block."""
        self.places += following.places
        self.parts += following.parts
        self.refused = [shape for shape in self.refused if following.has_refused(shape)]
        self._measure()

    def _admit(self, vector: Vector) -> None:
        """Give up what a vector that comes in disproves."""
        self.most = tuple(map(max, self.most, vector)) if self.most else vector
        if self.refused:
            self.refused = [shape for shape in self.refused if not all(map(le, shape, vector))]

    def _refuse(self, wanted: Vector) -> None:
        """Learn that no node here has all of this."""
        if all(map(le, wanted, self.most)):  # else `most` says as much
            kept = [shape for shape in self.refused if not all(map(le, wanted, shape))]
            self.refused = [*kept[1 - MAX_REFUSED :], wanted]

    def _measure(self) -> None:
        self.most = tuple(map(max, zip(*self._vectors(), strict=True)))
        self.stale = self._has_stale_parts()

    @abstractmethod
    def _vectors(self) -> list[Vector]: ...

    @abstractmethod
    def _has_stale_parts(self) -> bool: ...


class _Leaf(_Block[Vector]):
    """Nodes and what each of them has."""

    __slots__ = ()

    def put(self, place: Place, vector: Vector) -> None:
        at = bisect_left(self.places, place)
        if at < len(self.places) and self.places[at] == place:
            self.parts[at] = vector
            self.stale = True
        else:
            self.places.insert(at, place)
            self.parts.insert(at, vector)
        self._admit(vector)

    def take(self, place: Place) -> None:
        at = bisect_left(self.places, place)
        del self.places[at], self.parts[at]
        self.stale = True

    def fitting(self, wanted: Vector) -> Iterator[int]:
        vectors = self.parts
        found: Iterable[int] = range(len(vectors))
        for position, amount in enumerate(wanted):
            if amount:
                found = [at for at in found if vectors[at][position] >= amount]
        for at in found:
            yield self.places[at][2]
        if not found:
            self.tighten()
            self._refuse(wanted)

    def tighten(self) -> None:
        if self.stale:
            self._measure()

    def _vectors(self) -> list[Vector]:
        return self.parts

    def _has_stale_parts(self) -> bool:
        return False


class _Branch(_Block["_Leaf | _Branch"]):
    """Blocks side by side."""

    __slots__ = ()

    @classmethod
    def of(cls, blocks: "list[Any]") -> "_Branch":
        """A block of these blocks, which must be in order."""
        return cls([block.places[0] for block in blocks], blocks)

    def put(self, place: Place, vector: Vector) -> None:
        at = max(bisect_right(self.places, place) - 1, 0)
        part = self.parts[at]
        self.places[at] = min(self.places[at], place)
        part.put(place, vector)
        if len(part.parts) > WIDTH:
            self._halve_part(at)
        self._admit(vector)
        self.stale = self.stale or part.stale

    def take(self, place: Place) -> None:
        at = bisect_right(self.places, place) - 1
        part = self.parts[at]
        part.take(place)
        if len(part.parts) < WIDTH // 4 and len(self.parts) > 1:
            self._join_parts(max(at - 1, 0))
        self.stale = True

    def fitting(self, wanted: Vector) -> Iterator[int]:
        found = False
        parts = self.parts
        for position, amount in enumerate(wanted):
            if amount:
                parts = [part for part in parts if part.most[position] >= amount]
        for part in parts:
            if not part.has_refused(wanted):
                for label_id in part.fitting(wanted):
                    found = True
                    yield label_id
        if not found:
            if not parts and self.stale:  # what the parts have left does not bear out `most`
                self._measure()
            self._refuse(wanted)

    def tighten(self) -> None:
        if self.stale:
            for part in self.parts:
                part.tighten()
            self._measure()

    def _halve_part(self, at: int) -> None:
        half = self.parts[at].halve()
        self.places.insert(at + 1, half.places[0])
        self.parts.insert(at + 1, half)

    def _join_parts(self, at: int) -> None:
        joined: Any = self.parts[at]
        joined.join(self.parts.pop(at + 1))
        del self.places[at + 1]
        if len(joined.parts) > WIDTH:
            self._halve_part(at)

    def _vectors(self) -> list[Vector]:
        return [part.most for part in self.parts]

    def _has_stale_parts(self) -> bool:
        return any(part.stale for part in self.parts)
