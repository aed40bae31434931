"""Measures: numbers with a unit ("40GBPS", "80 GB", "1.5GHz", "300W").

A measure is a decimal number, at most one blank, an optional prefix (k M G T P E are powers of 1000, Ki Mi Gi
Ti Pi Ei powers of 1024; m u n for hertz and watts) and a unit. Different dimensions never compare.

Upper and lower case may differ from the spelling above only where nothing else can be meant: `g`, `t` and `K`
are prefixes too, `GHZ` and `kw` are understood. `m` never stands for mega. `BPS` in capitals are bits per
second like `bps`, but `Bps` are bytes per second. "gb" could be bits or bytes and is refused; "Gb" is bits.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

MAX_TEXT_LENGTH = 64
MAX_POWER_OF_TEN = 30

_NUMBER = re.compile(r"(?=\.?[0-9])([0-9]*)\.?([0-9]*)")
_NANO = 10**9


class Dimension(StrEnum):
    """What is measured, and its base unit: bits, bits per second, hertz, watts."""

    INFORMATION = "information"
    RATE = "rate"
    FREQUENCY = "frequency"
    POWER = "power"


class MeasureError(ValueError):
    """A text is no measure: its `text` (shortened), the `position` of the fault, the `reason`."""

    def __init__(self, text: str, position: int, reason: str) -> None:
        self.text = text[:MAX_TEXT_LENGTH]
        self.position = position
        self.reason = reason
        super().__init__(f"{self.text!r}, position {position}: {reason}")


@dataclass(frozen=True, slots=True)
class Measure:
    """An amount of base units of a dimension, a whole number of billionths.

    `str(measure)` is a canonical text that reads back to an equal measure.
    """

    dimension: Dimension
    amount: Fraction

    def __str__(self) -> str:
        return write_measure(self)


_SI = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SI_SMALL = {"n": -9, "u": -6, "m": -3}
_IEC = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
# "m" is not among them, nor "p", which is pico, nor "e", which begins an exponent.
_LOOSE = {"K": "k", "g": "G", "t": "T", "ki": "Ki", "gi": "Gi", "ti": "Ti"}

# unit -> its dimension and how many base units it is
_UNITS: dict[str, tuple[Dimension, int]] = {
    "b": (Dimension.INFORMATION, 1),
    "bit": (Dimension.INFORMATION, 1),
    "bits": (Dimension.INFORMATION, 1),
    "B": (Dimension.INFORMATION, 8),
    "byte": (Dimension.INFORMATION, 8),
    "bytes": (Dimension.INFORMATION, 8),
    "bps": (Dimension.RATE, 1),
    "BPS": (Dimension.RATE, 1),
    "b/s": (Dimension.RATE, 1),
    "bit/s": (Dimension.RATE, 1),
    "bits/s": (Dimension.RATE, 1),
    "Bps": (Dimension.RATE, 8),
    "B/s": (Dimension.RATE, 8),
    "byte/s": (Dimension.RATE, 8),
    "bytes/s": (Dimension.RATE, 8),
    "Hz": (Dimension.FREQUENCY, 1),
    "W": (Dimension.POWER, 1),
}
_LOOSE_UNITS = {"hz": "Hz", "HZ": "Hz", "w": "W"}
_AMBIGUOUS_UNITS = frozenset({"b", "b/s"})


def read_measure(text: str) -> Measure:
    """Read a measure.

    Raises MeasureError with the position and the reason, also for an amount that is finer than a billionth of
    its base unit, or not less than 10^30 of them.
    """
    if len(text) > MAX_TEXT_LENGTH:
        raise MeasureError(text, MAX_TEXT_LENGTH, f"is longer than {MAX_TEXT_LENGTH} characters")
    number = _NUMBER.match(text)
    if number is None:
        raise MeasureError(text, 1 if text[:1] == "." else 0, "a digit is expected")
    start = number.end() + text.startswith(" ", number.end())
    meaning = _SPELLINGS.get(text[start:])
    if meaning is None:
        raise MeasureError(text, start, _unit_fault(text[start:]))
    dimension, factor = meaning
    whole, fraction = number.groups()
    amount = Fraction(int(whole + fraction), 10 ** len(fraction)) * factor
    if _NANO % amount.denominator:
        raise MeasureError(text, 0, f"is finer than a billionth of the base unit of {dimension}")
    if amount >= 10**MAX_POWER_OF_TEN:
        raise MeasureError(text, 0, f"is not less than 10^{MAX_POWER_OF_TEN} base units of {dimension}")
    return Measure(dimension, amount)


def write_measure(measure: Measure) -> str:
    """The canonical text: the largest prefix that keeps the number whole ("40Gbps", "80GB", "300W")."""
    unit, amount = {
        Dimension.INFORMATION: ("b", measure.amount),
        Dimension.RATE: ("bps", measure.amount),
        Dimension.FREQUENCY: ("Hz", measure.amount),
        Dimension.POWER: ("W", measure.amount),
    }[measure.dimension]
    if measure.dimension is Dimension.INFORMATION and (amount / 8).denominator == 1:
        unit, amount = "B", amount / 8
    if amount.denominator != 1:
        return _decimal(amount) + unit
    number, prefix = amount.numerator, ""
    for name, tens in _SI.items():
        if number and number % 10**tens == 0:
            prefix, amount = name, Fraction(number, 10**tens)
    return f"{amount}{prefix}{unit}"


def _decimal(amount: Fraction) -> str:
    whole, nanos = divmod(amount.numerator * (_NANO // amount.denominator), _NANO)
    return f"{whole}.{nanos:09}".rstrip("0")


def _unit_fault(unit: str) -> str:
    if not unit:
        return "a unit is expected"
    if unit.lower() in _ANY_CASE:
        return f"the case of {unit!r} leaves open what is meant (GB and Gb, MHz and mHz differ)"
    return f"unknown unit {unit!r}"


def _spellings() -> Iterator[tuple[str, tuple[Dimension, Fraction]]]:
    """Every text that may stand behind the number, and what it stands for."""
    prefixes = {name: Fraction(10**tens) for name, tens in _SI.items()}
    prefixes |= {name: Fraction(1 << twos) for name, twos in _IEC.items()}
    small = {name: Fraction(1, 10**-tens) for name, tens in _SI_SMALL.items()}
    loose = {name: prefixes[exact] for name, exact in _LOOSE.items()}
    for unit, (dimension, base) in _UNITS.items():
        divisible = dimension in {Dimension.FREQUENCY, Dimension.POWER}
        known = prefixes | (small if divisible else {}) | ({} if unit in _AMBIGUOUS_UNITS else loose)
        for prefix, factor in known.items():
            yield prefix + unit, (dimension, base * factor)
    for unit, exact in _LOOSE_UNITS.items():
        dimension, base = _UNITS[exact]
        for prefix, factor in (prefixes | loose).items():
            yield prefix + unit, (dimension, base * factor)


_SPELLINGS = dict(_spellings())
_ANY_CASE = frozenset(map(str.lower, _SPELLINGS))
