"""Hadoop's JSON, read as it is meant.

Several versions write the same thing in several ways: one object where a list is meant, a key twice in one
object, null for an empty list, numbers as texts. Nothing here goes through a float.
"""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from external_providers.base import AbsurdError, MalformedError

Object = Mapping[str, Any]

LARGEST = 2**62
UNLIMITED = -1
MAX_NUMBER_LENGTH = 64


def read(text: bytes) -> Object:
    """The object that the text is. Raises MalformedError with what is wrong and where, and nothing of it."""
    try:
        document = json.loads(
            text, object_pairs_hook=_merged, parse_float=Decimal, parse_constant=lambda _: None
        )
    except (ValueError, ArithmeticError, RecursionError) as error:
        # What led to it holds the text.
        raise MalformedError(f"the answer is not JSON: {_kind(error)}") from None
    if not isinstance(document, dict):
        raise MalformedError("the answer is JSON, and no object")
    return document


def _kind(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"it cannot be read from line {error.lineno}, column {error.colno} on"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is no UTF-8"
    return "it is nested too deeply" if isinstance(error, RecursionError) else "it has a number of no sense"


def member(parent: Object, name: str) -> Object:
    """The object under that name; an empty one if there is none."""
    found = last(parent.get(name))
    return found if isinstance(found, dict) else {}


def members(parent: Object, name: str) -> Iterator[Object]:
    """The objects under that name: those of a list, a single one, or none."""
    found = parent.get(name)
    for item in found if isinstance(found, list) else [found]:
        if isinstance(item, dict):
            yield item


def text(parent: Object, name: str) -> str:
    """The text under that name; empty if there is none."""
    found = last(parent.get(name))
    return found if isinstance(found, str) else ""


def count(parent: Object, name: str, where: str, absurd: list[str] | None = None) -> int | None:
    """The whole number under that name, None if there is none.

    What is no number raises MalformedError, which says `where`. One that is no amount - a fraction, less than
    0, more than 2^62 - is none: that is added to `absurd`, or raises AbsurdError without such a list.
    """
    exact = number(parent, name, where)
    fault = None if exact is None else _fault(exact)
    if fault is None:
        return None if exact is None else int(exact)
    if absurd is None:
        raise AbsurdError(f"{where}: {name} {fault}")
    absurd.append(f"{name} {fault}")
    return None


def limit(parent: Object, name: str, where: str, absurd: list[str]) -> int | None:
    """As `count`, of the most that there may be: -1 is how Hadoop writes that it has no limit."""
    return None if number(parent, name, where) == UNLIMITED else count(parent, name, where, absurd)


def number(parent: Object, name: str, where: str) -> Decimal | None:
    """The number under that name, exactly; None if there is none. Raises MalformedError."""
    found = last(parent.get(name))
    if found is None or (isinstance(found, str) and found in {"", "NaN"}):
        return None
    exact = _decimal(found)
    if exact is None:
        raise MalformedError(f"{where}: {name} is no number")
    return exact


def _fault(exact: Decimal) -> str | None:
    if exact < 0:
        return "is below 0"
    if exact > LARGEST:
        return "is more than 2^62"
    return None if exact == exact.to_integral_value() else "is no whole number"


def last(found: object) -> object:
    """A value that is not meant to be a list: of a key that was written twice, the later one."""
    while isinstance(found, list):
        found = found[-1] if found else None
    return found


def _decimal(found: object) -> Decimal | None:
    if isinstance(found, bool) or not isinstance(found, int | str | Decimal):
        return None
    if isinstance(found, str) and len(found) > MAX_NUMBER_LENGTH:
        return None
    try:
        exact = Decimal(found)
    except InvalidOperation:
        return None
    if not exact.is_finite():
        return None
    if abs(exact.adjusted()) > MAX_NUMBER_LENGTH:
        # An exponent of a million is no amount of anything, and would take a million digits to compare.
        shortened = MAX_NUMBER_LENGTH if exact.adjusted() > 0 else -MAX_NUMBER_LENGTH
        return exact and Decimal((exact.is_signed(), (1,), shortened))
    return exact


def _merged(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a key that is there twice becomes one list of all its values."""
    whole = dict(pairs)
    if len(whole) == len(pairs):
        return whole
    merged: dict[str, list[Any]] = {}
    several: set[str] = set()
    for name, value in pairs:
        if name in merged:
            several.add(name)
        merged.setdefault(name, []).extend(value if isinstance(value, list) else [value])
    return {name: values if name in several else whole[name] for name, values in merged.items()}
