"""Amounts as Kubernetes writes them, as integers in base units.

Kubernetes knows thousandths of a byte. What is used is rounded up and what there is is rounded down, so
that nothing is promised which is not there.
"""

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor
from typing import Literal

from external_providers.base import AbsurdError, MalformedError
from external_providers.kubernetes.identity import VCORE
from rm_service.domain.quantities import QuantityError, read_quantity

MOST = 2**62
"""Anybody who may create a pod may write `9E`: what is more than this counts as this."""

Rounding = Literal["up", "down"]


def amount(value: object, dimension: str, rounding: Rounding, where: str) -> int:
    """A quantity in the base units of `dimension`, at most MOST. Raises MalformedError and, for less
    than nothing, AbsurdError naming `where`.
    """
    exact = _read(value, where) * (1000 if dimension == VCORE else 1)
    return min(ceil(exact) if rounding == "up" else floor(exact), MOST)


def amounts(
    quantities: Mapping[str, object], names: Mapping[str, str], rounding: Rounding, where: str
) -> dict[str, int]:
    """What `quantities` says of `names` (its names to our dimensions); what it does not say is left out."""
    return {
        dimension: amount(quantities[name], dimension, rounding, f"{where}.{name}")
        for name, dimension in names.items()
        if name in quantities
    }


def _read(value: object, where: str) -> Fraction:
    if (isinstance(value, str) and value.startswith("-")) or (isinstance(value, int) and value < 0):
        raise AbsurdError(f"{where}: is below 0")
    if isinstance(value, str):
        try:
            return read_quantity(value)
        except QuantityError as error:
            raise MalformedError(f"{where}: {error}") from error
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return Fraction(value)
    raise MalformedError(f"{where}: is no quantity, but {type(value).__name__}")
