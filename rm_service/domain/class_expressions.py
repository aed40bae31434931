"""One question of a resource class to one attribute of a device: device value OPERATOR class value.

The device's value says as what the class's text is read: a number, a measure, a version, a truth value or a
string. Where that cannot be (a string and a number, hertz and bits, an order of strings) the answer is
neither yes nor no but UNCOMPARABLE.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from operator import ge, gt, le, lt
from typing import Any

from rm_service.domain.device_attributes import Exact, Kind, Value
from rm_service.domain.exact_quantities import read_exact_quantity
from rm_service.domain.measures import Measure, MeasureError, read_measure
from rm_service.domain.quantities import QuantityError
from rm_service.domain.versions import VersionError, read_version


class Operator(StrEnum):
    """How the device's value (left) compares with those of the class (right)."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    EQ = "Eq"
    GT = "Gt"
    GT_EQ = "GtEq"
    LT = "Lt"
    LT_EQ = "LtEq"


WITHOUT_VALUES = frozenset({Operator.EXISTS, Operator.DOES_NOT_EXIST})
WITH_VALUES = frozenset({Operator.IN, Operator.NOT_IN})
ORDERINGS: Mapping[Operator, Callable[[Any, Any], bool]] = {
    Operator.GT: gt,
    Operator.GT_EQ: ge,
    Operator.LT: lt,
    Operator.LT_EQ: le,
}


class Outcome(StrEnum):
    """How an expression, or a whole selector, comes out for a device.

    MISSING fails too: the device has no such attribute. UNCOMPARABLE is neither true nor false.
    """

    HOLDS = "holds"
    FAILS = "fails"
    MISSING = "missing"
    UNCOMPARABLE = "uncomparable"


class Operand:
    """A value of a class: its text, read as everything that it can be."""

    __slots__ = ("_readings", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._readings: dict[Kind, Exact] = {Kind.STRING: text}
        if text in {"true", "false"}:
            self._readings[Kind.BOOL] = text == "true"
        with suppress(QuantityError):
            number: Fraction = read_exact_quantity(text).value
            self._readings |= {Kind.INT: number, Kind.QUANTITY: number}
        with suppress(MeasureError):
            self._readings[Kind.MEASURE] = read_measure(text)
        with suppress(VersionError):
            self._readings[Kind.VERSION] = read_version(text)

    def of_kind(self, kind: Kind) -> Exact | None:
        """The value as one of this kind; None if it cannot be one."""
        return self._readings.get(kind)


@dataclass(frozen=True, slots=True)
class Expression:
    """A question to the attribute `key`. Exists and DoesNotExist have no values, In and NotIn have some, the
    others have one.
    """

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    operands: tuple[Operand, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "operands", tuple(map(Operand, self.values)))

    def outcome(self, value: Value | None) -> Outcome:
        """How it comes out for a device's value; None: the device has no such attribute."""
        if value is None:
            absent = self.operator in {Operator.NOT_IN, Operator.DOES_NOT_EXIST}
            return Outcome.HOLDS if absent else Outcome.MISSING
        match self.operator:
            case Operator.EXISTS:
                return Outcome.HOLDS
            case Operator.DOES_NOT_EXIST:
                return Outcome.FAILS
            case Operator.IN | Operator.EQ:
                return self._is_one_of(value)
            case Operator.NOT_IN:
                return _NEGATED[self._is_one_of(value)]
            case ordering:
                return _order(value, self.operands[0], ORDERINGS[ordering])

    def shown(self, value: Value | None) -> str:
        """The question for people: device value, operator, value or values of the class."""
        device = "(missing)" if value is None else value.text
        if self.operator in WITHOUT_VALUES:
            return f"{device} {self.operator}"
        values = ", ".join(self.values)
        return f"{device} {self.operator} " + (f"[{values}]" if self.operator in WITH_VALUES else values)

    def why_uncomparable(self, value: Value) -> str:
        """Why the outcome for this value is UNCOMPARABLE, in words; empty if it is not."""
        if self.outcome(value) is not Outcome.UNCOMPARABLE:
            return ""
        if self.operator in ORDERINGS and value.kind in _WITHOUT_ORDER:
            return f"the device's value is {_WORDS[value.kind]}, which has no order"
        bad = next(each for each in self.operands if not _comparable(value, each))
        operand = bad.of_kind(value.kind)
        if isinstance(value.exact, Measure) and isinstance(operand, Measure):
            return f"the device's value is of {value.exact.dimension}, {bad.text!r} of {operand.dimension}"
        return f"the device's value is {_WORDS[value.kind]}, {bad.text!r} is none"

    def _is_one_of(self, value: Value) -> Outcome:
        if any(value.exact == each.of_kind(value.kind) for each in self.operands):
            return Outcome.HOLDS
        comparable = all(_comparable(value, each) for each in self.operands)
        return Outcome.FAILS if comparable else Outcome.UNCOMPARABLE


_NEGATED = {
    Outcome.HOLDS: Outcome.FAILS,
    Outcome.FAILS: Outcome.HOLDS,
    Outcome.UNCOMPARABLE: Outcome.UNCOMPARABLE,
}
_WITHOUT_ORDER = frozenset({Kind.STRING, Kind.BOOL})
_WORDS = {
    Kind.BOOL: "a truth value",
    Kind.INT: "a number",
    Kind.QUANTITY: "a number",
    Kind.MEASURE: "a measure",
    Kind.VERSION: "a version",
    Kind.STRING: "a string",
}


def ordering_fault(text: str) -> tuple[int, str] | None:
    """Why nothing can be more or less than this class value, with the position; None if something can."""
    faults: list[tuple[int, str]] = []
    for name, read in (
        ("quantity", read_exact_quantity),
        ("measure", read_measure),
        ("version", read_version),
    ):
        try:
            read(text)
        except (QuantityError, MeasureError, VersionError) as error:
            faults.append((error.position, f"no {name} ({error.reason})"))
        else:
            return None
    return max(position for position, _ in faults), ", ".join([reason for _, reason in faults])


def _comparable(value: Value, operand: Operand) -> bool:
    """Whether the class value can be read as what the device's value is."""
    other = operand.of_kind(value.kind)
    if isinstance(value.exact, Measure) and isinstance(other, Measure):
        return value.exact.dimension is other.dimension
    return other is not None


def _order(value: Value, operand: Operand, holds: Callable[[Any, Any], bool]) -> Outcome:
    if value.kind in _WITHOUT_ORDER or not _comparable(value, operand):
        return Outcome.UNCOMPARABLE
    left, right = value.exact, operand.of_kind(value.kind)
    if isinstance(left, Measure) and isinstance(right, Measure):
        left, right = left.amount, right.amount
    return Outcome.HOLDS if holds(left, right) else Outcome.FAILS
