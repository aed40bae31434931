"""Queue configurations from texts: the `config` of a registration, or the file of a policy group.

A text is read as YAML 1.2 without aliases and tags, from the parser's events: nothing in it can grow, nest
without end, or be made into an object. Every scalar but true, false and null stays the text that was written.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

import structlog
import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from rm_service.bundled import bundled
from rm_service.domain.queue_config import Configuration, QueueConfigError
from rm_service.domain.queue_documents import read_configuration

MAX_CONFIG_BYTES = 4 * 2**20
MAX_NESTING = 128
DEFAULT_GROUP = "default"
MAX_GROUP = 64
"""Characters of the name of a policy group."""

_log = structlog.get_logger(__name__)
_GROUP = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.\-]{{0,{MAX_GROUP - 1}}}")
# The parser in C is some ten times as fast, where PyYAML was built with it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_FLAGS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def parse_config(text: str) -> Configuration:
    """Read a configuration text; an empty one is the built-in default.

    Raises QueueConfigError, whose texts repeat no value of the configuration: more than 4 MiB, no YAML (the
    place is then a line), or what `read_configuration` refuses.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise QueueConfigError("config", "is no text") from error
    if size > MAX_CONFIG_BYTES:
        raise QueueConfigError("config", f"is longer than {MAX_CONFIG_BYTES} bytes")
    return read_configuration(_parse_document(text))


def policy(group: str, folder: Path | None = None) -> Configuration | None:
    """The configuration of a policy group, from its file `<group>.yaml`; None if there is none.

    `folder` is where the files are (by default those that came with the service). Raises QueueConfigError,
    naming the file, if it cannot be read or is refused.
    """
    text = policy_text(group, folder)
    try:
        return None if text is None else parse_config(text)
    except QueueConfigError as error:
        raise QueueConfigError(f"{group}.yaml: {error.path}", error.reason) from error


def policy_text(group: str, folder: Path | None = None) -> str | None:
    """The file of a policy group as it is; None if there is none. Raises QueueConfigError."""
    if not _GROUP.fullmatch(group):
        return None
    file = (folder or bundled("config/policies")) / f"{group}.yaml"
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeError) as error:
        raise QueueConfigError(file.name, f"cannot be read ({type(error).__name__})") from error


def default_policy(folder: Path | None = None) -> Configuration:
    """The configuration for an RM that brings none and whose policy group is unknown.

    That is the file of the group `default`, or without one the built-in default. Raises as `policy` does.
    """
    return policy(DEFAULT_GROUP, folder) or read_configuration(None)


@dataclass(frozen=True, slots=True)
class Effective:
    """The text that counts for an RM."""

    text: str = field(repr=False)
    warning: str = ""
    """What an operator should know of how it was found; empty if there is nothing."""


def effective_text(config: str, group: str, folder: Path | None = None) -> Effective:
    """The text that counts: what the RM sent, else its policy group's file, else that of the group `default`.

    It is kept with the registration, so that every replica goes by the same one. Raises QueueConfigError.
    """
    if config.strip():
        return Effective(config)
    text = policy_text(group, folder) if group else None
    if text is not None:
        return Effective(text)
    text = policy_text(DEFAULT_GROUP, folder) or ""
    if not group:
        return Effective(text)
    _log.warning("si_unknown_policy_group", policy_group=group, used=DEFAULT_GROUP)
    return Effective(text, f'there is no policy group "{group[:MAX_GROUP]}": {DEFAULT_GROUP} is used')


def _parse_document(text: str) -> object:
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        # The parser's own words may quote the text.
        raise QueueConfigError(_line(error.problem_mark), "is no YAML") from None
    except yaml.YAMLError:
        raise QueueConfigError("config", "holds a character that YAML does not allow") from None
    return builder.document


class _Builder:
    """Makes a document of maps, lists, texts, truth values and None from the parser's events."""

    def __init__(self) -> None:
        self.document: object = None
        self._documents = 0
        self._open: list[dict[str, object] | list[object]] = []
        self._keys: list[str | None] = []
        """For each open collection the key whose value is next; None: a key is next, or it is a list."""

    def take(self, event: Event) -> None:
        if isinstance(event, DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise QueueConfigError(_line(event.start_mark), "begins a second document")
        elif isinstance(event, NodeEvent):
            self._take_node(event)
        elif isinstance(event, CollectionEndEvent):
            self._open.pop()
            self._keys.pop()

    def _take_node(self, event: NodeEvent) -> None:
        line = _line(event.start_mark)
        if isinstance(event, AliasEvent):
            raise QueueConfigError(line, "is an alias; aliases are not allowed")
        if getattr(event, "tag", None) is not None:
            raise QueueConfigError(line, "has a tag; tags are not allowed")
        if self._expects_key():
            self._take_key(event, line)
        elif isinstance(event, ScalarEvent):
            self._put(_scalar(event))
        elif isinstance(event, MappingStartEvent):
            self._begin({}, line)
        elif isinstance(event, SequenceStartEvent):
            self._begin([], line)

    def _expects_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1], dict) and self._keys[-1] is None

    def _take_key(self, event: NodeEvent, line: str) -> None:
        if not isinstance(event, ScalarEvent):
            raise QueueConfigError(line, "has a list or a map where the name of a field is due")
        if event.value in self._open[-1]:
            raise QueueConfigError(line, "repeats a field")
        self._keys[-1] = event.value

    def _begin(self, collection: dict[str, object] | list[object], line: str) -> None:
        if len(self._open) >= MAX_NESTING:
            raise QueueConfigError(line, f"is nested more than {MAX_NESTING} deep")
        self._put(collection)
        self._open.append(collection)
        self._keys.append(None)

    def _put(self, value: object) -> None:
        if not self._open:
            self.document = value
            return
        collection = self._open[-1]
        if isinstance(collection, list):
            collection.append(value)
            return
        key = self._keys[-1]
        if key is not None:
            collection[key] = value
            self._keys[-1] = None


def _scalar(event: ScalarEvent) -> str | bool | None:
    value: str = event.value
    if event.style:  # quoted, or a block: a text whatever it looks like
        return value
    return None if value in _NULLS else _FLAGS.get(value, value)


def _line(mark: object) -> str:
    line = getattr(mark, "line", None)
    return "config" if line is None else f"line {line + 1}"
