"""Selectors: a question to tags, in one line of text.

    gpu=T4, zone in (a,b), !reserved, memory>=64, team!="data, research"

A comma means AND. The semantics are those of Kubernetes label selectors, with `>=` and `<=` beside `>` and
`<`; the empty text matches everything.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum

from rm_service.domain.tags import KEY_PATTERN, Tags, key_fault, value_fault

MAX_LENGTH = 4096
MAX_REQUIREMENTS = 64
MAX_VALUES = 256

_INT64_MAX = 2**63 - 1
_INT64_MIN = -(2**63)

_BLANKS = re.compile(r"[ \t]*")
_KEY = re.compile(KEY_PATTERN)
_COMPARISON = re.compile(r"==|!=|>=|<=|=|>|<")
_LIST = re.compile(r"(in|notin)[ \t]*\(")
_BARE = re.compile(r"[\w.:\-/@+*?%#~]+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"')
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")


class SelectorError(ValueError):
    """A selector cannot be read. `position` is the index of the offending character in `text`."""

    def __init__(self, text: str, position: int, reason: str) -> None:
        self.text = text
        self.position = position
        self.reason = reason
        near = text[position : position + 20]
        super().__init__(
            f"selector, character {position + 1}: {reason}" + (f", near {near!r}" if near else "")
        )


class Operator(StrEnum):
    """How a requirement compares; the value is its text in a selector."""

    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    MISSING = "missing"
    GREATER = ">"
    AT_LEAST = ">="
    LESS = "<"
    AT_MOST = "<="


_ORDERINGS = (Operator.GREATER, Operator.AT_LEAST, Operator.LESS, Operator.AT_MOST)


@dataclass(frozen=True, slots=True, order=True)
class Requirement:
    """One term of a selector.

    `values` is sorted and without doubles. `key=value` is IN with one value, `key!=value` NOT_IN with one.
    The orderings hold one integer, in its shortest decimal text. EXISTS and MISSING hold none.
    """

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    _choices: frozenset[str] = field(init=False, repr=False, compare=False)
    _bound: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_choices", frozenset(self.values))
        object.__setattr__(self, "_bound", int(self.values[0]) if self.operator in _ORDERINGS else 0)

    def matches(self, tags: Tags) -> bool:
        """Whether the tags fulfil this term. A missing key fulfils NOT_IN and MISSING, and no other."""
        value = tags.get(self.key)
        match self.operator:
            case Operator.IN:
                return value in self._choices
            case Operator.NOT_IN:
                return value not in self._choices
            case Operator.EXISTS:
                return value is not None
            case Operator.MISSING:
                return value is None
            case _:
                return value is not None and self._orders(value)

    def _orders(self, value: str) -> bool:
        number = _int64(value)
        if number is None:
            return False
        match self.operator:
            case Operator.GREATER:
                return number > self._bound
            case Operator.AT_LEAST:
                return number >= self._bound
            case Operator.LESS:
                return number < self._bound
            case _:
                return number <= self._bound

    def __str__(self) -> str:
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.MISSING:
                return f"!{self.key}"
            case Operator.IN | Operator.NOT_IN if len(self.values) > 1:
                return f"{self.key} {self.operator} ({','.join(_write(value) for value in self.values)})"
            case Operator.IN:
                return f"{self.key}={_write(self.values[0])}"
            case Operator.NOT_IN:
                return f"{self.key}!={_write(self.values[0])}"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


@dataclass(frozen=True, slots=True)
class Selector:
    """All requirements must hold. They are sorted and without doubles, so equal questions are mostly equal
    objects.

    `str(selector)` is a canonical text that `parse_selector` reads back into an equal selector.
    """

    requirements: tuple[Requirement, ...] = ()

    def matches(self, tags: Tags) -> bool:
        """Whether the tags fulfil every requirement."""
        return all(requirement.matches(tags) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def parse_selector(text: str) -> Selector:
    """Read a selector. Raises SelectorError with the place and the reason.

    Bounds: 4096 characters (of the text and of its canonical form), 64 requirements, 256 values. Takes linear
    time.
    """
    if len(text) > MAX_LENGTH:
        raise SelectorError(text, MAX_LENGTH, f"longer than {MAX_LENGTH} characters")
    selector = Selector(_Reader(text).read())
    if len(str(selector)) > MAX_LENGTH:
        raise SelectorError(text, len(text), f"longer than {MAX_LENGTH} characters in its canonical form")
    return selector


def one_of(key: str, *values: str) -> str:
    """The text of the requirement that a tag has one of these values."""
    return str(Requirement(key, Operator.IN, tuple(sorted(set(values)))))


class _Reader:
    """Reads one text from left to right; `position` is the next character that is not read yet."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.values = 0

    def read(self) -> tuple[Requirement, ...]:
        requirements: list[Requirement] = []
        self._skip_blanks()
        while requirements or self.position < len(self.text):
            if len(requirements) == MAX_REQUIREMENTS:
                raise self._error(f"more than {MAX_REQUIREMENTS} requirements")
            requirements.append(self._read_requirement())
            self._skip_blanks()
            if self.position == len(self.text):
                break
            self._expect(",", "expected ',' or the end")
        return tuple(sorted(set(requirements)))

    def _read_requirement(self) -> Requirement:
        self._skip_blanks()
        if self._take("!"):
            self._skip_blanks()
            return Requirement(self._read_key(), Operator.MISSING)
        key = self._read_key()
        self._skip_blanks()
        comparison = self._take_match(_COMPARISON)
        if comparison is not None:
            return self._read_comparison(key, comparison[0])
        opening = self._take_match(_LIST)
        if opening is not None:
            return Requirement(key, Operator(opening[1]), self._read_list())
        return Requirement(key, Operator.EXISTS)

    def _read_comparison(self, key: str, operator: str) -> Requirement:
        self._skip_blanks()
        if operator in ("=", "==", "!="):
            value = "" if self._at_end_of_term() else self._read_value()
            return Requirement(key, Operator.NOT_IN if operator == "!=" else Operator.IN, (value,))
        start = self.position
        number = _int64(self._read_value())
        if number is None:
            self.position = start
            raise self._error(
                f"{operator!r} needs a whole number of 64 bits, and compares it with the tag's value"
            )
        return Requirement(key, Operator(operator), (str(number),))

    def _read_list(self) -> tuple[str, ...]:
        values: set[str] = set()
        while True:
            self._skip_blanks()
            values.add(self._read_value())
            self._skip_blanks()
            if self._take(")"):
                return tuple(sorted(values))
            self._expect(",", "expected ',' or ')'")

    def _read_key(self) -> str:
        start = self.position
        match = self._take_match(_KEY)
        if match is None:
            raise self._error("expected a tag key")
        fault = key_fault(match[0])
        if fault:
            self.position = start
            raise self._error(fault)
        return match[0]

    def _read_value(self) -> str:
        self.values += 1
        if self.values > MAX_VALUES:
            raise self._error(f"more than {MAX_VALUES} values")
        start = self.position
        quoted = self._take_match(_QUOTED)
        bare = None if quoted else self._take_match(_BARE)
        if quoted is None and bare is None:
            opened = self.text.startswith('"', start)
            reason = (
                r'no closing ", or an escape other than \" and \\' if opened else "expected a value; quote it"
            )
            raise self._error(reason)
        value = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else self.text[start : self.position]
        fault = value_fault(value)
        if fault:
            self.position = start
            raise self._error(fault)
        return value

    def _at_end_of_term(self) -> bool:
        return self.position == len(self.text) or self.text[self.position] == ","

    def _skip_blanks(self) -> None:
        self._take_match(_BLANKS)

    def _take(self, character: str) -> bool:
        if not self.text.startswith(character, self.position):
            return False
        self.position += 1
        return True

    def _take_match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
        return match

    def _expect(self, character: str, reason: str) -> None:
        if not self._take(character):
            raise self._error(reason)

    def _error(self, reason: str) -> SelectorError:
        return SelectorError(self.text, self.position, reason)


def _int64(text: str) -> int | None:
    """The number that Go's ParseInt reads in base 10: with sign and leading zeros, without blanks and `_`."""
    match = _INTEGER.fullmatch(text)
    number = int(match[1] + match[2]) if match else None
    return number if number is not None and _INT64_MIN <= number <= _INT64_MAX else None


def _write(value: str) -> str:
    if _BARE.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
