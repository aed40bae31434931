"""One watch: what it is about, what it was told, and the lines that tell it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from rm_service.facades.kubernetes import documents
from rm_service.facades.kubernetes.media_types import JSON, Form
from rm_service.facades.kubernetes.parameters import Chosen
from rm_service.hosting.streams import Stream
from rm_service.services.resource_classes import ClassStanding

HEADERS = (
    ("Content-Type", JSON),
    ("Cache-Control", "no-store"),
    ("X-Accel-Buffering", "no"),  # a proxy must not collect what is meant to be seen at once
    ("X-Content-Type-Options", "nosniff"),
)
BUFFER_LIMIT = 32 * 2**20
"""Bytes that may wait for a slow reader: more than a list of the largest number of classes has."""

ADDED, MODIFIED, DELETED, BOOKMARK = "ADDED", "MODIFIED", "DELETED", "BOOKMARK"


class Change(NamedTuple):
    """What happened to a class, and how it stands since; a removed one as it last stood."""

    kind: str
    standing: ClassStanding


class Lines:
    """Changes as lines of JSON, each written once for all watches of one form."""

    def __init__(self) -> None:
        self._written: dict[tuple[Form, str, str, int], bytes] = {}

    def of(self, form: Form, changes: Sequence[Change], before: int, version: int) -> bytes:
        """Changes that belong together.

        Who has read only some of them must not go on behind all of them: only the last one has their
        version, those before it have the one `before` them.
        """
        last = len(changes) - 1
        return b"".join(
            [
                self._line(form, change, version if number == last else before)
                for number, change in enumerate(changes)
            ]
        )

    def _line(self, form: Form, change: Change, version: int) -> bytes:
        known = change.standing.resource_class
        key = (form, change.kind, known.uid, version)
        found = self._written.get(key)
        if found is None:
            found = self._written[key] = line(change.kind, documents.one(form, change.standing, version))
        return found


def line(kind: str, document: object) -> bytes:
    """One event of a watch."""
    return orjson.dumps({"type": kind, "object": document}, option=orjson.OPT_APPEND_NEWLINE)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a watch is to tell. `after`: behind which version; None: at first everything there is."""

    form: Form
    chosen: Chosen
    after: int | None = None
    bookmarks: bool = False
    initial_end: bool = False
    """Whether it is told when everything that is there at first was told."""
    seconds: int | None = None
    """How long it lasts; None: until somebody ends it."""

    def shown(self, changes: Iterable[Change]) -> list[Change]:
        return [change for change in changes if self.chosen.shows(change.standing.resource_class)]


class Watcher:
    """A watch that is open. `deadline` is in monotonic seconds."""

    def __init__(
        self,
        wanted: Wanted,
        *,
        deadline: float | None,
        reached: Callable[[], int],
        on_close: Callable[["Watcher"], None],
    ) -> None:
        self.wanted = wanted
        self.deadline = deadline
        self.begun = False  # whether it was told what stood at its beginning
        self._reached = reached
        self.stream = Stream(
            HEADERS,
            keep_alive=self._keep_alive if wanted.bookmarks else b"",
            buffer_limit=BUFFER_LIMIT,
            on_close=lambda: on_close(self),
        )

    def tell(self, lines: bytes) -> None:
        if lines:
            self.stream.push(lines)

    def end(self) -> None:
        """The time is over; a client that comes back need not look through what it was not told of."""
        self.tell(self._keep_alive() if self.wanted.bookmarks else b"")
        self.stream.close()

    def bookmark(self, version: int, *, end_of_initial: bool = False) -> bytes:
        document = documents.bookmark(self.wanted.form, version, end_of_initial=end_of_initial)
        return line(BOOKMARK, document)

    def _keep_alive(self) -> bytes:
        """How far it has come; nothing before it has begun."""
        return self.bookmark(self._reached()) if self.begun else b""
