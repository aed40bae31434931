"""Conversions: the operator's changes to an application's tags before label rules see them.

`filter` drops tags; then the `convert` steps run in order. A step never replaces a tag that is there already,
so what a caller says outright wins over what is derived. The operator's page is docs/label-rules.md.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from rm_service.domain.rule_documents import RuleError, read_list, read_object, read_tag_key, read_text
from rm_service.domain.tags import KEY_PATTERN, TagError, Tags, check_tags, key_fault, value_fault

MAX_STEPS = 64
_ACTIONS = ("split", "rename", "map", "combine")
_PLACE = re.compile(r"\{(" + KEY_PATTERN + r")\}")


@dataclass(frozen=True, slots=True)
class _Split:
    """`userCreator=alice-IDE` becomes the tags that the expression's groups name."""

    tag: str
    pattern: re.Pattern[str]

    def apply(self, tags: dict[str, str]) -> None:
        if self.tag not in tags:
            return
        match = self.pattern.fullmatch(tags[self.tag])
        if match is None:
            raise TagError(self.tag, f"the value {tags[self.tag]!r} does not match {self.pattern.pattern}")
        del tags[self.tag]
        for key, value in match.groupdict().items():
            if value is not None:
                tags.setdefault(key, value)


@dataclass(frozen=True, slots=True)
class _Rename:
    """The tag gets another key."""

    tag: str
    key: str

    def apply(self, tags: dict[str, str]) -> None:
        if self.tag in tags:
            tags.setdefault(self.key, tags.pop(self.tag))


@dataclass(frozen=True, slots=True)
class _Map:
    """Listed values of the tag become others; a value that is not listed stays."""

    tag: str
    values: Mapping[str, str]

    def apply(self, tags: dict[str, str]) -> None:
        if self.tag in tags:
            tags[self.tag] = self.values.get(tags[self.tag], tags[self.tag])


@dataclass(frozen=True, slots=True)
class _Combine:
    """The tag is written from others, which stay; nothing happens while one of them is missing."""

    tag: str
    template: str

    def apply(self, tags: dict[str, str]) -> None:
        if all(key in tags for key in _PLACE.findall(self.template)):
            tags.setdefault(self.tag, _PLACE.sub(lambda place: tags[place[1]], self.template))


_Step = _Split | _Rename | _Map | _Combine


class Conversions:
    """All conversions in force. Immutable; regular expressions are compiled once, here."""

    def __init__(self, dropped: Sequence[str], steps: Sequence[_Step]) -> None:
        self._dropped_keys = frozenset(pattern for pattern in dropped if not pattern.endswith("*"))
        self._dropped_prefixes = tuple([pattern[:-1] for pattern in dropped if pattern.endswith("*")])
        self._steps = tuple(steps)

    @classmethod
    def from_document(cls, document: object, path: str = "conversions") -> Self:
        """Read the `conversions` of the configuration. Raises RuleError naming the place."""
        fields = read_object(document, path, ("filter", "convert"))
        dropped = read_list(fields.get("filter"), f"{path}.filter")
        steps = read_list(fields.get("convert"), f"{path}.convert")
        if len(steps) > MAX_STEPS:
            raise RuleError(f"{path}.convert", f"at most {MAX_STEPS} steps are allowed")
        return cls(
            [_read_dropped(each, f"{path}.filter[{at}]") for at, each in enumerate(dropped)],
            [_read_step(step, f"{path}.convert[{at}]") for at, step in enumerate(steps)],
        )

    def apply(self, tags: Tags) -> dict[str, str]:
        """The (checked) tags after all conversions.

        Raises TagError for a value that a split does not match, and when the result breaks `check_tags`.
        """
        kept = {key: value for key, value in tags.items() if not self._drops(key)}
        converted = dict(kept)
        for step in self._steps:
            step.apply(converted)
        return converted if converted == kept else check_tags(converted)

    def _drops(self, key: str) -> bool:
        return key in self._dropped_keys or (
            bool(self._dropped_prefixes) and key.startswith(self._dropped_prefixes)
        )


def _read_dropped(document: object, path: str) -> str:
    pattern = read_text(document, path)
    fault = key_fault(pattern.removesuffix("*"))
    if fault:
        raise RuleError(path, f"must be a tag key, or its beginning and '*': {fault}")
    return pattern


def _read_step(document: object, path: str) -> _Step:
    fields = read_object(document, path, ("tag", *_ACTIONS))
    tag = read_tag_key(fields.get("tag"), f"{path}.tag")
    actions = [action for action in _ACTIONS if action in fields]
    if len(actions) != 1:
        raise RuleError(path, f"needs exactly one of {', '.join(_ACTIONS)}")
    action = actions[0]
    return _READERS[action](tag, fields[action], f"{path}.{action}")


def _read_split(tag: str, document: object, path: str) -> _Step:
    try:
        pattern = re.compile(read_text(document, path))
    except re.error as error:
        raise RuleError(path, f"is not a regular expression: {error}") from error
    if not pattern.groupindex:
        raise RuleError(path, "needs named groups like (?P<user>.+): they are the new tags")
    for name in pattern.groupindex:
        read_tag_key(name, path)
    return _Split(tag, pattern)


def _read_rename(tag: str, document: object, path: str) -> _Step:
    return _Rename(tag, read_tag_key(document, path))


def _read_map(tag: str, document: object, path: str) -> _Step:
    if not isinstance(document, Mapping) or not document:
        raise RuleError(path, "must be an object of old and new values")
    for old, new in document.items():
        fault = value_fault(old) or value_fault(new)
        if fault:
            raise RuleError(f"{path}.{old}", f"{fault} (a number or yes/no needs quotes)")
    return _Map(tag, dict(document))


def _read_combine(tag: str, document: object, path: str) -> _Step:
    template = read_text(document, path)
    if not _PLACE.search(template) or set("{}") & set(_PLACE.sub("", template)):
        raise RuleError(path, "must be a text with tag keys in braces, like '{user}-{creator}'")
    return _Combine(tag, template)


_READERS: Mapping[str, Callable[[str, object, str], _Step]] = {
    "split": _read_split,
    "rename": _read_rename,
    "map": _read_map,
    "combine": _read_combine,
}
