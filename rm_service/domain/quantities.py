"""Quantities: the texts in which people write amounts ("8Gi", "500m"), and the base units they stand for.

The grammar is the Kubernetes quantity without a sign: digits with at most one point, then one suffix
(n u m k M G T P E are powers of 1000, Ki Mi Gi Ti Pi Ei powers of 1024) or a decimal exponent (e3, E-2).
Unlike Kubernetes nothing is rounded: what is not a whole number of base units is an error.
"""

import re
from fractions import Fraction

from rm_service.domain.amounts import INT64_MAX

MAX_TEXT_LENGTH = 64
MAX_EXPONENT = 64

_NUMBER = re.compile(r"(?=\.?[0-9])([0-9]*)\.?([0-9]*)")
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")
_POWERS_OF_TEN = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_POWERS_OF_TWO = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class QuantityError(ValueError):
    """What was given is no amount: its `text` (shortened), the `position` of the fault, the `reason`."""

    def __init__(self, text: str, position: int, reason: str) -> None:
        self.text = text[:MAX_TEXT_LENGTH]
        self.position = position
        self.reason = reason
        super().__init__(f"{self.text!r}, position {position}: {reason}")


def parse_quantity(value: object, dimension: str) -> int:
    """Read an amount of `dimension` into its base unit, from parsed JSON or YAML.

    An int is in base units already (bytes, milli-cores, counts). A str is a quantity: of bytes for memory, of
    cores for vcore ("500m" is 500 milli-cores, "2" is 2000), of pieces for everything else; a namespace
    ("yarn.vcore") does not change the unit. Raises QuantityError for any other type (bool and float
    included), a bad text, a negative amount, a fraction of a base unit, or more than 2^63-1 base units.
    """
    if isinstance(value, str):
        exact = read_quantity(value) * (1000 if _is_vcore(dimension) else 1)
        if exact.denominator != 1:
            raise QuantityError(value, 0, f"is not a whole number of {_base_unit(dimension)}")
        amount = exact.numerator
    elif isinstance(value, int) and not isinstance(value, bool):
        amount = value
    else:
        raise QuantityError(_shown(value), 0, f"must be an integer or a text, not {type(value).__name__}")
    if amount < 0:
        raise QuantityError(_shown(value), 0, "must not be negative")
    if amount > INT64_MAX:
        raise QuantityError(_shown(value), 0, "is more than 2^63-1 base units")
    return amount


def read_quantity(text: str) -> Fraction:
    """The exact value of a quantity text, in the unit that it counts (cores, not milli-cores).

    Raises QuantityError.
    """
    if len(text) > MAX_TEXT_LENGTH:
        raise QuantityError(text, MAX_TEXT_LENGTH, f"is longer than {MAX_TEXT_LENGTH} characters")
    number = _NUMBER.match(text)
    if number is None:
        reason = "a sign is not allowed" if text[:1] in {"+", "-"} else "a digit is expected"
        raise QuantityError(text, 1 if text[:1] == "." else 0, reason)
    whole, fraction = number.groups()
    twos, tens = _scale(text, number.end())
    tens -= len(fraction)
    digits = int(whole + fraction) << twos
    return Fraction(digits * 10**tens) if tens >= 0 else Fraction(digits, 10**-tens)


def format_quantity(dimension: str, amount: int) -> str:
    """The text that people read: memory 2147483648 is "2Gi", vcore 500 is "500m", vcore 2000 is "2".

    Memory takes the shortest text of a whole number, binary if two are equally short. Counts stay digits.
    `parse_quantity` reads the text back to the same amount. A negative amount (a balance that is over its
    limit) keeps its sign.
    """
    if _is_vcore(dimension):
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if _last_name(dimension) == "memory" and amount:
        return min(_whole_texts(amount), key=len)
    return str(amount)


def _whole_texts(amount: int) -> list[str]:
    """Every text of the amount without a fraction, binary suffixes first."""
    units = [(suffix, 1 << twos) for suffix, twos in _POWERS_OF_TWO.items()]
    units += [(suffix, 10**tens) for suffix, tens in _POWERS_OF_TEN.items() if tens >= 0]
    return [f"{amount // unit}{suffix}" for suffix, unit in units if amount % unit == 0]


def _scale(text: str, start: int) -> tuple[int, int]:
    """The powers of two and of ten that the suffix at `start` stands for."""
    suffix = text[start:]
    if suffix in _POWERS_OF_TEN:
        return 0, _POWERS_OF_TEN[suffix]
    if suffix in _POWERS_OF_TWO:
        return _POWERS_OF_TWO[suffix], 0
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        hint = " (kilo is k, kibi is Ki)" if suffix == "K" else ""
        raise QuantityError(text, start, f"unknown suffix {suffix!r}{hint}")
    tens = int(exponent[1])
    if abs(tens) > MAX_EXPONENT:
        raise QuantityError(text, start + 1, f"the exponent is beyond {MAX_EXPONENT}")
    return 0, tens


def _shown(value: object) -> str:
    """The value as text; of a giant integer, whose digits help nobody and take long to make, the type."""
    if isinstance(value, str | bool | float) or (isinstance(value, int) and value.bit_length() <= 128):
        return str(value)
    return type(value).__name__


def _last_name(dimension: str) -> str:
    return dimension.rpartition(".")[2]


def _is_vcore(dimension: str) -> bool:
    return dimension == "vcore" or dimension.endswith(".vcore")


def _base_unit(dimension: str) -> str:
    if _is_vcore(dimension):
        return "milli-cores"
    return "bytes" if _last_name(dimension) == "memory" else f"{dimension} (it is counted in whole pieces)"
