"""What the API answers, for the OpenAPI document; a test holds every real answer against these."""

from typing import Any

from marshmallow import INCLUDE, Schema, fields, validate

from rm_service.domain.application import State
from rm_service.domain.clients import ClientState
from rm_service.facades.http.device_answer_schemas import DeviceAnswerSchema, FreeDeviceSchema, HeldSchema
from rm_service.ledger.queries.nodes import NodeState
from rm_service.ledger.queries.usage import Source

_NAMES = fields.String()


def _amounts(what: str = "", *, can_miss: bool = False, negative: bool = False) -> fields.Dict:
    words = f"{what} Integers in base units, by dimension.".lstrip() + (
        " May be below 0." if negative else ""
    )
    return fields.Dict(
        keys=_NAMES,
        values=fields.Integer(strict=True),
        required=True,
        allow_none=can_miss,
        metadata={"description": words, "examples": [{"memory": 2147483648, "vcore": 1000}]},
    )


def _tags(*, can_miss: bool = False) -> fields.Dict:
    return fields.Dict(
        keys=_NAMES,
        values=fields.String(),
        required=True,
        allow_none=can_miss,
        metadata={"examples": [{"user": "alice"}]},
    )


def _text(*, can_miss: bool = False, **more: Any) -> fields.String:  # noqa: ANN401 - marshmallow's own arguments
    return fields.String(required=True, allow_none=can_miss, **more)


def _whole(*, can_miss: bool = False) -> fields.Integer:
    return fields.Integer(required=True, allow_none=can_miss, strict=True)


def _time(*, can_miss: bool = False) -> fields.String:
    return fields.String(
        required=True,
        allow_none=can_miss,
        metadata={"format": "date-time", "examples": ["2026-11-20T08:00:00.000000Z"]},
    )


def _state() -> fields.String:
    return fields.String(required=True, validate=validate.OneOf([state.value for state in State]))


def _list(of: type[Schema]) -> fields.List[Any]:
    return fields.List(fields.Nested(of), required=True)


def _yes() -> fields.Boolean:
    return fields.Boolean(required=True)


def _labels() -> fields.List[Any]:
    return fields.List(_tags(), required=True, metadata={"description": "The labels charged."})


def _page(name: str, item: type[Schema]) -> type[Schema]:
    return Schema.from_dict({"items": _list(item), "next_cursor": _text(can_miss=True)}, name=name)


class TransitionSchema(Schema):
    """A state, and when it was come into."""

    state = _state()
    time = _time()


class ExternalSchema(Schema):
    """What an application is in an external manager."""

    ids = fields.List(fields.String(), required=True)
    shown = _amounts("What the manager's list showed of it at the last look.")


class PlacementAnswerSchema(Schema):
    """What node was asked for."""

    selector = _text()
    strategy = _text()


class ApplicationSchema(Schema):
    """An application."""

    id = fields.UUID(required=True)
    state = _state()
    node = _text(can_miss=True)
    labels = _labels()
    resource = _amounts()
    requested = _amounts()
    tags = _tags()
    lock_deadline = _time(can_miss=True)
    wait_deadline = _time(can_miss=True)
    reason = _text(can_miss=True, metadata={"description": "Why it waits, or how it ended."})
    position = fields.Integer(
        required=True, allow_none=True, metadata={"description": "Its place in the queue, from 1."}
    )
    priority = _whole()
    over_limit = _yes()
    engine = _text(can_miss=True)
    placement = fields.Nested(PlacementAnswerSchema, required=True, allow_none=True)
    client = _text(can_miss=True, metadata={"description": "The resource manager that asked for it."})
    parent = fields.UUID(
        required=True, allow_none=True, metadata={"description": "The application that it is a member of."}
    )
    phase = _text(can_miss=True, metadata={"description": "Of a resource manager's application."})
    external = fields.Nested(ExternalSchema, required=True, allow_none=True)
    classes = fields.Dict(keys=fields.String(), values=fields.String(), required=True, allow_none=True)
    devices = _list(HeldSchema)
    annotations = fields.Dict(keys=fields.String(), values=fields.String(), required=True)
    transitions = _list(TransitionSchema)


class ShortfallSchema(Schema):
    """One label and dimension that is short."""

    label = _tags()
    dimension = _text()
    requested = _whole()
    left = _whole()
    total = _whole()
    protected = _whole()
    locked = _whole()
    used = _whole()
    others = fields.Integer(
        strict=True,
        metadata={
            "description": "Only on an external label: what is used there and is not known to be ours, with"
            " what was ours and may go on there."
        },
    )
    reason = _text(
        metadata={"description": "`short`, `waiters_ahead`, `draining`, `lost`, `no_node_fits`, …"}
    )


class HolderSchema(Schema):
    """An application and how much it holds."""

    id = fields.UUID(required=True)
    state = _state()
    tags = _tags()
    amount = _whole()


class InTheWaySchema(Schema):
    """The largest holders of a label in one dimension."""

    label = _tags()
    dimension = _text()
    holders = _list(HolderSchema)


class ExplanationSchema(Schema):
    """What an application would be answered just now."""

    would_fit = _yes()
    node = _text(can_miss=True)
    labels = _labels()
    devices = _list(HeldSchema)
    code = _text(can_miss=True)
    detail = _text(can_miss=True)
    shortfalls = _list(ShortfallSchema)
    waiters_ahead = _whole()
    warnings = fields.List(
        fields.String(),
        required=True,
        metadata={"description": "What is granted to anybody, because no place is charged with it."},
    )
    largest_holders = _list(InTheWaySchema)


class ResultSchema(Schema):
    """What the single call would have been answered: an application or a problem, with its status."""

    class Meta:
        unknown = INCLUDE

    status = _whole()


class BatchResultsSchema(Schema):
    """One result for each operation, in order."""

    results = _list(ResultSchema)


class AmountsSchema(Schema):
    """total - protected - locked - used = left, in each dimension that has a total."""

    total = _amounts(can_miss=True)
    protected = _amounts(can_miss=True)
    locked = _amounts()
    used = _amounts()
    left = _amounts(can_miss=True, negative=True)


class NodeSchema(AmountsSchema):
    """A node."""

    instance = _text()
    partition = _text(can_miss=True)
    state = fields.String(required=True, validate=validate.OneOf([state.value for state in NodeState]))
    resource_type = _text()
    target = _whole()
    applications = _whole()
    tags = _tags()
    attributes = fields.Dict(required=True)
    devices = _list(DeviceAnswerSchema)
    free_devices = _list(FreeDeviceSchema)
    over_limit = _yes()
    reason = _text(can_miss=True)
    registered_at = _time()
    last_heartbeat = _time(can_miss=True)
    heartbeat_deadline = _time(can_miss=True)


class ResourceManagerSchema(Schema):
    """A resource manager that has registered through the Scheduler Interface."""

    id = _text()
    dialect = _text(can_miss=True)
    version = _text()
    policy_group = _text()
    build_info = fields.Dict(keys=fields.String(), values=fields.String(), required=True)
    extra_config = fields.Dict(
        keys=fields.String(),
        values=fields.String(),
        required=True,
        metadata={"description": "Values hidden."},
    )
    state = fields.String(required=True, validate=validate.OneOf([state.value for state in ClientState]))
    registrations = _whole()
    registered_at = _time()
    resync_until = _time(can_miss=True)


class ResourceManagersSchema(Schema):
    """All resource managers."""

    items = _list(ResourceManagerSchema)


class EngineSchema(Schema):
    """A started engine."""

    instance = _text()
    application = fields.UUID(required=True)
    state = _state()
    node = _text(can_miss=True)
    resource = _amounts()
    tags = _tags()
    labels = _labels()
    over_limit = _yes()
    registered_at = _time()
    last_heartbeat = _time(can_miss=True)
    heartbeat_deadline = _time(can_miss=True)


class LimitSchema(Schema):
    """A limit."""

    id = _whole()
    tags = _tags()
    total = _amounts()
    protected = _amounts()
    source = _text(
        metadata={
            "description": "Whose word it is: `operator`, `rm:ID` (the configuration of a resource manager),"
            " `http` (the configuration service)."
        }
    )


class PlaceSchema(Schema):
    """What the external manager behind a label was last seen to say."""

    provider = _text()
    observed = _amounts("What is used there, by whomever.")
    others = _amounts("Of that, what is not known to be ours; with what has ended here and may go on there.")
    observed_at = _time()
    stale_at = _time(can_miss=True)
    ignored_when_stale = _yes()
    seen = _amounts("Of what is locked and used here, how much the manager shows.")
    unseen = _amounts("The rest: promised, and not shown yet.")


class LabelSchema(AmountsSchema):
    """A label with its balance."""

    id = _whole()
    tags = _tags()
    rule = _text(can_miss=True)
    kind = fields.String(
        required=True, allow_none=True, validate=validate.OneOf(["capacity", "quota", "rollup"])
    )
    applications = _whole()
    closed = _text(can_miss=True)
    over_limit = _yes()
    waiters = _yes()
    external = fields.Nested(PlaceSchema, required=True, allow_none=True)


class UsageRowSchema(AmountsSchema):
    """What the applications with these tags hold together."""

    tags = _tags()
    applications = _whole()


class UsageSchema(Schema):
    """Usage by tags."""

    by = fields.List(fields.String(), required=True)
    source = fields.String(required=True, validate=validate.OneOf([source.value for source in Source]))
    rows = _list(UsageRowSchema)


class EventSchema(Schema):
    """An event of the outbox."""

    seq = _whole()
    time = _time()
    kind = _text()
    subject = _text()
    tags = _tags(can_miss=True)
    labels = _labels()
    resource = _amounts()
    locked = _amounts(negative=True)
    used = _amounts(negative=True)
    detail = fields.Dict(required=True, allow_none=True)


class DifferenceSchema(Schema):
    """One thing that is not as it must be."""

    check = _text()
    field = _text()
    expected = fields.Raw(required=True, allow_none=True)
    found = fields.Raw(required=True, allow_none=True)
    label = _tags(can_miss=True)
    subject = _text(can_miss=True)
    dimension = _text(can_miss=True)


class OverLimitSchema(Schema):
    """A label that holds more than it may, because a report said so or its total was lowered."""

    label = _tags()
    excess = _amounts()


class AuditSchema(Schema):
    """Whether the books balance."""

    consistent = _yes()
    seq = _whole()
    labels_checked = _whole()
    applications_checked = _whole()
    events_folded = _whole()
    differences = _list(DifferenceSchema)
    truncated = _yes()
    over_limit = _list(OverLimitSchema)


class ProblemSchema(Schema):
    """A problem document (RFC 9457)."""

    status = _whole()
    title = _text()
    detail = _text()
    code = _text(metadata={"description": "Stable; docs/problems.md lists them."})
    errors = fields.Dict(
        keys=_NAMES,
        values=fields.List(fields.String()),
        metadata={"description": "Messages by the path of the field, like `resource.memory`."},
    )
    shortfalls = fields.List(fields.Nested(ShortfallSchema))
    state = fields.String()
    field = fields.String()
    label = fields.Dict(keys=_NAMES, values=fields.String())


ApplicationsSchema = _page("ApplicationsSchema", ApplicationSchema)
NodesSchema = _page("NodesSchema", NodeSchema)
EnginesSchema = _page("EnginesSchema", EngineSchema)
LimitsSchema = _page("LimitsSchema", LimitSchema)
LabelsSchema = _page("LabelsSchema", LabelSchema)
EventsSchema = _page("EventsSchema", EventSchema)
