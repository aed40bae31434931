"""The kinds of values in requests, each read strictly, with what the OpenAPI document says of them."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from marshmallow import ValidationError, fields, validate

from rm_service.domain.amounts import DEVICE
from rm_service.domain.application import Instant
from rm_service.domain.resource_shapes import read_amounts
from rm_service.domain.resource_types import ResourceType
from rm_service.domain.selectors import MAX_LENGTH, Selector, SelectorError, parse_selector
from rm_service.domain.shape_fields import ShapeError
from rm_service.domain.tags import MAX_TAGS, MAX_VALUE_LENGTH, TagError, check_tags, key_fault, value_fault

MAX_SECONDS = 30 * 86_400
MAX_TEXT = 1024
MAX_ATTRIBUTES = 256
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,6})?([Zz]|[+-]\d\d:\d\d)")

Amounts = tuple[dict[str, int], dict[str, str]]
"""The amounts of a resource, and the tags that a typed shape carries along."""


def nested(path: str, reason: str) -> ValidationError:
    """A fault of a field below this one; an empty path is the field itself."""
    return ValidationError({path: [reason]} if path else reason)


class TagsField(fields.Field[dict[str, str]]):
    """Tags: an object of texts."""

    openapi: ClassVar = {
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": MAX_VALUE_LENGTH},
        "maxProperties": MAX_TAGS,
        "examples": [{"user": "alice"}],
    }

    def _deserialize(self, value: object, *_: object, **__: object) -> dict[str, str]:
        try:
            return check_tags(value)
        except TagError as error:
            raise nested(error.key, error.reason) from error


class AmountsField(fields.Field[Amounts]):
    """A resource: a plain vector, or one of the typed shapes."""

    openapi: ClassVar = {
        "type": "object",
        "description": (
            "Amounts by dimension: integers in base units (bytes, milli-cores, pieces) or quantities like"
            ' "8Gi" and "500m". The typed shapes of Linkis are read too: docs/resource-types.md.'
        ),
        "additionalProperties": True,
        "examples": [{"memory": "2Gi", "vcore": 1000, "instances": 1}],
    }

    def _deserialize(self, value: object, *_: object, **__: object) -> Amounts:
        return amounts_of(value)


class LimitField(AmountsField):
    """Amounts that may also be of devices: in thousandths, by signature."""

    def _deserialize(self, value: object, *_: object, **__: object) -> Amounts:
        return _read_amounts(value, None)


def amounts_of(document: object, resource_type: ResourceType | None = None) -> Amounts:
    """Read what somebody has or asks for. Raises ValidationError naming the dimension."""
    amounts, tags = _read_amounts(document, resource_type)
    for dimension in amounts:
        if dimension.startswith(DEVICE):
            raise nested(dimension, "devices are registered as `devices` and asked for by `classes`")
    return amounts, tags


def _read_amounts(document: object, resource_type: ResourceType | None) -> Amounts:
    try:
        return read_amounts(document, resource_type)
    except ShapeError as error:
        raise nested(error.path, error.reason) from error


class IdField(fields.Field[str]):
    """A UUID in its usual text, in lower case when read."""

    openapi: ClassVar = {"type": "string", "format": "uuid"}

    def _deserialize(self, value: object, *_: object, **__: object) -> str:
        if not isinstance(value, str) or not _UUID.fullmatch(value):
            raise ValidationError("must be a UUID, like 5ab3f2a0-1c2d-4e5f-8a9b-0c1d2e3f4a5b")
        return value.lower()


class WholeField(fields.Integer):
    """A whole number: no text, no 5.0, no true."""

    def __init__(self, least: int, most: int, **more: Any) -> None:  # noqa: ANN401 - marshmallow's own arguments
        super().__init__(strict=True, validate=validate.Range(least, most), **more)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **more: Any) -> int:  # noqa: ANN401
        if type(value) is not int:
            raise self.make_error("invalid")
        return super()._deserialize(value, attr, data, **more)


class WholeTextField(WholeField):
    """A whole number in a query, where everything is text."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **more: Any) -> int:  # noqa: ANN401
        if not re.fullmatch(r"-?[0-9]{1,19}", value):
            raise self.make_error("invalid")
        return super()._deserialize(int(value), attr, data, **more)


class SelectorField(fields.Field[Selector]):
    """A selector."""

    openapi: ClassVar = {"type": "string", "maxLength": MAX_LENGTH, "examples": ["zone in (a,b),!test"]}

    def _deserialize(self, value: object, *_: object, **__: object) -> Selector:
        if not isinstance(value, str):
            raise ValidationError("must be a text")
        try:
            return parse_selector(value)
        except SelectorError as error:
            raise ValidationError(f"character {error.position + 1}: {error.reason}") from error


class TextField(fields.String):
    """A text without control characters, not empty."""

    openapi: ClassVar = {"minLength": 1, "maxLength": MAX_TEXT}

    def __init__(self, **more: Any) -> None:  # noqa: ANN401 - marshmallow's own arguments
        super().__init__(validate=_check_text, **more)


class InstanceField(fields.String):
    """The name of a node or an engine: what can be the value of a tag."""

    openapi: ClassVar = {"minLength": 1, "maxLength": MAX_VALUE_LENGTH, "examples": ["host1:9101"]}

    def __init__(self, **more: Any) -> None:  # noqa: ANN401 - marshmallow's own arguments
        super().__init__(validate=check_instance, **more)


class TypeField(fields.Field[ResourceType]):
    """The name of a resource type."""

    openapi: ClassVar = {"type": "string", "enum": list(ResourceType.__members__)}

    def _deserialize(self, value: object, *_: object, **__: object) -> ResourceType:
        try:
            return ResourceType(value)
        except ValueError as error:
            raise ValidationError(f"must be one of {', '.join(ResourceType.__members__)}") from error


class AttributesField(fields.Field[dict[str, object]]):
    """Attributes: an object of texts, numbers and booleans, named like tags."""

    openapi: ClassVar = {
        "type": "object",
        "additionalProperties": {"type": ["string", "number", "boolean"]},
        "maxProperties": MAX_ATTRIBUTES,
    }

    def _deserialize(self, value: object, *_: object, **__: object) -> dict[str, object]:
        if not isinstance(value, Mapping):
            raise ValidationError("must be an object")
        if len(value) > MAX_ATTRIBUTES:
            raise ValidationError(f"at most {MAX_ATTRIBUTES} attributes are allowed")
        for name, attribute in value.items():
            fault = key_fault(name) or _attribute_fault(attribute)
            if fault:
                raise nested(str(name)[:MAX_TEXT], fault)
        return dict(value)


class TimeField(fields.Field[Instant]):
    """A moment as RFC 3339 has it."""

    openapi: ClassVar = {"type": "string", "format": "date-time"}

    def _deserialize(self, value: object, *_: object, **__: object) -> Instant:
        reason = "must be a time of RFC 3339, like 2026-11-20T08:00:00Z"
        if not isinstance(value, str) or not _TIME.fullmatch(value):
            raise ValidationError(reason)
        try:
            return microseconds(datetime.fromisoformat(value.upper()))
        except (ValueError, OverflowError) as error:
            raise ValidationError(reason) from error


def microseconds(moment: datetime) -> Instant:
    """Microseconds since 1970 UTC."""
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def check_instance(text: str) -> None:
    """Raise ValidationError unless the text can name a node or an engine."""
    fault = "must not be empty" if not text else value_fault(text)
    if "/" in text or "\ufffd" in text:
        fault = "must be UTF-8 without /: it stands in a path"
    if fault:
        raise ValidationError(fault)


def _check_text(text: str) -> None:
    if not text:
        raise ValidationError("must not be empty")
    fault = _attribute_fault(text)
    if fault:
        raise ValidationError(fault)


def _attribute_fault(value: object) -> str | None:
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            return f"is longer than {MAX_TEXT} characters"
        # A text may be longer than a tag's value, but holds the same characters.
        faults = (
            value_fault(value[at : at + MAX_VALUE_LENGTH]) for at in range(0, len(value), MAX_VALUE_LENGTH)
        )
        return next((fault for fault in faults if fault), None)
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return None if -(2**63) <= value < 2**63 else "does not fit 64 bits"
    if isinstance(value, float):
        return None if math.isfinite(value) else "is no finite number"
    return "must be a text, a number or a boolean"
