"""Attributes: what a device says about itself, each a value of one kind.

    {"Kind": "nvidia-gpu", "memory": "30G", "driver": {"version": "1.2"}}

In JSON an attribute is a truth value, an integer, a text, or an object that says its kind. A text is read as
the first of these that it can be: a quantity ("30G"), a version with at least two points ("535.104.05"), a
measure ("40GBPS"), a string ("T4").
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from rm_service.domain.amounts import INT64_MAX, INT64_MIN
from rm_service.domain.exact_quantities import read_exact_quantity
from rm_service.domain.measures import Measure, MeasureError, read_measure
from rm_service.domain.quantities import QuantityError
from rm_service.domain.tags import value_fault
from rm_service.domain.versions import Version, VersionError, read_version

MAX_ATTRIBUTES = 32
MAX_KEY_LENGTH = 63
MAX_TEXT_LENGTH = 64
MAX_SLUG_LENGTH = 24

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./\-]*")


class Kind(StrEnum):
    """What a value is, and the name under which JSON says so. INT and QUANTITY are numbers alike."""

    BOOL = "bool"
    INT = "int"
    QUANTITY = "quantity"
    MEASURE = "measure"
    VERSION = "version"
    STRING = "string"


Exact = bool | int | Fraction | Measure | Version | str


@dataclass(frozen=True, slots=True)
class Value:
    """The value of an attribute. Values of one kind that mean the same are equal ("1G" and "1000M").

    `exact` is a bool, int, Fraction, Measure, Version or str, as `kind` says. `text` is what people read:
    quantities canonical, everything else as it was given.
    """

    kind: Kind
    exact: Exact
    text: str = field(compare=False)


Attributes = Mapping[str, Value]


class AttributeValueError(ValueError):
    """An attribute breaks a rule: the `field` (its path), the `position` in its text, the `reason`."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        self.field = path
        self.position = position
        self.reason = reason
        super().__init__(f"{path}, position {position}: {reason}")


def read_attributes(document: object, path: str) -> Attributes:
    """Read the attributes of a device from parsed JSON or YAML, which stands at `path` (for errors).

    Raises AttributeValueError for the first attribute that is wrong. Bounds: 32 attributes, keys of 63
    characters, texts of 64 without control characters, integers of 64 bits.
    """
    if not isinstance(document, Mapping):
        raise AttributeValueError(path, 0, "must be an object")
    if len(document) > MAX_ATTRIBUTES:
        raise AttributeValueError(path, 0, f"at most {MAX_ATTRIBUTES} attributes are allowed")
    attributes = {}
    for key, value in document.items():
        fault = attribute_key_fault(key)
        if fault:
            raise AttributeValueError(f"{path}.{_shown_key(key)}", 0, fault)
        attributes[key] = _read_value(value, f"{path}.{key}")
    return attributes


def write_attributes(attributes: Attributes) -> dict[str, object]:
    """JSON that reads back to equal attributes: bare values where that is clear, else with their kind."""
    return {key: _write_value(value) for key, value in attributes.items()}


def signature_of(attributes: Attributes) -> str:
    """A short name of this set of attributes: equal in meaning, equal in name.

    It is the attribute "Kind" in lower case with `-` for all but letters and digits (at most 24 characters,
    "device" without one), `-`, and 12 hex digits of a digest of all keys and values. Integers and quantities
    that are the same number are the same, so no class can tell apart what shares a signature.
    """
    meanings = {key: _meaning(value) for key, value in attributes.items()}
    document = json.dumps(meanings, sort_keys=True, separators=(",", ":"))
    return f"{_slug(attributes)}-{hashlib.sha256(document.encode()).hexdigest()[:12]}"


def attribute_key_fault(key: object) -> str | None:
    """What is wrong with the key of an attribute, or None. Keys compare exactly: `Kind` is not `kind`."""
    if not isinstance(key, str):
        return "the key is not a text"
    if len(key) > MAX_KEY_LENGTH:
        return f"the key is longer than {MAX_KEY_LENGTH} characters"
    if not _KEY.fullmatch(key):
        return "the key needs letters, digits, '_', '.', '-' or '/', and a letter or digit first"
    return None


def text_fault(text: str) -> str | None:
    """What is wrong with the text of a value, or None."""
    if len(text) > MAX_TEXT_LENGTH:
        return f"is longer than {MAX_TEXT_LENGTH} characters"
    return value_fault(text)


def _read_value(document: object, path: str) -> Value:
    match document:
        case bool():
            return _bool(document, path)
        case int():
            return _int(document, path)
        case str():
            return _guess(_check_text(document, path))
        case Mapping():
            return _read_typed(document, path)
    hint = ' (write a number with a fraction as a text: "1.5")' if isinstance(document, float) else ""
    raise AttributeValueError(
        path, 0, f"must be a text, an integer, true, false or an object that says its kind{hint}"
    )


def _read_typed(document: Mapping[object, object], path: str) -> Value:
    kinds = ", ".join(Kind)
    if len(document) != 1:
        raise AttributeValueError(path, 0, f"an object names one kind of: {kinds}")
    (kind, value), *_ = document.items()
    if kind not in tuple(Kind):
        raise AttributeValueError(path, 0, f"unknown kind, must be one of: {kinds}")
    read = _READERS[Kind(str(kind))]
    return read(value, f"{path}.{kind}")


@lru_cache(maxsize=4096)  # devices are many and much alike
def _guess(text: str) -> Value:
    readers = [_quantity, _version] if text.count(".") >= 2 else [_quantity]
    for read in (*readers, _measure):
        try:
            return read(text, "")
        except AttributeValueError:
            continue
    return Value(Kind.STRING, text, text)


def _bool(document: object, path: str) -> Value:
    if not isinstance(document, bool):
        raise AttributeValueError(path, 0, "must be true or false")
    return Value(Kind.BOOL, document, "true" if document else "false")


def _int(document: object, path: str) -> Value:
    if not isinstance(document, int) or isinstance(document, bool):
        raise AttributeValueError(path, 0, "must be an integer")
    if not INT64_MIN <= document <= INT64_MAX:
        raise AttributeValueError(path, 0, "must be an integer of 64 bits")
    return Value(Kind.INT, document, str(document))


def _quantity(document: object, path: str) -> Value:
    try:
        quantity = read_exact_quantity(_check_text(document, path))
    except QuantityError as error:
        raise AttributeValueError(path, error.position, error.reason) from None
    return Value(Kind.QUANTITY, quantity.value, str(quantity))


def _measure(document: object, path: str) -> Value:
    text = _check_text(document, path)
    try:
        return Value(Kind.MEASURE, read_measure(text), text)
    except MeasureError as error:
        raise AttributeValueError(path, error.position, error.reason) from None


def _version(document: object, path: str) -> Value:
    text = _check_text(document, path)
    try:
        return Value(Kind.VERSION, read_version(text), text)
    except VersionError as error:
        raise AttributeValueError(path, error.position, error.reason) from None


def _string(document: object, path: str) -> Value:
    text = _check_text(document, path)
    return Value(Kind.STRING, text, text)


_READERS: dict[Kind, Callable[[object, str], Value]] = {
    Kind.BOOL: _bool,
    Kind.INT: _int,
    Kind.QUANTITY: _quantity,
    Kind.MEASURE: _measure,
    Kind.VERSION: _version,
    Kind.STRING: _string,
}


def _check_text(document: object, path: str) -> str:
    if not isinstance(document, str):
        raise AttributeValueError(path, 0, "must be a text")
    fault = text_fault(document)
    if fault:
        raise AttributeValueError(path, 0, fault)
    return document


def _write_value(value: Value) -> object:
    if isinstance(value.exact, bool | int):
        return value.exact
    bare = _guess(value.text)
    return value.text if bare == value else {str(value.kind): value.text}


def _meaning(value: Value) -> list[str]:
    match value.kind:
        case Kind.INT | Kind.QUANTITY:
            return ["number", str(value.exact)]
        case Kind.BOOL:
            return ["bool", value.text]
        case _:
            return [str(value.kind), str(value.exact)]


def _shown_key(key: object) -> str:
    """The key, whatever it is, as a part of a path."""
    name = key if isinstance(key, str) else type(key).__name__
    return name[:MAX_KEY_LENGTH].encode(errors="backslashreplace").decode()


def _slug(attributes: Attributes) -> str:
    kind = attributes.get("Kind")
    words = re.findall(r"[a-z0-9]+", kind.text.lower()) if kind else []
    return "-".join(words)[:MAX_SLUG_LENGTH].rstrip("-") or "device"
