"""External providers over HTTP: stored, listed, taken away, and what their managers had at the last look."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from external_providers.base import ExternalApplication, Place
from rm_service.domain.outcomes import Code, Refused
from rm_service.domain.providers import StalePolicy, provider_key
from rm_service.facades.http.endpoints import Call, Endpoint, Reply, refusal
from rm_service.facades.http.paths import checked_name
from rm_service.facades.http.problems import ProblemError, invalid_fields
from rm_service.facades.http.provider_schemas import (
    ExternalApplicationsSchema,
    PlaceQuery,
    ProviderSchema,
    ProvidersSchema,
    SnapshotSchema,
    StoreProviderSchema,
)
from rm_service.facades.http.rendering import page_document, time_or_none, time_text
from rm_service.ledger.queries.paging import Page
from rm_service.services.external.external_resources import ExternalResources, ProviderView
from rm_service.services.external.feeds import ProviderStatus
from rm_service.services.external.providers import ProviderFaultError, ProviderWish
from rm_service.services.external.snapshots import page_of_applications, page_of_places

_GROUP = "External providers"
_EXAMPLE = {
    "config": {"path": "/etc/rm-service/places.yaml", "cluster": "hall-2"},
    "labels": "externalCluster=hall-2",
    "stale_policy": "deny",
    "refresh_seconds": 10,
    "stale_seconds": 60,
}
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ProviderEndpoints:
    """The handlers."""

    external: ExternalResources

    def store(self, call: Call) -> Reply:
        """201 stored, 200 changed."""
        type_, name = _name(call)
        wish = ProviderWish(
            type=type_,
            name=name,
            config=call.body["config"],
            labels=call.body.get("labels"),
            stale_policy=StalePolicy(call.body["stale_policy"]),
            refresh_seconds=call.body["refresh_seconds"],
            stale_seconds=call.body["stale_seconds"],
            protected=call.body["protected"][0],
        )
        try:
            outcome = self.external.store(wish)
        except ProviderFaultError as error:
            raise invalid_fields({field: [reason] for field, reason in error.faults.items()}) from None
        if isinstance(outcome, Refused):
            return refusal(outcome)
        return Reply(201 if outcome.created else 200, provider_document(self._view(type_, name)))

    def remove(self, call: Call) -> Reply:
        """204."""
        outcome = self.external.remove(*_name(call))
        return refusal(outcome) if isinstance(outcome, Refused) else Reply(204)

    def read(self, call: Call) -> Reply:
        """One provider."""
        return Reply(200, provider_document(self._view(*_name(call))))

    def list(self, _: Call) -> Reply:
        """All of them: there are few."""
        document: Document = {
            "items": [provider_document(view) for view in self.external.all()],
            "next_cursor": None,
            "types": sorted(self.external.plugins.by_type),
            "plugin_faults": [asdict(fault) for fault in self.external.faults],
        }
        return Reply(200, document)

    def snapshot(self, call: Call) -> Reply:
        """How it stands, with a page of its places, or with one."""
        type_, name = _name(call)
        status = self._view(type_, name).status
        snapshot = None if status is None else status.snapshot
        wanted = call.query.get("place")
        if wanted is None:
            page = page_of_places(snapshot, call.query["limit"], call.query.get("cursor"))
        else:
            found = None if snapshot is None else snapshot.places.get(wanted)
            page = Page([] if found is None else [found], None)
        document = {
            "type": type_,
            "name": name,
            **(_NOT_FOLLOWED if status is None else standing_document(status)),
            **page_document(map(place_document, page.items), page.next_cursor),
        }
        return Reply(200, document)

    def applications(self, call: Call) -> Reply:
        """A page of what runs there, in all places or in one."""
        status = self._view(*_name(call)).status
        snapshot = None if status is None else status.snapshot
        wanted, limit, cursor = call.query.get("place"), call.query["limit"], call.query.get("cursor")
        page = page_of_applications(snapshot, wanted, limit, cursor)
        document = {
            **page_document(map(external_application_document, page.items), page.next_cursor),
            "age_seconds": None if status is None else status.age_seconds,
            "fetched_at": None if snapshot is None else time_text(snapshot.at),
        }
        return Reply(200, document)

    def _view(self, type_: str, name: str) -> ProviderView:
        view = self.external.read(type_, name)
        if view is None:
            raise ProblemError(Code.UNKNOWN_PROVIDER, f"no provider {provider_key(type_, name)}")
        return view


def endpoints(handlers: ProviderEndpoints) -> list[Endpoint]:
    """The rows of the table."""
    provider, unknown = ProviderSchema(), (Code.UNKNOWN_PROVIDER,)
    here = "/providers/{type}/{name}"
    return [
        Endpoint(
            "PUT",
            here,
            handlers.store,
            "Store an external provider, or what changed of it",
            _GROUP,
            {201: provider, 200: provider},
            body=StoreProviderSchema(),
            example=_EXAMPLE,
            problems=(Code.PROVIDER_TIE,),
        ),
        Endpoint("GET", "/providers", handlers.list, "List providers", _GROUP, {200: ProvidersSchema()}),
        Endpoint("GET", here, handlers.read, "One provider", _GROUP, {200: provider}, problems=unknown),
        Endpoint(
            "DELETE", here, handlers.remove, "Take a provider away", _GROUP, {204: None}, problems=unknown
        ),
        Endpoint(
            "GET",
            f"{here}/snapshot",
            handlers.snapshot,
            "What its manager had at the last look",
            _GROUP,
            {200: SnapshotSchema()},
            query=PlaceQuery(),
            problems=unknown,
        ),
        Endpoint(
            "GET",
            f"{here}/applications",
            handlers.applications,
            "What ran there at the last look",
            _GROUP,
            {200: ExternalApplicationsSchema()},
            query=PlaceQuery(),
            problems=unknown,
        ),
    ]


def provider_document(view: ProviderView) -> Document:
    """A provider without its secrets, and how it stands."""
    stored, status = view.stored, view.status
    return {
        "type": stored.type,
        "name": stored.name,
        "labels": str(stored.labels),
        "config": stored.config,
        "stale_policy": stored.stale_policy.value,
        "refresh_seconds": stored.refresh_seconds,
        "stale_seconds": stored.stale_seconds,
        "protected": stored.protected,
        "version": stored.version,
        "created_at": time_text(stored.created_at),
        "updated_at": time_text(stored.updated_at),
        "standing": None if status is None else standing_document(status),
    }


_NOT_FOLLOWED: Mapping[str, object] = {
    "state": "pending",
    "problem": None,
    "age_seconds": None,
    "stale": True,
    "fetched_at": None,
    "fetch_seconds": None,
    "breaker": "closed",
    "failures": 0,
    "last_error": None,
    "health": None,
    "stuck": 0,
}
"""Stored a moment ago, elsewhere."""


def standing_document(status: ProviderStatus) -> Document:
    """How a provider stands in this process."""
    fault, health, snapshot = status.fault, status.health, status.snapshot
    error = None
    if fault is not None:
        error = {"kind": fault.kind.value, "reason": fault.reason, "time": time_text(fault.at)}
    return {
        "state": status.state.value,
        "problem": status.problem,
        "age_seconds": None if status.age_seconds is None else round(status.age_seconds, 3),
        "stale": status.is_stale,
        "fetched_at": time_or_none(None if snapshot is None else snapshot.at),
        "fetch_seconds": None if snapshot is None else round(snapshot.seconds, 3),
        "breaker": status.breaker.value,
        "failures": status.failures,
        "last_error": error,
        "health": None if health is None else {"ok": health.ok, "detail": health.detail},
        "stuck": status.stuck,
    }


def place_document(place: Place) -> Document:
    """A queue, a namespace."""
    return {
        "name": place.name,
        "total": place.total,
        "used": place.used,
        "guaranteed": place.guaranteed,
        "pending": place.pending,
        "open": place.open,
        "details": place.details,
    }


def external_application_document(application: ExternalApplication) -> Document:
    """An application as its manager shows it."""
    return {
        "id": application.id,
        "place": application.place,
        "allocated": application.allocated,
        "state": application.state,
        "user": application.user,
        "name": application.name,
        "kind": application.kind,
        "tags": sorted(application.tags),
    }


def _name(call: Call) -> tuple[str, str]:
    """Type and name in the path. Raises ProblemError."""
    return checked_name(call, "type"), checked_name(call, "name")
