"""Linkis size texts ("10 GB", "1.5g"): powers of 1024 under names that mean powers of 1000 in a quantity.

They appear in the typed shapes of resources only (resource_shapes.py); the API's own amounts are quantities.
"""

import re

from rm_service.domain.amounts import INT64_MAX
from rm_service.domain.quantities import MAX_TEXT_LENGTH, QuantityError

_NUMBER = re.compile(r"([0-9]+)(?:\.([0-9]+))?")
_SUFFIX = re.compile(r"(?: ?([a-z]+))?", re.IGNORECASE | re.ASCII)
_POWERS_OF_TWO = {"b": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_SHIFTS = _POWERS_OF_TWO | {f"{letter}b": shift for letter, shift in _POWERS_OF_TWO.items() if shift}
_PRINTED = (("TB", 40), ("GB", 30), ("MB", 20), ("KB", 10))


def parse_linkis_size(text: str) -> int:
    """Bytes of a size text: digits, at most one fraction, at most one blank, then b k kb m mb g gb t tb p pb.

    Letters in any case, no suffix means bytes. Two digits of a fraction count and bytes are cut, not rounded,
    as in the reference: "1.555g" is 1.55 GiB, "1.5" is 1 byte. Raises QuantityError for anything else
    (negative, empty, "10gib", more than 2^63-1 bytes).
    """
    if len(text) > MAX_TEXT_LENGTH:
        raise QuantityError(text, MAX_TEXT_LENGTH, f"is longer than {MAX_TEXT_LENGTH} characters")
    number = _NUMBER.match(text)
    if number is None:
        raise QuantityError(text, 0, "a digit is expected")
    suffix = _SUFFIX.fullmatch(text, number.end())
    shift = _SHIFTS.get((suffix[1] or "b").lower()) if suffix else None
    if shift is None:
        raise QuantityError(text, number.end(), f"unknown size suffix {text[number.end() :]!r}")
    whole, fraction = number[1], number[2] or ""
    hundredths = int(whole) * 100 + int(fraction[:2].ljust(2, "0"))
    size = (hundredths << shift) // 100
    if size > INT64_MAX:
        raise QuantityError(text, 0, "is more than 2^63-1 bytes")
    return size


def format_linkis_size(size: int) -> str:
    """The text of a number of bytes: the largest of B to TB of which there are two or more, one decimal.

    2^30 is "1024.0 MB", 2^31 "2.0 GB". Halves round away from zero. The text keeps one decimal only, so
    reading it back may differ by a twentieth of the unit.
    """
    unit, shift = next(((unit, shift) for unit, shift in _PRINTED if abs(size) >= 2 << shift), ("B", 0))
    tenths = ((abs(size) * 20 >> shift) + 1) // 2
    return f"{'-' if size < 0 else ''}{tenths // 10}.{tenths % 10} {unit}"
