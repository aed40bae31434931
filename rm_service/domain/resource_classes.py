"""Resource classes: a named question to devices, and its answer for one device.

    {"resourceSelector": [{"matchExpressions": [{"key": "memory", "operator": "GtEq", "values": ["30G"]}]}]}

A class selects a device if one of its selectors does. A selector needs all of its expressions, and one
without expressions selects nothing.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rm_service.domain.class_expressions import (
    ORDERINGS,
    WITH_VALUES,
    WITHOUT_VALUES,
    Expression,
    Operator,
    Outcome,
    ordering_fault,
)
from rm_service.domain.device_attributes import Attributes, attribute_key_fault, text_fault

MAX_SELECTORS = 64
MAX_EXPRESSIONS = 64
MAX_VALUES = 64
MAX_VALUES_IN_ALL = 512
MAX_NAME_LENGTH = 253
MAX_FAULTS = 64

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_AMOUNTS = frozenset(
    [
        f"{prefix}{name}"
        for prefix in ("", "yarn.", "k8s.")
        for name in ("memory", "vcore", "instances", "apps")
    ]
)
_MAX_SHOWN = 64


class Fault(NamedTuple):
    """What is wrong with a class: the path of the field, its value (shortened), the reason."""

    field: str
    value: str
    reason: str


class ResourceClassError(ValueError):
    """A class breaks rules: `faults` has them in the order of the document, at least one, at most 64."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{fault.field}: {fault.value}: {fault.reason}" for fault in faults))


@dataclass(frozen=True, slots=True)
class ClassSelector:
    """Selects what all of the expressions hold for; without expressions nothing."""

    expressions: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class ResourceClassSpec:
    """What a class selects: what one of the selectors does."""

    selectors: tuple[ClassSelector, ...] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """How an expression of a class came out for a device. `selector` and `expression` count from 0.

    `device_value` is None where the device has no such attribute. `text` is both values with the operator
    between them, for people. `why` is empty unless they cannot be compared.
    """

    selector: int
    expression: int
    key: str
    operator: Operator
    outcome: Outcome
    device_value: str | None
    class_values: tuple[str, ...]
    text: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class SelectorReason:
    """How a selector came out (HOLDS, FAILS or UNCOMPARABLE), and each of its expressions."""

    outcome: Outcome
    expressions: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """Whether a class selects a device; if not, what left that open in `uncomparable` (empty: a clear no)."""

    selected: bool
    uncomparable: tuple[Reason, ...] = ()


def verdict(spec: ResourceClassSpec, attributes: Attributes) -> Outcome:
    """As `match`, without reasons: HOLDS, FAILS or UNCOMPARABLE."""
    answer = Outcome.FAILS
    for selector in spec.selectors:
        outcome = _together([each.outcome(attributes.get(each.key)) for each in selector.expressions])
        if outcome is Outcome.HOLDS:
            return outcome
        if outcome is Outcome.UNCOMPARABLE:
            answer = outcome
    return answer


def match(spec: ResourceClassSpec, attributes: Attributes) -> Match:
    """Whether the class selects a device with these attributes.

    One selector that holds is enough. One with an expression that fails is a no, whatever cannot be compared
    beside it; one that fails only because something cannot be compared leaves the answer open.
    """
    undecided = []
    for number, selector in enumerate(spec.selectors):
        outcome = _together([each.outcome(attributes.get(each.key)) for each in selector.expressions])
        if outcome is Outcome.HOLDS:
            return Match(True)
        if outcome is Outcome.UNCOMPARABLE:
            undecided.append(number)
    reasons = [reason for number in undecided for reason in _reasons(spec, number, attributes)]
    return Match(False, tuple([each for each in reasons if each.outcome is Outcome.UNCOMPARABLE]))


def explain(spec: ResourceClassSpec, attributes: Attributes) -> list[SelectorReason]:
    """For each selector, how every expression comes out for a device with these attributes."""
    explained = []
    for number in range(len(spec.selectors)):
        reasons = _reasons(spec, number, attributes)
        explained.append(SelectorReason(_together([each.outcome for each in reasons]), reasons))
    return explained


def read_spec(document: object) -> ResourceClassSpec:
    """Read the `spec` of a class from parsed JSON or YAML. Nothing at all is a class that selects nothing.

    Raises ResourceClassError with every fault. Bounds: 64 selectors, 64 expressions and 512 values in all
    of them, 64 values in one, keys and values as those of attributes.
    """
    reader = _Reader()
    spec = reader.read(document)
    if reader.faults:
        raise ResourceClassError(reader.faults)
    return spec


def write_spec(spec: ResourceClassSpec) -> dict[str, object]:
    """The document that `read_spec` reads back into an equal spec."""
    selectors = [
        {"matchExpressions": [_write_expression(each) for each in selector.expressions]}
        for selector in spec.selectors
    ]
    return {"resourceSelector": selectors}


def check_class_name(name: object) -> str:
    """The name of a class, checked: a DNS subdomain of RFC 1123 with at most 253 characters.

    It is none of the amounts that every ledger knows, such as `memory`: asks of the Scheduler Interface name
    classes and amounts alike. Raises ResourceClassError for the field `metadata.name`.
    """
    well_formed = isinstance(name, str) and len(name) <= MAX_NAME_LENGTH and _NAME.fullmatch(name)
    if isinstance(name, str) and well_formed and name not in _AMOUNTS:
        return name
    if well_formed:
        reason = "is the name of an amount, which asks of the Scheduler Interface mean by it"
    elif name is None or name == "":
        reason = "is required"
    elif not isinstance(name, str):
        reason = "must be a text"
    elif len(name) > MAX_NAME_LENGTH:
        reason = f"is longer than {MAX_NAME_LENGTH} characters"
    else:
        reason = "needs words of lower case letters, digits and inner '-', with '.' between them (RFC 1123)"
    raise ResourceClassError([Fault("metadata.name", _shown(name), reason)])


class _Reader:
    """Reads one spec and collects what is wrong with it."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def read(self, document: object) -> ResourceClassSpec:
        fields = self._object(document, "spec", ("resourceSelector",))
        path = "spec.resourceSelector"
        selectors = self._list(fields.get("resourceSelector"), path, MAX_SELECTORS)
        lists = [self._selector(each, f"{path}[{number}]") for number, each in enumerate(selectors)]
        if sum(map(len, lists)) > MAX_EXPRESSIONS:
            self._fault(path, selectors, f"has more than {MAX_EXPRESSIONS} expressions")
            return ResourceClassSpec()
        values = sum(len(_values(each)) for expressions in lists for each in expressions)
        if values > MAX_VALUES_IN_ALL:
            self._fault(path, selectors, f"has more than {MAX_VALUES_IN_ALL} values in all")
            return ResourceClassSpec()
        read = [
            [
                self._expression(each, f"{path}[{number}].matchExpressions[{index}]")
                for index, each in enumerate(expressions)
            ]
            for number, expressions in enumerate(lists)
        ]
        return ResourceClassSpec(
            tuple([ClassSelector(tuple([each for each in found if each])) for found in read])
        )

    def _selector(self, document: object, path: str) -> Sequence[object]:
        fields = self._object(document, path, ("matchExpressions",))
        return self._list(fields.get("matchExpressions"), f"{path}.matchExpressions", MAX_EXPRESSIONS)

    def _expression(self, document: object, path: str) -> Expression | None:
        before = len(self.faults)
        if not isinstance(document, Mapping):
            self._fault(path, document, "must be an object")
            return None
        fields = self._object(document, path, ("key", "operator", "values"))
        key, operator = fields.get("key"), fields.get("operator")
        fault = "is required" if key is None or key == "" else attribute_key_fault(key)
        if fault:
            self._fault(f"{path}.key", key, fault)
        known = isinstance(operator, str) and operator in tuple(Operator)
        if not known:
            missing = operator is None or operator == ""
            choices = ", ".join(Operator)
            reason = "is required" if missing else f"is unknown, must be one of: {choices}"
            self._fault(f"{path}.operator", operator, reason)
        values = self._list(fields.get("values"), f"{path}.values", MAX_VALUES)
        texts = [self._value(each, f"{path}.values[{number}]") for number, each in enumerate(values)]
        if known and len(self.faults) == before:
            self._check_values(Operator(str(operator)), texts, f"{path}.values")
        if len(self.faults) > before or len(self.faults) >= MAX_FAULTS:
            return None
        return Expression(str(key), Operator(str(operator)), tuple(texts))

    def _value(self, document: object, path: str) -> str:
        fault = text_fault(document) if isinstance(document, str) else "must be a text (quote it)"
        if fault:
            self._fault(path, document, fault)
        return str(document) if not fault else ""

    def _check_values(self, operator: Operator, values: list[str], path: str) -> None:
        """Say whether the operator can do anything with these values."""
        if operator in WITHOUT_VALUES:
            if values:
                self._fault(path, values, f"must be empty for {operator}")
        elif operator in WITH_VALUES:
            if not values:
                self._fault(path, values, f"at least one is required for {operator}")
        elif len(values) != 1:
            self._fault(path, values, f"exactly one is required for {operator}, which compares with it")
        elif operator in ORDERINGS:
            fault = ordering_fault(values[0])
            if fault:
                position, reason = fault
                needed = f"{operator} needs a number, a measure or a version"
                self._fault(f"{path}[0]", values[0], f"position {position}: {needed}; this is {reason}")

    def _object(self, document: object, path: str, known: tuple[str, ...]) -> Mapping[object, object]:
        if document is None:
            return {}
        if not isinstance(document, Mapping):
            self._fault(path, document, "must be an object")
            return {}
        for name in _unknown(document, known):
            self._fault(f"{path}.{_shown(name)}", document[name], "unknown field")
        return document

    def _list(self, document: object, path: str, bound: int) -> Sequence[object]:
        if document is None:
            return ()
        if not isinstance(document, list | tuple):
            self._fault(path, document, "must be a list")
            return ()
        if len(document) > bound:
            self._fault(path, document, f"has more than {bound} entries")
            return ()
        return document

    def _fault(self, path: str, value: object, reason: str) -> None:
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(Fault(path, _shown(value), reason))


def _values(expression: object) -> Sequence[object]:
    values = expression.get("values") if isinstance(expression, Mapping) else None
    return values if isinstance(values, list) else ()


def _unknown(document: Mapping[object, object], known: tuple[str, ...]) -> Iterable[object]:
    return (name for name in document if name not in known)


def _together(expressions: Sequence[Outcome]) -> Outcome:
    """The outcome of a selector whose expressions come out like this."""
    if not expressions or Outcome.FAILS in expressions or Outcome.MISSING in expressions:
        return Outcome.FAILS
    return Outcome.UNCOMPARABLE if Outcome.UNCOMPARABLE in expressions else Outcome.HOLDS


def _reasons(spec: ResourceClassSpec, selector: int, attributes: Attributes) -> tuple[Reason, ...]:
    """How each expression of one selector comes out."""
    reasons = []
    for number, asked in enumerate(spec.selectors[selector].expressions):
        value = attributes.get(asked.key)
        reasons.append(
            Reason(
                selector,
                number,
                asked.key,
                asked.operator,
                asked.outcome(value),
                None if value is None else value.text,
                asked.values,
                asked.shown(value),
                "" if value is None else asked.why_uncomparable(value),
            )
        )
    return tuple(reasons)


def _write_expression(expression: Expression) -> dict[str, object]:
    document: dict[str, object] = {"key": expression.key, "operator": str(expression.operator)}
    if expression.values:
        document["values"] = list(expression.values)
    return document


def _shown(value: object) -> str:
    """The value as a short text; of what is long, its kind or its beginning."""
    if isinstance(value, str):
        return value[:_MAX_SHOWN].encode(errors="backslashreplace").decode()
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) or (isinstance(value, int) and value.bit_length() <= 128):
        return str(value)
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return "an object" if isinstance(value, Mapping) else type(value).__name__
