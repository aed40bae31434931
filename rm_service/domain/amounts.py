"""Amounts: named dimensions to signed 64-bit integers in base units.

`memory` is in bytes, `vcore` in milli-cores, `instances` and `apps` are counts, any other name is an
opaque count. Arithmetic is exact: a result outside 64 bits is an error, never a wrap or a float.
"""

from collections.abc import Mapping

Amounts = Mapping[str, int]

PORT = "port/"
"""How the dimensions begin of which every capacity has exactly one without being asked: a node's ports."""

DEVICE = "device/"
"""How the dimensions begin that count thousandths of devices, one dimension for each kind of device."""

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
NOTHING: Amounts = {}


class AmountOverflowError(ArithmeticError):
    """A sum left the range of a signed 64-bit integer."""

    def __init__(self, dimension: str, value: int) -> None:
        self.dimension = dimension
        self.value = value
        self.label: Mapping[str, str] | None = None
        """The label whose balance would overflow, where that is known."""
        super().__init__(f"{dimension}: {value} does not fit a signed 64-bit integer")


def plus(left: Amounts, right: Amounts) -> dict[str, int]:
    """Add two vectors; a dimension that one of them lacks counts as 0 there."""
    total = dict(left)
    for dimension, amount in right.items():
        value = total.get(dimension, 0) + amount
        if not INT64_MIN <= value <= INT64_MAX:
            raise AmountOverflowError(dimension, value)
        total[dimension] = value
    return total


def minus(left: Amounts, right: Amounts) -> dict[str, int]:
    """Subtract `right`; a dimension that one of them lacks counts as 0 there."""
    return plus(left, negative(right))


def least(held: Amounts, shown: Amounts) -> dict[str, int]:
    """Of what is shown, at most what is held, in each dimension that is shown."""
    return {dimension: min(amount, held.get(dimension, 0)) for dimension, amount in shown.items()}


def negative(amounts: Amounts) -> dict[str, int]:
    """Each amount with the opposite sign."""
    return {dimension: -amount for dimension, amount in amounts.items()}


def without_ports(amounts: Amounts) -> Amounts:
    """The amounts without ports: the same object when there are none."""
    if any(dimension.startswith(PORT) for dimension in amounts):
        return {name: amount for name, amount in amounts.items() if not name.startswith(PORT)}
    return amounts


def in_devices(amounts: Amounts) -> Amounts:
    """The part of the amounts that counts devices."""
    return {name: amount for name, amount in amounts.items() if name.startswith(DEVICE)}


def without_zeros(amounts: Amounts) -> dict[str, int]:
    """Drop the dimensions whose amount is 0."""
    return {dimension: amount for dimension, amount in amounts.items() if amount}


def same(left: Amounts, right: Amounts) -> bool:
    """Whether two vectors are equal when a missing dimension counts as 0."""
    return without_zeros(left) == without_zeros(right)
