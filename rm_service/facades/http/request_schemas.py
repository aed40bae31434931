"""The bodies and queries of requests. What is not named here is refused by its name."""

from typing import Any

from marshmallow import Schema, ValidationError, fields, post_load, validate, validates_schema

from rm_service.domain.device_strategies import STRATEGIES as DEVICE_STRATEGIES
from rm_service.domain.placement import STRATEGIES
from rm_service.domain.resource_types import ResourceType
from rm_service.domain.selectors import Selector
from rm_service.facades.http.device_fields import ClassesField, DeviceAttributesField
from rm_service.facades.http.fields import (
    MAX_SECONDS,
    AmountsField,
    AttributesField,
    IdField,
    InstanceField,
    LimitField,
    SelectorField,
    TagsField,
    TextField,
    TimeField,
    TypeField,
    WholeField,
    WholeTextField,
    amounts_of,
)

MAX_PAGE = 1000
MAX_OPERATIONS = 1000
MAX_DEVICES = 4096
MAX_ALTERNATIVES = 8
MAX_EXTERNAL_IDS = 16

Loaded = dict[str, Any]


class PlacementSchema(Schema):
    """Ask for a node instead of naming one."""

    selector = SelectorField(load_default=Selector, metadata={"examples": ["gpu=T4"]})
    strategy = fields.String(load_default="first_fit", validate=validate.OneOf(STRATEGIES))


class ApplySchema(Schema):
    """Ask for a resource under tags."""

    tags = TagsField(required=True)
    resource = AmountsField(metadata={"description": "It may be left out where classes are asked for."})
    classes = ClassesField()
    device_strategy = fields.String(
        validate=validate.OneOf(DEVICE_STRATEGIES),
        metadata={"description": "Which devices of the node are taken; the default is a setting."},
    )
    id = IdField(metadata={"description": "A UUID made by the client; the same again repeats the request."})
    wait_seconds = WholeField(0, MAX_SECONDS, metadata={"description": "0: refused at once; the default."})
    lock_seconds = WholeField(1, MAX_SECONDS, metadata={"description": "How long an unused lock lasts."})
    priority = WholeField(-1_000_000_000, 1_000_000_000, metadata={"description": "Higher goes first."})
    placement = fields.Nested(PlacementSchema)
    alternatives = fields.List(
        TagsField(),
        validate=validate.Length(1, MAX_ALTERNATIVES),
        metadata={
            "description": "Tags to take instead, in the order of preference, where there is no room.",
            "examples": [[{"yarnCluster": "c2", "yarnQueue": "root.spare"}]],
        },
    )

    @validates_schema(skip_on_field_errors=True)
    def check(self, data: Loaded, **_: object) -> None:
        """What the fields say together."""
        if "resource" not in data and "classes" not in data:
            raise ValidationError("is required, unless there are classes", "resource")
        amounts, tags = data.get("resource", ({}, {}))
        if not any(amounts.values()) and "classes" not in data:
            raise ValidationError("at least one amount must be above 0", "resource")
        if "device_strategy" in data and "classes" not in data:
            raise ValidationError("stands only beside classes", "device_strategy")
        for key, value in tags.items():
            if data["tags"].get(key, value) != value:
                reason = f"is {data['tags'][key]!r}, but the resource names {value!r}"
                raise ValidationError({"tags": {key: [reason]}})
        if "placement" in data and "node" in data["tags"]:
            raise ValidationError("the tag node names one already", "placement")


class ReportSchema(Schema):
    """What is really used; a dimension that is not named keeps its amount."""

    resource = AmountsField()


def _external_ids() -> fields.List[Any]:
    return fields.List(
        InstanceField(),
        load_default=(),
        validate=validate.Length(max=MAX_EXTERNAL_IDS),
        metadata={
            "description": "What the application is called by its external manager; several add up.",
            "examples": [["application_1700000000000_0001"]],
        },
    )


class UseSchema(ReportSchema):
    """What is really used, and what the application is called elsewhere."""

    external_ids = _external_ids()


class RenewSchema(Schema):
    """Start the lock's lease anew."""

    lock_seconds = WholeField(1, MAX_SECONDS)


class EmptySchema(Schema):
    """Nothing needs to be said."""


class ApplyOperationSchema(ApplySchema):
    """`apply` in a batch."""

    op = fields.String(required=True)


class UseOperationSchema(UseSchema):
    """`use` in a batch."""

    op = fields.String(required=True)
    id = IdField(required=True)


class RenewOperationSchema(RenewSchema):
    """`renew` in a batch."""

    op = fields.String(required=True)
    id = IdField(required=True)


class ReleaseOperationSchema(Schema):
    """`release` in a batch."""

    op = fields.String(required=True)
    id = IdField(required=True)


BATCH_OPERATIONS: dict[str, Schema] = {
    "apply": ApplyOperationSchema(),
    "use": UseOperationSchema(),
    "renew": RenewOperationSchema(),
    "release": ReleaseOperationSchema(),
}


class OperationField(fields.Field[Loaded]):
    """One operation of a batch: `op` says which."""

    def _deserialize(self, value: object, *_: object, **__: object) -> Loaded:
        if not isinstance(value, dict):
            raise ValidationError("must be an object")
        schema = BATCH_OPERATIONS.get(str(value.get("op")))
        if schema is None:
            raise ValidationError({"op": [f"must be one of {', '.join(BATCH_OPERATIONS)}"]})
        loaded: Loaded = schema.load(value)
        return loaded


class BatchSchema(Schema):
    """Operations in their order."""

    operations = fields.List(
        OperationField(
            metadata={
                "type": "object",
                "required": ["op"],
                "properties": {"op": {"type": "string", "enum": list(BATCH_OPERATIONS)}},
                "description": "`op`, the fields of that call's body, and `id` for all but `apply`.",
                "example": {"op": "release", "id": "01a1f7aa-c970-7464-95f6-322eeb11b8ca"},
            }
        ),
        required=True,
        validate=validate.Length(min=1, max=MAX_OPERATIONS),
    )
    atomic = fields.Boolean(
        load_default=False,
        truthy={True},
        falsy={False},
        metadata={"description": "All of them or none; a wait counts as a refusal."},
    )


class DeviceSchema(Schema):
    """Devices of one kind on a node."""

    name = InstanceField(required=True)
    count = WholeField(1, 1_000_000, load_default=1)
    attributes = DeviceAttributesField(load_default=dict)


class NodeSchema(Schema):
    """What a node has."""

    resource_type = TypeField(load_default=ResourceType.LoadInstance)
    total = fields.Raw(required=True, metadata=AmountsField.openapi)
    protected = fields.Raw(load_default=dict, metadata=AmountsField.openapi)
    tags = TagsField(load_default=dict)
    attributes = AttributesField(load_default=dict)
    devices = fields.List(
        fields.Nested(DeviceSchema), load_default=list, validate=validate.Length(max=MAX_DEVICES)
    )
    applications = fields.List(
        IdField(),
        load_default=list,
        validate=validate.Length(max=10_000),
        metadata={"description": "What runs there; those given up as lost are booked again."},
    )

    @post_load
    def read_amounts(self, data: Loaded, **_: object) -> Loaded:
        """Total and protected, whose shape the type decides; a typed shape's tags are the node's."""
        kind = data["resource_type"]
        total, tags = _amounts("total", data["total"], kind)
        protected, _more = _amounts("protected", data["protected"], kind) if data["protected"] else ({}, {})
        for dimension, amount in protected.items():
            if amount > total.get(dimension, 0):
                reason = f"{amount} is more than the total {total.get(dimension, 0)}"
                raise ValidationError({"protected": {dimension: [reason]}})
        names = [device["name"] for device in data["devices"]]
        if len(set(names)) < len(names):
            raise ValidationError("two devices have one name", "devices")
        return {**data, "total": total, "protected": protected, "tags": {**tags, **data["tags"]}}


def _amounts(name: str, document: object, kind: ResourceType) -> tuple[dict[str, int], dict[str, str]]:
    try:
        return amounts_of(document, kind)
    except ValidationError as error:
        raise ValidationError({name: error.messages}) from error


class DrainSchema(Schema):
    """Why the node is drained."""

    reason = TextField()


class EngineSchema(Schema):
    """A started engine, the application it runs for, and what it really uses."""

    application = IdField(required=True)
    node = InstanceField()
    resource = AmountsField()
    tags = TagsField(load_default=dict)
    external_ids = _external_ids()


class LimitSchema(Schema):
    """The limit of a tag combination; the value `*` gives every value its own."""

    tags = TagsField(required=True)
    total = LimitField(required=True)
    protected = LimitField(load_default=lambda: ({}, {}))


class PageQuery(Schema):
    """One page of a list."""

    limit = WholeTextField(1, MAX_PAGE, load_default=100)
    cursor = fields.String(metadata={"description": "`next_cursor` of the page before."})


class SelectorQuery(PageQuery):
    """A page of what a selector selects."""

    selector = SelectorField(load_default=Selector)


class ApplicationsQuery(PageQuery):
    """Which applications, newest first."""

    state = fields.String(metadata={"description": "States, separated by commas."})
    tag = SelectorField(load_default=Selector, metadata={"description": "A selector over the tags."})


class PartitionQuery(Schema):
    """Whose node of this name is meant."""

    partition = fields.String(
        load_default="",
        metadata={"description": "The partition of a resource manager; without it the ledger's own nodes."},
    )


class WaitQuery(Schema):
    """How long to wait for an application that waits."""

    wait = WholeTextField(0, 300, metadata={"description": "Seconds; answered as soon as it waits no more."})


class UsageQuery(Schema):
    """Usage by which tags, of what, and when."""

    by = fields.String(required=True, metadata={"description": "Tag keys, separated by commas."})
    where = SelectorField(load_default=Selector)
    at = TimeField(metadata={"description": "A past moment."})


class EventsQuery(Schema):
    """Events after a number."""

    after = WholeTextField(0, 2**63 - 1, load_default=0)
    cursor = fields.String(metadata={"description": "`next_cursor` of the page before, instead of `after`."})
    limit = WholeTextField(1, MAX_PAGE, load_default=100)
    selector = SelectorField(
        load_default=Selector,
        metadata={"description": "Over the tags: a page holds those of its events that match."},
    )
    kind = fields.String(
        metadata={"description": "How the kind begins: a page holds those of its events that match."}
    )
