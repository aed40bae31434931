"""The text of a body, JSON or YAML, into a document; fields that stand twice are noted.

YAML is read without aliases and tags, so that a small text stays a small document.
"""

import json
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from rm_service.facades.kubernetes.media_types import JSON, YAML, media_type_of
from rm_service.facades.kubernetes.statuses import StatusError, bad_request, unsupported_media_type

MAX_YAML_BYTES = 256 * 2**10
"""YAML takes some hundred times as long to read as JSON."""
MAX_YAML_NESTING = 64
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Text:
    """A document as it was sent. The last of two fields of one name counts."""

    document: Any
    doubles: list[str] = field(default_factory=list)
    """Names of fields that stand twice in one object."""


def read_text(content_type: str, body: bytes) -> Text:
    """Read a body of this media type; no media type is JSON. Raises StatusError (400, 415)."""
    media_type = media_type_of(content_type)
    if media_type in {"", JSON}:
        return read_json(body)
    if media_type == YAML:
        return _read_yaml(body)
    raise unsupported_media_type((JSON, YAML))


def read_json(body: bytes) -> Text:
    """Raises StatusError (400) for anything but JSON as RFC 8259 has it."""
    doubles: list[str] = []

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        document = dict(pairs)
        if len(document) < len(pairs):
            counts = Counter([name for name, _ in pairs])
            doubles.extend([name for name, count in counts.items() if count > 1])
        return document

    try:
        document = json.loads(body.decode(), object_pairs_hook=build, parse_constant=_no_number)
    except RecursionError:
        raise _unreadable("it is nested too deeply") from None
    except ValueError as error:
        raise _unreadable(str(error)) from error
    return Text(document, doubles)


def _read_yaml(body: bytes) -> Text:
    if len(body) > MAX_YAML_BYTES:
        raise _unreadable(f"YAML of more than {MAX_YAML_BYTES} bytes is not read; send {JSON}")
    try:
        text = body.decode()
        check = _YamlCheck()
        for event in yaml.parse(text, Loader=_LOADER):
            check.take(event)
        return Text(yaml.load(text, Loader=_LOADER), check.doubles)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ValueError) as error:
        raise _unreadable(" ".join(str(error).split())) from error


class _YamlCheck:
    """Looks at a text's events before anything is built of it."""

    def __init__(self) -> None:
        self.doubles: list[str] = []
        self._documents = 0
        self._open: list[_Open] = []

    def take(self, event: Event) -> None:
        if isinstance(event, DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise _unreadable("it holds more than one document")
        elif isinstance(event, MappingEndEvent | SequenceEndEvent):
            self._open.pop()
        elif isinstance(event, NodeEvent):
            self._take_node(event)

    def _take_node(self, event: NodeEvent) -> None:
        if isinstance(event, AliasEvent) or getattr(event, "tag", None) is not None:
            line = "" if event.start_mark is None else f"line {event.start_mark.line + 1}: "
            raise _unreadable(f"{line}aliases and tags are not read")
        if self._open:
            self._note_key(self._open[-1], event)
        if isinstance(event, MappingStartEvent | SequenceStartEvent):
            if len(self._open) == MAX_YAML_NESTING:
                raise _unreadable("it is nested too deeply")
            self._open.append(_Open(set() if isinstance(event, MappingStartEvent) else None))

    def _note_key(self, inside: "_Open", event: NodeEvent) -> None:
        if inside.names is None:
            return
        if inside.key_is_next:
            name = event.value if isinstance(event, ScalarEvent) else None
            if name in inside.names:
                self.doubles.append(str(name))
            inside.names.add(name)
        inside.key_is_next = not inside.key_is_next


@dataclass(slots=True)
class _Open:
    """A collection that has not ended; `names` are those of its fields, None for a list."""

    names: set[Hashable] | None
    key_is_next: bool = True


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _unreadable(reason: str) -> StatusError:
    return bad_request(f"the body of the request cannot be read: {reason[:500]}")
