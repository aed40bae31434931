"""Bodies and answers of external providers. What a request does not know is refused by its name."""

from typing import Any

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from rm_service.domain.providers import StalePolicy
from rm_service.facades.http.fields import MAX_SECONDS, AmountsField, SelectorField, WholeField
from rm_service.facades.http.request_schemas import PageQuery
from rm_service.services.external.breaker import BreakerState
from rm_service.services.external.feeds import ProviderState
from rm_service.services.external.fetching import FaultKind

_DAY = 86_400


class StoreProviderSchema(Schema):
    """An external provider."""

    config = fields.Dict(
        keys=fields.String(),
        required=True,
        metadata={
            "description": "What its plugin needs to know: docs/external-providers.md. A secret that is sent"
            " as `***` stays as it is."
        },
    )
    labels = SelectorField(
        metadata={"description": "Labels that it speaks for. Without: those that its plugin says."}
    )
    stale_policy = fields.String(
        load_default=StalePolicy.DENY.value,
        validate=validate.OneOf([policy.value for policy in StalePolicy]),
        metadata={"description": "What counts when its latest snapshot is older than `stale_seconds`."},
    )
    refresh_seconds = WholeField(1, _DAY, load_default=10)
    stale_seconds = WholeField(2, MAX_SECONDS, load_default=60)
    protected = AmountsField(load_default=lambda: ({}, {}), metadata={"description": "Of each place."})

    @validates_schema(skip_on_field_errors=True)
    def check(self, data: dict[str, Any], **_: object) -> None:
        """What the fields say together."""
        if data["stale_seconds"] <= data["refresh_seconds"]:
            raise ValidationError("must be more than refresh_seconds", "stale_seconds")


class PlaceQuery(PageQuery):
    """One page, of all places or of one."""

    place = fields.String(metadata={"description": "Only the place of this name."})


def _amounts() -> fields.Dict:
    return fields.Dict(
        keys=fields.String(),
        values=fields.Integer(strict=True),
        required=True,
        metadata={"description": "Integers in base units, by dimension."},
    )


def _text(*, can_miss: bool = False) -> fields.String:
    return fields.String(required=True, allow_none=can_miss)


def _time(*, can_miss: bool = False) -> fields.String:
    return fields.String(required=True, allow_none=can_miss, metadata={"format": "date-time"})


def _whole() -> fields.Integer:
    return fields.Integer(required=True, strict=True)


def _age() -> fields.Float:
    return fields.Float(
        required=True, allow_none=True, metadata={"description": "Of the latest snapshot, in seconds."}
    )


def _yes() -> fields.Boolean:
    return fields.Boolean(required=True)


def _one_of(*choices: str, can_miss: bool = False) -> fields.String:
    return fields.String(required=True, allow_none=can_miss, validate=validate.OneOf(choices))


class FaultSchema(Schema):
    """Why a look at a provider brought nothing."""

    kind = _one_of(*FaultKind)
    reason = _text()
    time = _time()


class HealthSchema(Schema):
    """What the plugin says of its manager, at most a minute ago; null once a later look says otherwise."""

    ok = _yes()
    detail = _text()


class StandingSchema(Schema):
    """How a provider stands in the process that answers."""

    state = _one_of(*ProviderState)
    problem = fields.String(
        required=True, allow_none=True, metadata={"description": "Why it cannot be asked at all."}
    )
    age_seconds = _age()
    stale = _yes()
    fetched_at = _time(can_miss=True)
    fetch_seconds = fields.Float(required=True, allow_none=True)
    breaker = _one_of(*BreakerState)
    failures = fields.Integer(required=True, strict=True, metadata={"description": "In a row."})
    last_error = fields.Nested(FaultSchema, required=True, allow_none=True)
    health = fields.Nested(HealthSchema, required=True, allow_none=True)
    stuck = fields.Integer(
        required=True,
        strict=True,
        metadata={"description": "Calls that were given up and have not come back."},
    )


class ProviderSchema(Schema):
    """An external provider; in its configuration `***` stands for each secret."""

    type = _text()
    name = _text()
    labels = _text()
    config = fields.Dict(required=True)
    stale_policy = _one_of(*StalePolicy)
    refresh_seconds = _whole()
    stale_seconds = _whole()
    protected = _amounts()
    version = _whole()
    created_at = _time()
    updated_at = _time()
    standing = fields.Nested(
        StandingSchema,
        required=True,
        allow_none=True,
        metadata={"description": "null: this process does not follow it yet."},
    )


class PluginFaultSchema(Schema):
    """A plugin that was found and is not used."""

    type = _text()
    distributions = fields.List(fields.String(), required=True)
    reason = _text()


class ProvidersSchema(Schema):
    """All external providers."""

    items = fields.List(fields.Nested(ProviderSchema), required=True)
    next_cursor = _text(can_miss=True)
    types = fields.List(
        fields.String(), required=True, metadata={"description": "Those that there are plugins for."}
    )
    plugin_faults = fields.List(fields.Nested(PluginFaultSchema), required=True)


class PlaceSchema(Schema):
    """A queue, a namespace: whatever the manager has."""

    name = _text()
    total = _amounts()
    used = _amounts()
    guaranteed = _amounts()
    pending = _amounts()
    open = fields.Boolean(
        required=True, metadata={"description": "Whether the manager takes anything new there."}
    )
    details = fields.Dict(required=True)


class SnapshotSchema(StandingSchema):
    """What a manager had at the last look."""

    type = _text()
    name = _text()
    items = fields.List(
        fields.Nested(PlaceSchema), required=True, metadata={"description": "The places, by name."}
    )
    next_cursor = _text(can_miss=True)


class ExternalApplicationSchema(Schema):
    """An application as its manager shows it."""

    id = _text()
    place = _text()
    allocated = _amounts()
    state = _text()
    user = _text()
    name = _text()
    kind = _text()
    tags = fields.List(fields.String(), required=True)


class ExternalApplicationsSchema(Schema):
    """What runs there, whoever asked for it."""

    items = fields.List(
        fields.Nested(ExternalApplicationSchema),
        required=True,
        metadata={"description": "By their ids."},
    )
    next_cursor = _text(can_miss=True)
    age_seconds = _age()
    fetched_at = _time(can_miss=True)
