"""The fields of a resource's JSON object: read one by one under any of their names, and nothing left over."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from rm_service.domain.amounts import INT64_MAX
from rm_service.domain.linkis_sizes import parse_linkis_size
from rm_service.domain.quantities import QuantityError, parse_quantity
from rm_service.domain.tags import value_fault

MAX_PATH_LENGTH = 256

_T = TypeVar("_T")


class ShapeError(ValueError):
    """A document is no resource: `path` names the field ("yarnResource.queueMemory"; empty: the whole)."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path[:MAX_PATH_LENGTH]
        self.reason = reason
        super().__init__(f"{self.path}: {reason}" if path else reason)


def joined(path: str, name: str) -> str:
    """The path of a field inside an object at `path`."""
    return f"{path}.{name}" if path else name


class Fields:
    """One object of a typed shape. Each reader takes the names of one field: stored, record, older ones.

    A number under several names must be the same under each: Linkis writes `instances` and `instance`.
    Every reader raises ShapeError naming the field.
    """

    def __init__(self, document: Mapping[str, object], path: str) -> None:
        self._document = document
        self._path = path
        self._known: set[str] = set()

    def has(self, name: str) -> bool:
        return name in self._document

    def size(self, *names: str) -> int:
        """Bytes: an integer or a Linkis size text."""
        return self._number(names, _bytes)

    def cores(self, *names: str) -> int:
        """Whole cores, at most as many as 64 bits of milli-cores hold."""
        return self._number(names, _whole_cores)

    def milli_cores(self, *names: str) -> int:
        """An integer of milli-cores, or a quantity text of cores."""
        return self._number(names, lambda value: parse_quantity(value, "vcore"))

    def count(self, *names: str) -> int:
        """A number of pieces."""
        return self._number(names, lambda value: parse_quantity(value, "instances"))

    def text(self, name: str) -> str:
        """A text that can be the value of a tag; empty if it is missing or null."""
        self._known.add(name)
        value = self._document.get(name)
        if value is None:
            return ""
        fault = value_fault(value)
        if fault:
            raise ShapeError(joined(self._path, name), fault)
        return str(value)

    def part(self, read: Callable[["Fields"], _T], *names: str) -> _T:
        """What `read` makes of the object under one of these names."""
        path, document = self.part_document(*names)
        return read_whole(document, path, read)

    def part_document(self, *names: str) -> tuple[str, Mapping[str, object]]:
        """The path and the object under one of these names."""
        self._known.update(names)
        present = [name for name in names if name in self._document]
        if not present:
            raise ShapeError(joined(self._path, names[0]), "is missing")
        if len(present) > 1:
            raise ShapeError(joined(self._path, present[1]), f"stands beside {present[0]}, its other name")
        path = joined(self._path, present[0])
        document = self._document[present[0]]
        if not isinstance(document, Mapping):
            raise ShapeError(path, "must be an object")
        return path, document

    def ignore(self, name: str) -> None:
        """Let a field stand without reading it."""
        self._known.add(name)

    def refuse_others(self) -> None:
        """Raise ShapeError if a field is there that was never asked for."""
        for name in self._document:
            if name not in self._known:
                known = ", ".join(sorted(self._known))
                raise ShapeError(joined(self._path, str(name)), f"is unknown here; known: {known}")

    def _number(self, names: tuple[str, ...], read: Callable[[object], int]) -> int:
        self._known.update(names)
        present = [name for name in names if self._document.get(name) is not None]
        if not present:
            raise ShapeError(joined(self._path, names[0]), "is missing")
        numbers = [self._read_number(name, read) for name in present]
        for name, number in zip(present, numbers, strict=True):
            if number != numbers[0]:
                reason = f"is {number}, but {present[0]}, its other name, is {numbers[0]}"
                raise ShapeError(joined(self._path, name), reason)
        return numbers[0]

    def _read_number(self, name: str, read: Callable[[object], int]) -> int:
        try:
            return read(self._document[name])
        except QuantityError as error:
            raise ShapeError(joined(self._path, name), str(error)) from error


def read_whole(document: Mapping[str, object], path: str, read: Callable[[Fields], _T]) -> _T:
    """What `read` makes of the object at `path`; raises ShapeError for a field that it leaves unread."""
    fields = Fields(document, path)
    whole = read(fields)
    fields.refuse_others()
    return whole


def _bytes(value: object) -> int:
    """A text that ends in "i" ("8Gi") is no Linkis size and can only be a quantity."""
    if isinstance(value, str) and not value.endswith("i"):
        return parse_linkis_size(value)
    return parse_quantity(value, "memory")


def _whole_cores(value: object) -> int:
    cores = parse_quantity(value, "cores")
    if cores > INT64_MAX // 1000:
        raise QuantityError(str(value), 0, "is more than 2^63-1 milli-cores")
    return cores
