"""Regular expressions whose search takes time proportional to the text, whatever the expression.

Those that let users pass a placement rule come from outside. Python's own engine can take exponential time
for a hostile one; here all places where the expression may be are followed at once.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

MAX_PATTERN_LENGTH = 256
MAX_REPEAT = 64
MAX_STEPS = 500

_QUANTIFIER = re.compile(r"([*+?]|\{([0-9]{1,3})(,([0-9]{0,3}))?\})\??")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\\[])*\]")
_ESCAPE = re.compile(r"\\(?:[dwsDWS]|[^A-Za-z0-9])", re.ASCII)
# Python reads these inside a class as operators, or warns that it will.
_SET_OPERATORS = ("--", "&&", "~~", "||")


class PatternError(ValueError):
    """The text is no regular expression that is understood here."""


@dataclass(frozen=True, slots=True)
class LinearPattern:
    r"""A regular expression: literals, `.`, classes, `\d \w \s`, groups, `|`, `* + ? {m,n}`, `^`, `$`.

    `(?i)` at the beginning ignores case. Back references and look-around are not understood. Raises
    PatternError for these, for an expression longer than 256 characters or too large when repeats are spelt
    out.
    """

    text: str
    _steps: "list[_Step]" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_steps", _Compiler(_Parser(self.text).whole()).steps)

    def found_in(self, name: str) -> bool:
        """Whether any part of the name matches; anchors tie it to the beginning and the end."""
        places: set[int] = set()
        for at in range(len(name) + 1):
            reached = self._reached(places | {0}, first=at == 0, last=at == len(name))
            if len(self._steps) in reached:
                return True
            letter = name[at : at + 1]
            places = {
                place + 1
                for place in reached
                if self._steps[place].letter is not None and self._steps[place].takes(letter)
            }
        return False

    def _reached(self, places: Iterable[int], *, first: bool, last: bool) -> set[int]:
        """The places that can be reached without taking a letter; the last one, behind all, is a match."""
        reached: set[int] = set()
        open_places = list(places)
        while open_places:
            place = open_places.pop()
            if place in reached:
                continue
            reached.add(place)
            if place < len(self._steps):
                open_places += self._steps[place].leads_to(place, first=first, last=last)
        return reached


@dataclass(slots=True)
class _Step:
    """One step: take a letter, or pass an anchor, or go on at one of several places."""

    letter: re.Pattern[str] | None = None
    anchor: str = ""
    targets: tuple[int, ...] = ()

    def takes(self, letter: str) -> bool:
        return self.letter is not None and self.letter.fullmatch(letter) is not None

    def leads_to(self, place: int, *, first: bool, last: bool) -> tuple[int, ...]:
        if self.letter is not None:
            return ()
        if self.anchor:
            return (place + 1,) if (first if self.anchor == "^" else last) else ()
        return self.targets


@dataclass(frozen=True, slots=True)
class _Letter:
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class _Anchor:
    sign: str


@dataclass(frozen=True, slots=True)
class _Sequence:
    parts: "tuple[_Node, ...]"


@dataclass(frozen=True, slots=True)
class _Choice:
    options: "tuple[_Node, ...]"


@dataclass(frozen=True, slots=True)
class _Repeat:
    part: "_Node"
    least: int
    most: int | None


_Node = _Letter | _Anchor | _Sequence | _Choice | _Repeat


class _Parser:
    def __init__(self, text: str) -> None:
        if len(text) > MAX_PATTERN_LENGTH:
            raise PatternError(f"is longer than {MAX_PATTERN_LENGTH} characters")
        ignore_case = text.startswith("(?i)")
        self._text = text.removeprefix("(?i)")
        self._at = 0
        self._compile = partial(re.compile, flags=re.DOTALL | (re.IGNORECASE if ignore_case else 0))

    def whole(self) -> _Node:
        node = self._choice()
        if self._at < len(self._text):
            raise PatternError("has a ')' too many")
        return node

    def _choice(self) -> _Node:
        options = [self._sequence()]
        while self._skip("|"):
            options.append(self._sequence())
        return _Choice(tuple(options))

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            parts.append(self._repeated(self._single()))
        return _Sequence(tuple(parts))

    def _single(self) -> _Node:
        if self._skip("("):
            if self._text.startswith("?", self._at) and not self._skip("?:"):
                raise PatternError("has a group of a kind that is not understood")
            node = self._choice()
            if not self._skip(")"):
                raise PatternError("has a '(' too many")
            return node
        sign = self._text[self._at]
        if sign in "^$":
            self._at += 1
            return _Anchor(sign)
        if sign in "*+?{":
            raise PatternError("repeats nothing")
        if sign == "[":
            return self._letter(_CLASS)
        if sign == "\\":
            return self._letter(_ESCAPE)
        self._at += 1
        return _Letter(self._compile(sign if sign == "." else re.escape(sign)))

    def _letter(self, grammar: re.Pattern[str]) -> _Node:
        match = grammar.match(self._text, self._at)
        if match is None or any(operator in match[0] for operator in _SET_OPERATORS):
            raise PatternError("has a class or an escape that is not understood")
        self._at = match.end()
        try:
            return _Letter(self._compile(match[0]))
        except re.error as error:
            raise PatternError("has a class that is not understood") from error

    def _repeated(self, node: _Node) -> _Node:
        match = _QUANTIFIER.match(self._text, self._at)
        if match is None:
            return node
        self._at = match.end()
        signs = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if match[1] in signs:
            return _Repeat(node, *signs[match[1]])
        least = int(match[2])
        most = (int(match[4]) if match[4] else None) if match[3] else least
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            raise PatternError(f"repeats more than {MAX_REPEAT} times, or less than nothing")
        return _Repeat(node, least, most)

    def _skip(self, sign: str) -> bool:
        if not self._text.startswith(sign, self._at):
            return False
        self._at += len(sign)
        return True


class _Compiler:
    """Writes the steps of an expression; what follows the last step is the match."""

    def __init__(self, node: _Node) -> None:
        self.steps: list[_Step] = []
        self._work = 0
        self._write(node)

    def _write(self, node: _Node) -> None:
        self._work += 1
        if self._work > MAX_STEPS:
            raise PatternError("is too large")
        match node:
            case _Letter(pattern):
                self._step(_Step(letter=pattern))
            case _Anchor(sign):
                self._step(_Step(anchor=sign))
            case _Sequence(parts):
                for part in parts:
                    self._write(part)
            case _Choice(options):
                self._write_choice(options)
            case _Repeat(part, least, most):
                self._write_repeat(part, least, most)

    def _write_choice(self, options: tuple[_Node, ...]) -> None:
        fork = self._step(_Step()) if len(options) > 1 else None
        starts: list[int] = []
        ends: list[_Step] = []
        for option in options:
            starts.append(len(self.steps))
            self._write(option)
            if fork:
                ends.append(self._step(_Step()))
        if fork:
            fork.targets = tuple(starts)
        for end in ends:
            end.targets = (len(self.steps),)

    def _write_repeat(self, part: _Node, least: int, most: int | None) -> None:
        for _ in range(least):
            self._write(part)
        if most is None:
            fork = self._step(_Step())
            start = len(self.steps)
            self._write(part)
            self._step(_Step(targets=(start - 1,)))
            fork.targets = (start, len(self.steps))
            return
        forks: list[tuple[_Step, int]] = []
        for _ in range(most - least):
            forks.append((self._step(_Step()), len(self.steps)))
            self._write(part)
        for fork, start in forks:
            fork.targets = (start, len(self.steps))

    def _step(self, step: _Step) -> _Step:
        self.steps.append(step)
        return step
