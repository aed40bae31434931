"""Kubernetes quantities as values that are compared and shown ("30G", "1.5Gi", "12e5", "-500m").

The grammar is that of `quantities`, with a sign. What a text means and how it is written is exactly as in
Kubernetes: values compare across families (1G = 1000M = 1e9 < 1Gi), what is finer than a billionth is rounded
away from zero, and a binary text stops at 2^63-1. What Kubernetes reads by accident is an error here: a sign
or a suffix without digits, and exponents that do not fit.
"""

from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

from rm_service.domain.amounts import INT64_MAX
from rm_service.domain.quantities import MAX_TEXT_LENGTH, QuantityError, read_quantity

# Every value within this bound has a canonical text that is short enough to be read again.
MAX_POWER_OF_TEN = 48

_NANO = 10**9
_DECIMAL_SUFFIXES = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class Family(Enum):
    """How a quantity is written: with suffixes of 1000, suffixes of 1024, or an exponent."""

    DECIMAL = "decimal"
    BINARY = "binary"
    EXPONENT = "exponent"


@dataclass(frozen=True, slots=True)
class ExactQuantity:
    """A quantity: its value, a whole number of billionths, and its family. Equal values are equal quantities.

    `str(quantity)` is the canonical text, which reads back to an equal quantity with the same text.
    """

    value: Fraction
    family: Family = field(default=Family.DECIMAL, compare=False)

    def __str__(self) -> str:
        return write_exact_quantity(self)


def read_exact_quantity(text: str) -> ExactQuantity:
    """Read a quantity with an optional sign.

    Raises QuantityError with the position and the reason, also for a value of 10^48 and more.
    """
    if len(text) > MAX_TEXT_LENGTH:
        raise QuantityError(text, MAX_TEXT_LENGTH, f"is longer than {MAX_TEXT_LENGTH} characters")
    signed = text[:1] in {"+", "-"}
    try:
        size = read_quantity(text[1:] if signed else text)
    except QuantityError as error:
        raise QuantityError(text, error.position + signed, error.reason) from None
    size = Fraction(-(-size.numerator * _NANO // size.denominator), _NANO)
    if size >= 10**MAX_POWER_OF_TEN:
        raise QuantityError(text, 0, f"is not less than 10^{MAX_POWER_OF_TEN}")
    family = _family(text)
    if family is Family.BINARY:
        size = min(size, Fraction(INT64_MAX))
    return ExactQuantity(-size if text[:1] == "-" else size, family)


def write_exact_quantity(quantity: ExactQuantity) -> str:
    """The canonical text: no fraction, the largest suffix that keeps it whole ("1536Mi", "1500m", "1200e3").

    The family is kept, but a binary quantity of less than 1024, or one that is no whole number, is written as
    a decimal one. Zero is "0".
    """
    value, family = quantity.value, quantity.family
    if not value:
        return "0"
    if family is Family.BINARY and value.denominator == 1 and abs(value) >= 1024:
        return _write_binary(value.numerator)
    return _write_decimal(value, family)


def format_milli(milli: int) -> str:
    """The canonical quantity of that many thousandths: 3000 is "3", 2500 is "2500m", 0 is "0"."""
    return write_exact_quantity(ExactQuantity(Fraction(milli, 1000)))


def _family(text: str) -> Family:
    """The family of a text that was read as a quantity."""
    if text.endswith("i"):
        return Family.BINARY
    return Family.EXPONENT if text[-1].isdigit() and ("e" in text or "E" in text) else Family.DECIMAL


def _write_binary(whole: int) -> str:
    power = 0
    while whole % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
        whole //= 1024
        power += 1
    return f"{whole}{_BINARY_SUFFIXES[power]}"


def _write_decimal(value: Fraction, family: Family) -> str:
    nanos = value.numerator * (_NANO // value.denominator)
    power = -9
    while nanos % 1000 == 0 and (family is Family.EXPONENT or power < 18):
        nanos //= 1000
        power += 3
    if family is Family.EXPONENT:
        return f"{nanos}e{power}" if power else str(nanos)
    return f"{nanos}{_DECIMAL_SUFFIXES[power]}"
