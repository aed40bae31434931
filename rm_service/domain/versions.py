"""Versions: dotted numbers with an optional tail ("535.104.05", "1.2", "2.0.0-rc.1+build7").

Numbers compare as numbers, leading zeros mean nothing, and a number that is missing is 0: 1.2 = 1.2.0 and
535.104.05 = 535.104.5. A pre-release (after `-`) comes before its release; its parts compare one by one,
numbers before words, as in Semantic Versioning. What follows `+` says how it was built and does not count.
"""

import re
from dataclasses import dataclass
from functools import total_ordering

MAX_TEXT_LENGTH = 64

_RELEASE = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_TAIL = re.compile(r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*")
_DIGITS = re.compile(r"[0-9]+")


class VersionError(ValueError):
    """A text is no version: its `text` (shortened), the `position` of the fault, the `reason`."""

    def __init__(self, text: str, position: int, reason: str) -> None:
        self.text = text[:MAX_TEXT_LENGTH]
        self.position = position
        self.reason = reason
        super().__init__(f"{self.text!r}, position {position}: {reason}")


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A version, without what does not count: zeros at the end of `release`, the build.

    `prerelease` holds ints and texts; None is a release. `str(version)` reads back to an equal version.
    """

    release: tuple[int, ...]
    prerelease: tuple[int | str, ...] | None = None

    def __lt__(self, other: "Version") -> bool:
        return self._rank() < other._rank()

    def __str__(self) -> str:
        release = ".".join(map(str, self.release)) or "0"
        return release if self.prerelease is None else f"{release}-{'.'.join(map(str, self.prerelease))}"

    def _rank(self) -> tuple[tuple[int, ...], bool, tuple[tuple[bool, int, str], ...]]:
        parts = [
            (True, 0, part) if isinstance(part, str) else (False, part, "") for part in self.prerelease or ()
        ]
        return self.release, self.prerelease is None, tuple(parts)


def read_version(text: str) -> Version:
    """Read a version. Raises VersionError with the position and the reason."""
    if len(text) > MAX_TEXT_LENGTH:
        raise VersionError(text, MAX_TEXT_LENGTH, f"is longer than {MAX_TEXT_LENGTH} characters")
    release = _RELEASE.match(text)
    if release is None:
        raise VersionError(text, 0, "a digit is expected")
    position, prerelease = release.end(), None
    if text.startswith("-", position):
        tail = _read_tail(text, position)
        position, prerelease = tail.end(), tuple(map(_part, tail[0].split(".")))
    if text.startswith("+", position):
        position = _read_tail(text, position).end()
    if position < len(text):
        raise VersionError(text, position, _expected(text, position))
    numbers = [int(number) for number in release[0].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return Version(tuple(numbers), prerelease)


def _read_tail(text: str, start: int) -> re.Match[str]:
    """What stands behind the `-` or `+` at `start`."""
    tail = _TAIL.match(text, start + 1)
    if tail is None:
        raise VersionError(text, start + 1, f"a letter or digit is expected after {text[start]!r}")
    return tail


def _part(text: str) -> int | str:
    return int(text) if _DIGITS.fullmatch(text) else text


def _expected(text: str, position: int) -> str:
    if text[position] == ".":
        return "a number is expected after the point"
    return "numbers with points between them, then '-' and a pre-release or '+' and a build, are expected"
