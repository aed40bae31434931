"""Pages by key: a list is read on from the last item seen, never from a count of items."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import orjson

T = TypeVar("T")
Key = tuple[int | str, ...]

MAX_SCANNED = 10_000
"""How many rows a page looks at when few of them match: it then ends short, with a cursor to go on from."""

_CHUNK = 2_000
_VERSION = 1
_MAX_CURSOR = 2048
"""A name of 256 characters of four bytes each, in base64, and more."""


class CursorError(ValueError):
    """A cursor was not made by this list, or by a version that is gone: start again without one."""

    def __init__(self, cursor: str) -> None:
        self.cursor = cursor
        super().__init__("the cursor is not one of this list")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items in their order. `next_cursor` is None at the end of the list.

    A page may be short, even empty, and still have a next one: what matches was looked for in a bounded
    number of rows.
    """

    items: list[T]
    next_cursor: str | None


def write_cursor(listing: str, key: Key) -> str:
    """An opaque text for the place behind `key` in the list of this name."""
    return urlsafe_b64encode(orjson.dumps([_VERSION, listing, *key])).decode().rstrip("=")


def read_cursor(listing: str, cursor: str, *types: type) -> Key:
    """The key in a cursor of this list, its parts of these types. Raises CursorError for anything else."""
    try:
        if len(cursor) > _MAX_CURSOR:
            raise CursorError(cursor)
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        parts = orjson.loads(urlsafe_b64decode(padded))
    except (UnicodeEncodeError, binascii.Error, orjson.JSONDecodeError) as error:
        raise CursorError(cursor) from error
    if not isinstance(parts, list) or parts[:2] != [_VERSION, listing]:
        raise CursorError(cursor)
    key = tuple(parts[2:])
    if [type(part) for part in key] != list(types) or any(_too_big(part) for part in key):
        raise CursorError(cursor)
    return key


def gather(
    read: Callable[[Key | None, int], Sequence[T]],
    key_of: Callable[[T], Key],
    limit: int,
    after: Key | None,
    matches: Callable[[T], bool] | None = None,
) -> tuple[list[T], Key | None]:
    """Up to `limit` rows that match, and the key to go on from (None: there are no more).

    `read(after, count)` gives the next `count` rows behind a key, in order. Without `matches` every row does.
    """
    count = limit + 1 if matches is None else max(limit + 1, _CHUNK)
    found: list[T] = []
    scanned = 0
    while True:
        rows = read(after, count)
        for row in rows:
            if matches is None or matches(row):
                if len(found) == limit:
                    return found, key_of(found[-1])
                found.append(row)
        if len(rows) < count:
            return found, None
        after = key_of(rows[-1])
        scanned += len(rows)
        if scanned >= MAX_SCANNED:
            return found, after


def _too_big(part: object) -> bool:
    return isinstance(part, int) and not -(2**63) <= part < 2**63
