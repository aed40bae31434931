"""The kinds of values that requests have about devices and resource classes."""

from fractions import Fraction
from typing import Any, ClassVar

from marshmallow import ValidationError, fields

from rm_service.domain.device_attributes import AttributeValueError, read_attributes
from rm_service.domain.device_selection import MAX_CLASSES, UNIT, ClassesError, Wish, check_wishes
from rm_service.domain.quantities import QuantityError, read_quantity
from rm_service.facades.http.fields import nested

Classes = tuple[tuple[str, int], ...]
"""What is asked of each resource class, in thousandths of a device."""


class DeviceAttributesField(fields.Field[dict[str, Any]]):
    """What is known of a device. Kept as it was sent; what it means is docs/resource-classes.md."""

    openapi: ClassVar = {
        "type": "object",
        "additionalProperties": True,
        "maxProperties": 32,
        "examples": [{"Kind": "nvidia-gpu", "memory": "30G", "driver": {"version": "535.104.05"}}],
    }

    def _deserialize(self, value: object, *_: object, **__: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValidationError("must be an object")
        try:
            read_attributes(value, "")
        except AttributeValueError as error:
            reason = f"position {error.position}: {error.reason}"
            raise nested(error.field.removeprefix("."), reason) from error
        return value


class ClassesField(fields.Field[Classes]):
    """Resource classes, with how many devices of each, or what fraction of one."""

    openapi: ClassVar = {
        "type": "object",
        "description": 'A whole number of devices (2, "2") or a fraction of one ("500m"), by resource class.',
        "additionalProperties": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
        "minProperties": 1,
        "maxProperties": MAX_CLASSES,
        "examples": [{"nvidia.high.mem": 2, "fast.nic": "500m"}],
    }

    def _deserialize(self, value: object, *_: object, **__: object) -> Classes:
        if not isinstance(value, dict) or not value:
            raise ValidationError("must be an object that names at least one class")
        classes = tuple([(str(name), _thousandths(str(name), asked)) for name, asked in value.items()])
        try:
            check_wishes([Wish(name, milli, ()) for name, milli in classes])
        except ClassesError as error:
            name = error.field.removeprefix("classes").removeprefix(".")
            raise ValidationError({name: [error.reason]} if name else error.reason) from error
        return classes


def _thousandths(name: str, asked: object) -> int:
    exact = Fraction(0)
    if isinstance(asked, str):
        try:
            exact = read_quantity(asked)
        except QuantityError as error:
            raise ValidationError({name: [str(error)]}) from error
    elif isinstance(asked, int) and not isinstance(asked, bool):
        exact = Fraction(asked)
    else:
        raise ValidationError({name: ["must be a whole number or a quantity"]})
    milli = exact * UNIT
    if milli <= 0 or milli.denominator != 1:
        raise ValidationError({name: ["must be above 0, in thousandths of a device at the finest"]})
    return int(milli)
