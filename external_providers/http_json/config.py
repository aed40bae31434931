"""The configuration of an http-json provider: addresses, and expressions that say where things stand.

Expressions are JMESPath (https://jmespath.org): a small language that can neither loop nor reach outside of
the answer. They are compiled when a provider is stored, so that a mistake is told then.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions
from jmespath.parser import ParsedResult
from marshmallow import Schema, ValidationError, fields, missing, validate, validates_schema

from external_providers.base import SECRET, ExternalResourceProviderParser, Identity
from rm_service.domain.tags import key_fault, value_fault

IDENTITY = Identity("http-json", "httpCluster", "httpPlace", frozenset())

UNITS: Mapping[str, int] = {
    "B": 1,
    **{f"{letter}iB": 1 << (10 * power) for power, letter in enumerate("KMGTPE", start=1)},
    **{f"{letter}B": 1000**power for power, letter in enumerate("kMGTPE", start=1)},
    "millicores": 1,
    "cores": 1000,
}
"""What one of it is in base units."""
_OF_CORES = ("millicores", "cores")

MAX_EXPRESSION = 512
MAX_DIMENSIONS = 64
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")
_NOT_OURS = {"connection", "content-length", "host", "transfer-encoding", "accept-encoding"}


class Expression(fields.Field[ParsedResult]):
    """A JMESPath expression, compiled."""

    def _deserialize(self, value: object, attr: str | None, data: object, **kwargs: Any) -> ParsedResult:  # noqa: ANN401, ARG002 - marshmallow's own signature
        if not isinstance(value, str):
            raise ValidationError("Not a valid string.")
        if len(value) > MAX_EXPRESSION:
            raise ValidationError(f"Longer than {MAX_EXPRESSION} characters.")
        try:
            parsed = jmespath.compile(value)
            unknown = set(_functions(parsed.parsed)) - Functions.FUNCTION_TABLE.keys()
        except JMESPathError as error:
            raise ValidationError(f"No JMESPath expression: {_reason(error)}") from None
        except RecursionError:
            raise ValidationError("No JMESPath expression: nested too deeply") from None
        if unknown:
            raise ValidationError(f"There is no function {', '.join(sorted(unknown))}.")
        return parsed


def _functions(node: Mapping[str, Any]) -> Iterator[str]:
    """The names of all functions that are called in an expression."""
    if node["type"] == "function_expression":
        yield node["value"]
    for child in node["children"]:
        yield from _functions(child)


def _reason(error: JMESPathError) -> str:
    """Its first line; the others draw an arrow under the expression."""
    return str(error).partition("\n")[0].rstrip(":")


def _amounts(*, required: bool = False) -> fields.Dict:
    """Expressions by dimension."""
    return fields.Dict(
        keys=fields.String(validate=_check_dimension),
        values=Expression(),
        required=required,
        load_default=missing if required else dict,
        validate=validate.Length(min=1 if required else 0, max=MAX_DIMENSIONS),
    )


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValidationError("Not a valid URL.") from None
    if parts.scheme not in {"http", "https"}:
        raise ValidationError("Must begin with http:// or https://.")
    if parts.username is not None or parts.password is not None:
        raise ValidationError("Must not hold credentials: put them into headers.")
    if not parts.hostname or port == 0 or not url.isascii() or not url.isprintable() or " " in url:
        raise ValidationError("Not a valid URL.")


def _check_headers(headers: Mapping[str, str]) -> None:
    """Without repeating a value: they are secrets."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or name.lower() in _NOT_OURS:
            raise ValidationError(f"{name[:64]!r} cannot be set.")
        if not _HEADER_VALUE.fullmatch(value):
            raise ValidationError(f"The value of {name} cannot be sent.")


def _check_text(value: str) -> None:
    if fault := value_fault(value):
        raise ValidationError(f"Cannot be used: {fault}.")


def _check_dimension(name: str) -> None:
    if fault := key_fault(name):
        raise ValidationError(f"{name[:64]!r} is no dimension: {fault}.")


def _check_path(path: str) -> None:
    if not path.startswith("/") or not path.isprintable():
        raise ValidationError("Must be an absolute path.")


class ApplicationsSchema(Schema):
    """Where the applications stand, and in each of them."""

    url = fields.String(validate=[validate.Length(max=2048), _check_url])
    items = Expression(required=True)
    id = Expression(required=True)
    place = Expression(required=True)
    allocated = _amounts(required=True)
    state = Expression()
    user = Expression()
    name = Expression()
    kind = Expression()
    tags = Expression()


class HttpJsonSchema(Schema):
    """The configuration of an http-json provider."""

    url = fields.String(required=True, validate=[validate.Length(max=2048), _check_url])
    headers = fields.Dict(
        keys=fields.String(),
        values=fields.String(metadata=SECRET),
        load_default=dict,
        validate=[validate.Length(max=64), _check_headers],
    )
    cluster = fields.String(validate=[validate.Length(min=1), _check_text])
    verify = fields.Boolean(load_default=True)
    ca_file = fields.String(load_default=None, validate=[validate.Length(max=4096), _check_path])
    connect_timeout_seconds = fields.Float(
        load_default=2.0, validate=validate.Range(min=0, min_inclusive=False, max=60)
    )
    places = Expression(required=True)
    name = Expression(required=True)
    total = _amounts(required=True)
    used = _amounts(required=True)
    guaranteed = _amounts()
    pending = _amounts()
    open = Expression()
    unit = fields.Dict(
        keys=fields.String(), values=fields.String(validate=validate.OneOf(list(UNITS))), load_default=dict
    )
    applications = fields.Nested(ApplicationsSchema)

    @validates_schema(skip_on_field_errors=True)
    def _check_units(self, data: Mapping[str, Any], **_: object) -> None:
        for dimension, unit in data["unit"].items():
            of_cores = dimension.rpartition(".")[2] == "vcore"
            if of_cores is not (unit in _OF_CORES):
                counted = "cores" if of_cores else "anything else"
                raise ValidationError({"unit": {dimension: [f"{unit} is no unit of {counted}."]}})
            if dimension not in data["total"]:
                raise ValidationError({"unit": {dimension: ["There is no such dimension in total."]}})

    @validates_schema(skip_on_field_errors=True)
    def _check_dimensions(self, data: Mapping[str, Any], **_: object) -> None:
        parts = {name: data[name] for name in ("used", "guaranteed", "pending")}
        parts["applications.allocated"] = data.get("applications", {}).get("allocated", {})
        for name, amounts in parts.items():
            for dimension in amounts.keys() - data["total"].keys():
                raise ValidationError({f"{name}.{dimension}": ["There is no such dimension in total."]})
        for dimension in data["total"].keys() - data["used"].keys():
            raise ValidationError({f"used.{dimension}": ["Missing: what is used is not nothing by silence."]})


RECIPIENTS = ("url", "applications.url", "verify", "ca_file")
PARSER = ExternalResourceProviderParser(IDENTITY, HttpJsonSchema, RECIPIENTS)
