"""The algebra of the Linkis resource types: what + - * / and the comparisons mean on any of them.

A resource is a fixed set of whole numbers, one a dimension, and the names of where they live (a queue, a
namespace). Arithmetic is exact and keeps the left operand's type. Comparisons are dimension by dimension, so
two resources may be neither more nor less than each other. docs/resource-types.md holds the whole
specification and every deviation from Apache Linkis, whose method names are kept.
"""
# ruff: noqa: N802 - moreThan and its kin are named as in the reference's table of operators

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar, Self, TypeVar

from rm_service.domain.amounts import INT64_MAX, INT64_MIN, AmountOverflowError

Numbers = dict[str, int]
Factor = int | float | Fraction
Pair = tuple[int, int]


class ResourceNumberError(ValueError):
    """What was given is no number that a resource or a factor can be: the `name` of it and the `reason`."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"{name}: {reason}")


class UnsupportedOperandsError(TypeError):
    """Two resource types that have no common meaning met in one operation; `left` and `right` name them."""

    def __init__(self, left: str, right: str) -> None:
        self.left = left
        self.right = right
        super().__init__(f"{left} and {right} cannot be combined or compared")


class ResourceDivisionError(ZeroDivisionError):
    """A division by zero; `dimension` names where, or is empty when the divisor is the plain number 0."""

    def __init__(self, dimension: str) -> None:
        self.dimension = dimension
        super().__init__(f"division by zero{f' in {dimension}' if dimension else ''}")


class Resource(ABC):
    """An immutable amount of some resource type.

    Raised by every operation where they apply: UnsupportedOperandsError, AmountOverflowError (a number left
    the signed 64 bits), ResourceDivisionError. `==` compares type, numbers and names, and never raises.
    """

    dimensions_are_fixed: ClassVar[bool] = True
    """False where the names of the dimensions are the caller's and mean nothing to other types."""

    @abstractmethod
    def numbers(self) -> Numbers:
        """The numbers by ledger dimension, in the type's own units (whole cores, except for Kubernetes)."""

    @abstractmethod
    def with_numbers(self, numbers: Numbers) -> Self:
        """The same type and names with these numbers."""

    def ordered_numbers(self) -> Numbers:
        """The numbers that comparisons look at."""
        return self.numbers()

    def named_after(self, other: Self) -> Self:  # noqa: ARG002 - for the types that carry names
        """These numbers under the names that self + other has."""
        return self

    def shares_place_with(self, other: Self) -> bool:  # noqa: ARG002 - for the types that carry names
        """Whether ordering the two makes sense; if not, no comparison between them is true."""
        return True

    def widened(self, smaller: "Resource") -> Self | None:
        """`smaller` as my type, with 0 in what it lacks and my names; None if it is not a part of my type."""
        mine, theirs = self.numbers(), smaller.numbers()
        if not smaller.dimensions_are_fixed or not theirs.keys() <= mine.keys():
            return None
        return self.with_numbers(dict.fromkeys(mine, 0) | theirs)

    def part_for(self, left: "Resource") -> "Resource":  # noqa: ARG002 - for the types made of two parts
        """The part of me that arithmetic with `left` on its left uses."""
        return self

    def add(self, other: "Resource") -> Self:
        """Sum, dimension by dimension."""
        return self._combined(other, lambda _, left, right: left + right)

    def minus(self, other: "Resource") -> Self:
        """Difference; may be negative."""
        return self._combined(other, lambda _, left, right: left - right)

    def multiply(self, factor: "Resource | Factor") -> Self:
        """Each number times the factor, or dimension by dimension; fractions are cut toward zero."""
        if isinstance(factor, Resource):
            return self._combined(factor, lambda _, left, right: left * right)
        exact = _exact(factor)
        return self._each(lambda number: int(number * exact))

    def divide(self, divisor: "Resource | Factor") -> Self:
        """Each number by the divisor, or dimension by dimension; fractions are cut toward zero."""
        if isinstance(divisor, Resource):
            return self._combined(divisor, _quotient)
        exact = _exact(divisor)
        if not exact:
            raise ResourceDivisionError("")
        return self._each(lambda number: int(number / exact))

    def equals(self, other: object) -> bool:
        """Same type, numbers and names."""
        return self == other

    def moreThan(self, other: "Resource") -> bool:
        """Strictly more in every dimension."""
        return _in_all(operator.gt, self._pairs(other))

    def lessThan(self, other: "Resource") -> bool:
        """Strictly less in every dimension."""
        return _in_all(operator.lt, self._pairs(other))

    def notLessThan(self, other: "Resource") -> bool:
        """At least as much in every dimension: the question whether a request fits."""
        pairs = self._pairs(other)
        return pairs is not None and all(left >= right for left, right in pairs)

    def notMoreThan(self, other: "Resource") -> bool:
        """At most as much in every dimension."""
        pairs = self._pairs(other)
        return pairs is not None and all(left <= right for left, right in pairs)

    def caseMore(self, other: "Resource") -> bool:
        """Strictly more in at least one dimension."""
        return any(left > right for left, right in self._pairs(other) or ())

    __add__ = add
    __sub__ = minus
    __mul__ = multiply
    __truediv__ = divide
    __gt__ = moreThan
    __lt__ = lessThan
    __ge__ = notLessThan
    __le__ = notMoreThan

    def _combined(self, other: "Resource", operation: Callable[[str, int, int], int]) -> Self:
        right = self._as_my_type(other)
        mine, theirs = self.numbers(), right.numbers()
        result = {
            dimension: operation(dimension, mine.get(dimension, 0), theirs.get(dimension, 0))
            for dimension in mine | theirs
        }
        return self.named_after(right).with_numbers(result)

    def _as_my_type(self, other: "Resource") -> Self:
        if isinstance(other, Resource):
            part = other.part_for(self)
            if isinstance(part, type(self)):
                return part
            if (widened := self.widened(part)) is not None:
                return widened
        raise UnsupportedOperandsError(type(self).__name__, type(other).__name__)

    def _each(self, operation: Callable[[int], int]) -> Self:
        return self.with_numbers(
            {dimension: operation(number) for dimension, number in self.numbers().items()}
        )

    def _pairs(self, other: "Resource") -> list[Pair] | None:
        """What to compare, in the wider of the two types; None if the two are not comparable."""
        if isinstance(other, type(self)):
            return _pairs_of_one_type(self, other)
        if isinstance(other, Resource):
            if (widened := self.widened(other)) is not None:
                return _pairs_of_one_type(self, widened)
            if (lifted := other.widened(self)) is not None:
                return _pairs_of_one_type(lifted, other)
        raise UnsupportedOperandsError(type(self).__name__, type(other).__name__)


def check_numbers(numbers: Numbers) -> None:
    """Raise ResourceNumberError or AmountOverflowError unless every number is an int of 64 bits."""
    for dimension, number in numbers.items():
        if type(number) is not int:
            raise ResourceNumberError(dimension, f"must be a whole number, not {type(number).__name__}")
        if not INT64_MIN <= number <= INT64_MAX:
            raise AmountOverflowError(dimension, number)


_R = TypeVar("_R", bound=Resource)


def _pairs_of_one_type(left: _R, right: _R) -> list[Pair] | None:
    if not left.shares_place_with(right):
        return None
    mine, theirs = left.ordered_numbers(), right.ordered_numbers()
    return [(mine.get(dimension, 0), theirs.get(dimension, 0)) for dimension in mine | theirs]


def _in_all(comparison: Callable[[int, int], bool], pairs: list[Pair] | None) -> bool:
    """A strict comparison of nothing with nothing is false: nothing is more than itself."""
    return pairs is not None and bool(pairs) and all(comparison(left, right) for left, right in pairs)


def _quotient(dimension: str, left: int, right: int) -> int:
    if right == 0:
        raise ResourceDivisionError(dimension)
    return int(Fraction(left, right))


def _exact(factor: Factor) -> Fraction:
    """A float means the decimal number that it prints as: 0.3 is 3/10."""
    if isinstance(factor, bool) or not isinstance(factor, int | float | Fraction):
        raise ResourceNumberError("factor", f"must be a number, not {type(factor).__name__}")
    if isinstance(factor, float) and not math.isfinite(factor):
        raise ResourceNumberError("factor", "must be finite")
    exact = Fraction(repr(factor)) if isinstance(factor, float) else Fraction(factor)
    if abs(exact) > INT64_MAX:
        raise ResourceNumberError("factor", "is beyond 2^63-1")
    return exact
