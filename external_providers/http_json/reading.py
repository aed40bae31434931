"""From a JSON answer to places and applications, by the expressions of a configuration. Pure."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Any

from jmespath.exceptions import JMESPathError
from jmespath.parser import ParsedResult

from external_providers.base import ExternalApplication, MalformedError, Place
from external_providers.http_json.config import UNITS
from rm_service.domain.quantities import QuantityError, parse_quantity, read_quantity
from rm_service.domain.tags import value_fault

MAX_DIGITS = 40
_Expressions = Mapping[str, ParsedResult]


def read_json(body: bytes) -> object:
    """Parse it without a float on the way: what is no whole number is a Decimal. Raises MalformedError."""
    try:
        return json.loads(
            body, object_pairs_hook=_object, parse_int=_whole, parse_float=_exact, parse_constant=_no_number
        )
    except RecursionError:
        raise MalformedError("the answer is nested too deeply") from None
    except (ValueError, ArithmeticError):
        raise MalformedError("the answer is no JSON") from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Nobody knows which one is meant where a key is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise MalformedError("the answer has a key twice in one object")
    return found


def read_places(document: object, params: Mapping[str, Any]) -> list[Place]:
    """Raises MalformedError naming the place and the field."""
    units: Mapping[str, str] = params["unit"]
    found: dict[str, Place] = {}
    for at, each in enumerate(_items(document, params["places"], "places")):
        item = _Item(each, f"places[{at}]", units)
        name = item.text("name", params["name"], required=True)
        if name in found:
            raise MalformedError(f"places[{at}].name: {name} is there twice")
        item.path = name
        found[name] = Place(
            name=name,
            total=item.amounts("total", params["total"], floor),
            used=item.amounts("used", params["used"], ceil),
            guaranteed=item.amounts("guaranteed", params["guaranteed"], floor),
            pending=item.amounts("pending", params["pending"], ceil),
            open=item.flag("open", params.get("open")),
        )
    return list(found.values())


def read_applications(document: object, params: Mapping[str, Any]) -> list[ExternalApplication]:
    """Raises MalformedError naming the application and the field."""
    where: Mapping[str, Any] = params["applications"]
    found: dict[str, ExternalApplication] = {}
    for at, each in enumerate(_items(document, where["items"], "applications.items")):
        item = _Item(each, f"applications[{at}]", params["unit"])
        id_ = item.text("id", where["id"], required=True)
        if id_ in found:
            raise MalformedError(f"applications[{at}].id: {id_} is there twice")
        item.path = id_
        found[id_] = ExternalApplication(
            id=id_,
            place=item.text("place", where["place"], required=True),
            allocated=item.amounts("allocated", where["allocated"], ceil),
            state=item.text("state", where.get("state")),
            user=item.text("user", where.get("user")),
            name=item.text("name", where.get("name")),
            kind=item.text("kind", where.get("kind")),
            tags=item.words("tags", where.get("tags")),
        )
    return list(found.values())


def _items(document: object, expression: ParsedResult, path: str) -> list[Any]:
    found = _search(document, expression, path)
    if not isinstance(found, list):
        raise MalformedError(f"{path}: {expression.expression} finds no list")
    return found


def _search(document: object, expression: ParsedResult, path: str) -> object:
    try:
        return expression.search(document)
    except JMESPathError:
        raise MalformedError(f"{path}: {expression.expression} does not fit what is there") from None
    except (ArithmeticError, TypeError, ValueError, RecursionError):
        raise MalformedError(f"{path}: {expression.expression} cannot be worked out") from None


@dataclass(slots=True)
class _Item:
    """One element of a list, whose fields are read one by one; `path` names it in errors."""

    document: object
    path: str
    units: Mapping[str, str]

    def text(self, name: str, expression: ParsedResult | None, *, required: bool = False) -> str:
        found = self._find(name, expression)
        if isinstance(found, int) and not isinstance(found, bool):
            found = str(found)
        if found is None and not required:
            return ""
        fault = value_fault(found) or (None if found or not required else "is empty")
        if fault:
            raise MalformedError(f"{self.path}.{name}: {fault}")
        return str(found)

    def words(self, name: str, expression: ParsedResult | None) -> frozenset[str]:
        """A list of texts, or one text with commas between."""
        found = self._find(name, expression)
        if found is None:
            return frozenset()
        words = found.split(",") if isinstance(found, str) else found
        if not isinstance(words, list) or any(value_fault(word) for word in words):
            raise MalformedError(f"{self.path}.{name}: is neither a list of texts nor a text")
        return frozenset(word.strip() for word in words) - {""}

    def flag(self, name: str, expression: ParsedResult | None) -> bool:
        if expression is None:
            return True
        found = self._find(name, expression)
        if not isinstance(found, bool):
            raise MalformedError(f"{self.path}.{name}: is neither true nor false")
        return found

    def amounts(
        self, name: str, expressions: _Expressions, rounded: Callable[[Fraction], int]
    ) -> dict[str, int]:
        """What is there is rounded down and what is used up, where it is no whole number of base units."""
        return {
            dimension: self._amount(f"{name}.{dimension}", dimension, expression, rounded)
            for dimension, expression in expressions.items()
        }

    def _amount(
        self, name: str, dimension: str, expression: ParsedResult, rounded: Callable[[Fraction], int]
    ) -> int:
        found = self._find(name, expression)
        if found is None:
            raise MalformedError(f"{self.path}.{name}: {expression.expression} finds nothing")
        try:
            # One that no place can have is told as it is: its place alone is then left out.
            return rounded(_base_units(found, dimension, self.units.get(dimension)))
        except QuantityError as error:
            reason = error.reason.partition("'")[0].strip()  # the rest quotes what came
            raise MalformedError(f"{self.path}.{name}: {reason}") from None
        except (OverflowError, ValueError):
            raise MalformedError(f"{self.path}.{name}: is no number that can be counted with") from None

    def _find(self, name: str, expression: ParsedResult | None) -> object:
        return None if expression is None else _search(self.document, expression, f"{self.path}.{name}")


def _base_units(found: object, dimension: str, unit: str | None) -> Fraction:
    """A number counts in `unit`, else in base units; a text is a quantity, or a number of `unit`."""
    if isinstance(found, bool) or not isinstance(found, int | Decimal | float | str):
        raise QuantityError("", 0, f"is no number but {_kind(found)}")
    if isinstance(found, str) and unit is None:
        return Fraction(parse_quantity(found, dimension))
    if isinstance(found, str) and not found.replace(".", "", 1).isdigit():
        raise QuantityError(found, 0, f"is no plain number of {unit}")
    number = read_quantity(found) if isinstance(found, str) else Fraction(found)
    return number * UNITS[unit] if unit else number


def _kind(found: object) -> str:
    return {dict: "an object", list: "a list", bool: "true or false"}.get(type(found), type(found).__name__)


def _whole(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError("too many digits")
    return int(text)


def _exact(text: str) -> int | Decimal:
    """A whole number as such, however it is written: functions of expressions only take those."""
    number = Decimal(text)
    if len(text) > MAX_DIGITS or abs(number.adjusted()) > MAX_DIGITS:
        raise ValueError("too many digits")
    whole = int(number)
    return whole if whole == number else number


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")
