"""The shapes of answers about devices and resource classes."""

from typing import Any

from marshmallow import Schema, fields

_QUANTITY = {"description": "A number of devices as a quantity.", "examples": ["2", "500m"]}


def _text(*, can_miss: bool = False) -> fields.String:
    return fields.String(required=True, allow_none=can_miss)


def _quantity() -> fields.String:
    return fields.String(required=True, metadata=_QUANTITY)


def _list(schema: type[Schema]) -> fields.List[Any]:
    return fields.List(fields.Nested(schema), required=True)


class DeviceAnswerSchema(Schema):
    """Devices of one kind."""

    name = _text()
    count = fields.Integer(required=True)
    attributes = fields.Dict(required=True)


class FreeDeviceSchema(Schema):
    """What is free of a device."""

    name = _text()
    signature = fields.String(required=True, metadata={"description": "Stands for its attributes."})
    count = fields.Integer(required=True)
    free = fields.Integer(required=True)
    largest_fraction = fields.String(
        required=True, metadata={"description": "The most that any one unit has left."}
    )


class UnitSchema(Schema):
    """A unit of a device, with the part of it that is held."""

    unit = fields.Integer(required=True)
    quantity = _quantity()


HeldSchema = Schema.from_dict(
    {
        "class": _text(),
        "device": _text(),
        "quantity": _quantity(),
        "units": _list(UnitSchema),
    },
    name="HeldSchema",
)
"""Units of one device that an application was given by one class."""


class AssignmentSchema(Schema):
    """What a node's agent is to set up for one application."""

    application = fields.UUID(required=True)
    state = _text()
    tags = fields.Dict(keys=fields.String(), values=fields.String(), required=True)
    devices = _list(HeldSchema)
    annotations = fields.Dict(keys=fields.String(), values=fields.String(), required=True)


class AssignmentsSchema(Schema):
    """All assignments of a node; `seq` is the number of the last event they take in."""

    seq = fields.Integer(required=True)
    items = _list(AssignmentSchema)
    next_cursor = _text(can_miss=True)


class ClassSchema(Schema):
    """A resource class and how it stands. A device counts in every class that selects it."""

    name = _text()
    uid = _text()
    spec = fields.Dict(required=True)
    allocatable = _quantity()
    requested = _quantity()
    free = _quantity()
    uncomparable = fields.Integer(
        required=True, metadata={"description": "Devices that could not be compared."}
    )
    uncomparable_reasons = fields.List(fields.String(), required=True)


class ClassesSchema(Schema):
    """All resource classes."""

    items = _list(ClassSchema)
    next_cursor = _text(can_miss=True)


class ExpressionSchema(Schema):
    """How one expression came out: device value OP class value."""

    outcome = _text()
    text = _text()
    why = _text()


class SelectorSchema(Schema):
    """How one selector came out."""

    outcome = _text()
    expressions = _list(ExpressionSchema)


class SignatureSchema(Schema):
    """The devices with one set of attributes."""

    signature = _text()
    attributes = fields.Dict(required=True)
    selected = fields.Boolean(required=True)
    devices = fields.Integer(required=True)
    requested = _quantity()
    selectors = _list(SelectorSchema)


OverlapSchema = Schema.from_dict(
    {
        "class": _text(),
        "shared": _quantity(),
        "shared_free": _quantity(),
        "free_without_shared": _quantity(),
    },
    name="OverlapSchema",
)
"""What a class shares with another one."""


class ClassExplainedSchema(ClassSchema):
    """A resource class with every signature of devices and every class that it overlaps."""

    signatures = _list(SignatureSchema)
    overlaps = _list(OverlapSchema)
