"""Hadoop's JSON, read as it is meant.

Several versions write the same thing in several ways: one object where a list is meant, a key twice in one
object, null for an empty list, numbers as texts. Nothing here goes through a float.
"""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from external_providers.base import MalformedError

Object = Mapping[str, Any]

LARGEST = 2**62
MAX_NUMBER_LENGTH = 64


def read(text: bytes, secrets: tuple[str, ...] = ()) -> Object:
    """The object that the text is. Raises MalformedError with the beginning of any other text."""
    try:
        document = json.loads(
            text, object_pairs_hook=_merged, parse_float=Decimal, parse_constant=lambda _: None
        )
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise MalformedError(f"the answer is not JSON; it begins {excerpt(text, secrets)}") from error
    if not isinstance(document, dict):
        raise MalformedError(f"the answer is no JSON object; it begins {excerpt(text, secrets)}")
    return document


def excerpt(text: bytes, secrets: tuple[str, ...] = ()) -> str:
    """The beginning of an answer as it can be shown: one line, plain characters, none of the secrets."""
    shown = text[:2000].decode("utf-8", "replace")
    for secret in secrets:
        shown = shown.replace(secret, "***") if secret else shown
    shown = " ".join("".join(char if " " <= char <= "~" else " " for char in shown).split())
    return repr(shown[:80])


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


def count(parent: Object, name: str, where: str) -> int | None:
    """The whole number under that name, None if there is none.

    Raises MalformedError, which says `where`, for anything else, for less than 0 and more than 2^62.
    """
    exact = number(parent, name, where)
    if exact is None:
        return None
    if not 0 <= exact <= LARGEST or exact != exact.to_integral_value():
        raise MalformedError(f"{where}: {name} is {_shown(parent[name])}, which is no amount")
    return int(exact)


def number(parent: Object, name: str, where: str) -> Decimal | None:
    """The number under that name, exactly; None if there is none. Raises MalformedError."""
    found = last(parent.get(name))
    if found is None or (isinstance(found, str) and found in {"", "NaN"}):
        return None
    exact = _decimal(found)
    if exact is None:
        raise MalformedError(f"{where}: {name} is {_shown(found)}, which is no number")
    return exact


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
    # An exponent of a million is no number of anything, and would take a million digits to compare.
    return exact if exact.is_finite() and abs(exact.adjusted()) <= MAX_NUMBER_LENGTH else None


def _shown(found: object) -> str:
    shown = str(found) if isinstance(found, str | Decimal) else json.dumps(found, default=str)[:200]
    return excerpt(shown.encode("utf-8", "replace"))


def _merged(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a key that is there twice becomes one list of all its values."""
    whole = dict(pairs)
    if len(whole) == len(pairs):
        return whole
    merged: dict[str, list[Any]] = {}
    for name, value in pairs:
        merged.setdefault(name, []).extend(value if isinstance(value, list) else [value])
    times = [name for name, _ in pairs]
    return {name: values if times.count(name) > 1 else whole[name] for name, values in merged.items()}
