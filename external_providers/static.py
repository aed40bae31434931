"""The provider of what stands in a file: places and applications that somebody, or a script, writes down.

For managers that nothing can ask, for licences and shared devices, and for trying things out. The file is
read anew when it has changed. docs/external-providers.md describes it.
"""

import json
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, ClassVar, Self

import yaml
from marshmallow import Schema, ValidationError, fields, validate

from external_providers.base import (
    ExternalApplication,
    ExternalResourceProvider,
    ExternalResourceProviderParser,
    ExternalResourceRequest,
    Health,
    Identity,
    MalformedError,
    Place,
    UnreachableError,
    health_by,
)
from rm_service.domain.amounts import INT64_MAX, Amounts
from rm_service.domain.quantities import QuantityError, parse_quantity
from rm_service.domain.tags import key_fault, value_fault

IDENTITY = Identity("static", "externalCluster", "externalPlace", frozenset())
MAX_BYTES = 1024 * 1024
"""The longest file that is read: some 10,000 places."""
MAX_REMEMBERED = 256

_PLACE = ("name", "total", "used", "guaranteed", "pending", "open", "details")
_APPLICATION = ("id", "place", "allocated", "state", "user", "name", "kind", "tags")


def _check_path(path: str) -> None:
    if not path.startswith("/") or not path.isprintable():
        raise ValidationError("Must be an absolute path.")


def _check_tag(value: str) -> None:
    if fault := value_fault(value):
        raise ValidationError(f"Cannot be the value of a tag: {fault}.")


class StaticSchema(Schema):
    """The configuration of a static provider."""

    path = fields.String(required=True, validate=[validate.Length(max=4096), _check_path])
    cluster = fields.String(validate=[validate.Length(min=1), _check_tag])


@dataclass(frozen=True, slots=True)
class _Contents:
    """A file as it was when it was read."""

    stamp: tuple[int, ...]
    places: tuple[Place, ...] = ()
    applications: tuple[ExternalApplication, ...] = ()
    fault: str = ""
    """What is wrong with it, so that a file that stays wrong is not read again and again."""


class StaticProvider(ExternalResourceProvider):
    """Places and applications from a YAML or JSON file.

    No value of the file is ever repeated in an error: a path may lead to a file that is not meant for us.
    """

    identity: ClassVar[Identity] = IDENTITY
    parser: ClassVar[ExternalResourceProviderParser] = ExternalResourceProviderParser(IDENTITY, StaticSchema)

    def __init__(self) -> None:
        self._read: dict[str, _Contents] = {}

    def applications(self, request: ExternalResourceRequest) -> Sequence[ExternalApplication]:
        return self._contents(request).applications

    def places(self, request: ExternalResourceRequest) -> Sequence[Place]:
        return self._contents(request).places

    def health(self, request: ExternalResourceRequest) -> Health:
        path = request.provider.params["path"]
        return health_by(lambda: f"{path}: {len(self._contents(request).places)} places")

    def _contents(self, request: ExternalResourceRequest) -> _Contents:
        path = request.provider.params["path"]
        try:
            with _open(path) as file:
                stamp = _stamp(file)
                contents = self._read.get(path)
                if contents is None or contents.stamp != stamp:
                    contents = _contents(path, stamp, file.read(MAX_BYTES + 1))
                    self._remember(path, contents)
        except OSError as error:
            raise UnreachableError(f"{path} cannot be read: {error.strerror}") from None
        if contents.fault:
            raise MalformedError(f"{path}: {contents.fault}")
        return contents

    def _remember(self, path: str, contents: _Contents) -> None:
        """Two threads that read the same file at a time only do so once too often."""
        if len(self._read) >= MAX_REMEMBERED:
            self._read = {}
        self._read[path] = contents


def _open(path: str) -> IO[bytes]:
    """Open it without waiting: opening a pipe waits for somebody to write."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnreachableError(f"{path} is no file")
    return os.fdopen(descriptor, "rb")


def _stamp(file: IO[bytes]) -> tuple[int, ...]:
    """What differs once it was written again, or another file was moved to its name."""
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _contents(path: str, stamp: tuple[int, ...], data: bytes) -> _Contents:
    try:
        document = _Fields(_parsed(path, data), "the file").only(("places", "applications"))
        places = [_place(each) for each in document.items("places", _PLACE, "name")]
        applications = [_application(each) for each in document.items("applications", _APPLICATION, "id")]
        _check_homes(places, applications)
    except _FaultError as error:
        return _Contents(stamp, fault=str(error))
    return _Contents(stamp, tuple(places), tuple(applications))


def _check_homes(places: Iterable[Place], applications: Iterable[ExternalApplication]) -> None:
    names = {place.name for place in places}
    for application in applications:
        if application.place not in names:
            raise _FaultError(f"applications.{application.id}.place", "is none of the places")


# ---- the fields of a document ------------------------------------------------------------------------------


class _FaultError(ValueError):
    """A field that cannot be read, by its path."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)


@dataclass(slots=True)
class _Fields:
    """An object of the file, whose fields are read one by one; `path` leads to it."""

    document: Any
    path: str
    _inside: str = field(init=False)

    def __post_init__(self) -> None:
        self._inside = "" if self.path == "the file" else f"{self.path}."
        if not isinstance(self.document, dict):
            raise _FaultError(self.path, "must be an object")

    def only(self, allowed: tuple[str, ...]) -> Self:
        for key in self.document:
            if key not in allowed:
                raise _FaultError(
                    f"{self._inside}{_shown(key)}", f"is unknown; there are {', '.join(allowed)}"
                )
        return self

    def items(self, name: str, allowed: tuple[str, ...], key: str) -> list["_Fields"]:
        """A list of objects, each told from the others by its `key`, which then names it in errors."""
        found = self.document.get(name, [])
        if not isinstance(found, list):
            raise _FaultError(name, "must be a list")
        objects: dict[str, _Fields] = {}
        for at, each in enumerate(found):
            word = _Fields(each, f"{name}[{at}]").text(key, required=True)
            if word in objects:
                raise _FaultError(f"{name}[{at}].{key}", "is there twice")
            objects[word] = _Fields(each, f"{name}.{word}").only(allowed)
        return list(objects.values())

    def text(self, name: str, *, required: bool = False) -> str:
        found = self.document.get(name, "")
        fault = value_fault(found) or ("is missing" if required and not found else None)
        if fault:
            raise _FaultError(f"{self._inside}{name}", fault)
        return str(found)

    def texts(self, name: str) -> frozenset[str]:
        found = self.document.get(name, [])
        if not isinstance(found, list) or any(value_fault(each) for each in found):
            raise _FaultError(f"{self._inside}{name}", "must be a list of texts")
        return frozenset(found)

    def flag(self, name: str, *, default: bool) -> bool:
        found = self.document.get(name, default)
        if not isinstance(found, bool):
            raise _FaultError(f"{self._inside}{name}", "must be true or false")
        return found

    def details(self, name: str) -> dict[str, object]:
        found = self.document.get(name, {})
        if not isinstance(found, dict) or not all(
            isinstance(key, str) and _is_plain(value) for key, value in found.items()
        ):
            raise _FaultError(f"{self._inside}{name}", "must be an object of texts and whole numbers")
        return found

    def amounts(self, name: str, *, required: bool = False) -> Amounts:
        if required and name not in self.document:
            raise _FaultError(f"{self._inside}{name}", "is missing")
        found = self.document.get(name, {})
        if not isinstance(found, dict):
            raise _FaultError(f"{self._inside}{name}", "must be an object of amounts")
        return {
            self._dimension(name, each): self._amount(name, each, amount) for each, amount in found.items()
        }

    def _dimension(self, name: str, dimension: object) -> str:
        if fault := key_fault(dimension):
            raise _FaultError(f"{self._inside}{name}", f"{_shown(dimension)!r} is no dimension: {fault}")
        return str(dimension)

    def _amount(self, name: str, dimension: str, amount: object) -> int:
        if type(amount) is int and not 0 <= amount <= INT64_MAX:
            return amount  # no place can have that: it alone is then left out
        try:
            return parse_quantity(amount, dimension)
        except QuantityError as error:
            # A reason may quote the value.
            reason = error.reason.partition("'")[0].strip()
            raise _FaultError(f"{self._inside}{name}.{dimension}", reason) from None


def _is_plain(value: object) -> bool:
    """Whether it can be shown as it is wherever JSON is read."""
    return abs(value) <= INT64_MAX if isinstance(value, int) else value_fault(value) is None


def _place(item: _Fields) -> Place:
    return Place(
        name=item.text("name"),
        total=item.amounts("total", required=True),
        used=item.amounts("used"),
        guaranteed=item.amounts("guaranteed"),
        pending=item.amounts("pending"),
        open=item.flag("open", default=True),
        details=item.details("details"),
    )


def _application(item: _Fields) -> ExternalApplication:
    return ExternalApplication(
        id=item.text("id"),
        place=item.text("place", required=True),
        allocated=item.amounts("allocated"),
        state=item.text("state"),
        user=item.text("user"),
        name=item.text("name"),
        kind=item.text("kind"),
        tags=item.texts("tags"),
    )


# ---- YAML and JSON -----------------------------------------------------------------------------------------


def _parsed(path: str, data: bytes) -> object:
    read: Callable[[str], object] = _json if Path(path).suffix == ".json" else _yaml
    if len(data) > MAX_BYTES:
        raise _FaultError("", f"is longer than {MAX_BYTES} bytes")
    try:
        return read(data.decode())
    except UnicodeDecodeError:
        raise _FaultError("", "is not UTF-8") from None
    except RecursionError:
        raise _FaultError("", "is nested too deeply") from None


def _json(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except _FaultError:
        raise
    except json.JSONDecodeError as error:
        raise _FaultError("", f"is no JSON at line {error.lineno}, column {error.colno}") from None
    except ValueError:
        raise _FaultError("", "holds a number with too many digits") from None


def _yaml(text: str) -> object:
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise _FaultError("", f"is no YAML{where}") from None
    except yaml.YAMLError:
        raise _FaultError("", "is no YAML") from None
    except _FaultError:
        raise
    except ValueError:
        raise _FaultError("", "holds a value that YAML cannot read") from None


class _Loader(yaml.SafeLoader):
    """Refuses what YAML would take in silence, a key that is there twice, and merges, which can grow without
    end.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        if any(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value):
            raise _FaultError("", "has a merge (<<), which is not read")
        _check_once(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        return super().construct_mapping(node, deep)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    _check_once(key for key, _ in pairs)
    return dict(pairs)


def _check_once(keys: Iterable[str]) -> None:
    for key, count in Counter(keys).items():
        if count > 1:
            raise _FaultError("", f"the key {_shown(key)!r} is there twice in one object")


def _shown(key: object) -> str:
    return str(key)[:64]
