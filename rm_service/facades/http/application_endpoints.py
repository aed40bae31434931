"""Applications over HTTP: apply, use, renew, release, explain, look up, and several at once."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rm_service.domain import operations as op
from rm_service.domain.application import Application, State
from rm_service.domain.operations import Placement
from rm_service.domain.outcomes import Code, Outcome, Refused
from rm_service.domain.tags import TagError
from rm_service.facades.http.answer_schemas import (
    ApplicationSchema,
    ApplicationsSchema,
    BatchResultsSchema,
    ExplanationSchema,
)
from rm_service.facades.http.endpoints import Call, Endpoint, Reply, refusal
from rm_service.facades.http.paths import application_id, tag_path
from rm_service.facades.http.problems import ProblemError, invalid_fields
from rm_service.facades.http.rendering import (
    Document,
    application_document,
    explanation_document,
    page_document,
)
from rm_service.facades.http.request_schemas import (
    ApplicationsQuery,
    ApplySchema,
    BatchSchema,
    EmptySchema,
    Loaded,
    RenewSchema,
    UseSchema,
    WaitQuery,
)
from rm_service.services.applications import Applications, Request

_GROUP = "Applications"
_IDS = uuid.UUID("7e2f4f0e-5f0b-5d3c-9a53-0c8310a11ca7")
"""The namespace of the ids that stand for an `Idempotency-Key`."""

_EXAMPLE: Mapping[str, Any] = {
    "tags": {"user": "alice", "creator": "IDE", "engineType": "spark-3.3", "node": "host1:9101"},
    "resource": {"memory": "2Gi", "vcore": 1000, "instances": 1},
    "wait_seconds": 0,
}
_SHORT = (
    Code.UNKNOWN_NODE,
    Code.UNKNOWN_CLASS,
    Code.ID_REUSED,
    Code.NODE_NOT_SCHEDULABLE,
    Code.INSUFFICIENT_RESOURCES,
)
_LIFE = (Code.UNKNOWN_APPLICATION, Code.NO_LOCK, Code.EXPIRED)


@dataclass(frozen=True, slots=True)
class ApplicationEndpoints:
    """The handlers. Each answers the ledger's outcome: the application, or why not."""

    applications: Applications

    def apply(self, call: Call) -> Reply:
        """201 locked, 202 waiting, 200 known already."""
        key = call.idempotency_key
        if key is not None and "id" in call.body:
            raise invalid_fields({"id": ["stands beside an Idempotency-Key: one of them is enough"]})
        made = None if key is None else idempotent_id(call.caller, key)
        return self._reply(self.applications.apply(self._request(call.body, made)), asked_for=True)

    def explain(self, call: Call) -> Reply:
        """What `apply` would be answered."""
        explanation = self.applications.explain(self._request(call.body, None))
        return Reply(200, explanation_document(explanation, explanation.labels))

    def use(self, call: Call) -> Reply:
        """The lock becomes use, or the amount is set."""
        return self._reply(
            self.applications.use(application_id(call), _amounts(call.body), call.body["external_ids"])
        )

    def renew(self, call: Call) -> Reply:
        """The lease starts anew."""
        return self._reply(self.applications.renew(application_id(call), call.body.get("lock_seconds")))

    def release(self, call: Call) -> Reply:
        """Everything is given back."""
        return self._reply(self.applications.release(application_id(call)))

    def read(self, call: Call) -> Reply:
        """One application as it is; waiting for a change (`wait`) is the stream's matter."""
        application = self.applications.read(application_id(call))
        if application is None:
            raise ProblemError(Code.UNKNOWN_APPLICATION, f"no application {call.path['id']}")
        return Reply(200, self.document(application))

    def list(self, call: Call) -> Reply:
        """A page of applications."""
        states = _states(call.query.get("state"))
        page = self.applications.page(
            states, call.query["tag"], call.query["limit"], call.query.get("cursor")
        )
        return Reply(200, page_document([self.document(each) for each in page.items], page.next_cursor))

    def batch(self, call: Call) -> Reply:
        """Several operations; each result is what the single call would have been answered."""
        operations = [
            self._operation(index, each, call) for index, each in enumerate(call.body["operations"])
        ]
        outcomes = self.applications.submit(operations, atomic=call.body["atomic"])
        results = []
        for operation, outcome in zip(operations, outcomes, strict=True):
            reply = self._reply(outcome, asked_for=isinstance(operation, op.Apply))
            results.append({"status": reply.status, **(reply.document or {})})
        return Reply(200, {"results": results})

    def document(self, application: Application) -> Document:
        """An application as every answer shows it."""
        labels = self.applications.labels(application)
        return application_document(application, labels, self.applications.position(application))

    def _reply(self, outcome: Outcome, *, asked_for: bool = False) -> Reply:
        if isinstance(outcome, Refused):
            return refusal(outcome, asked_for=asked_for)
        application = outcome.application
        if application is None:
            raise TypeError("an operation on an application gave none")
        status = 200
        if outcome.created:
            status = 202 if application.state is State.WAITING else 201
        return Reply(status, self.document(application))

    def _request(self, body: Mapping[str, Any], made_id: str | None) -> Request:
        amounts, carried = body.get("resource", ({}, {}))
        tags = {**carried, **body["tags"]}
        said = {name: value for name, value in body.items() if name not in {"id", "op"}}
        said |= {"tags": tags, "resource": amounts}
        placement = body.get("placement")
        if placement is not None:
            partition = tags.get("partition", "")
            placement = Placement(str(placement["selector"]), placement["strategy"], partition)
            said["placement"] = {"selector": placement.selector, "strategy": placement.strategy}
        if "classes" in body:
            said["classes"] = dict(body["classes"])
        return Request(
            tags=tags,
            resource=amounts,
            classes=body.get("classes", ()),
            device_strategy=body.get("device_strategy"),
            id=body.get("id", made_id),
            wait_seconds=body.get("wait_seconds", 0),
            lock_seconds=body.get("lock_seconds"),
            priority=body.get("priority", 0),
            placement=placement,
            alternatives=body.get("alternatives", ()),
            said=said,
        )

    def _operation(self, index: int, body: Loaded, call: Call) -> op.ApplicationOperation:
        match body["op"]:
            case "use":
                return op.Use(body["id"], _amounts(body), tuple(body["external_ids"]))
            case "renew":
                return op.Renew(body["id"], body.get("lock_seconds"))
            case "release":
                return op.Release(body["id"])
        key = call.idempotency_key
        made = None if key is None else idempotent_id(call.caller, f"{key}/{index}")
        try:
            return self.applications.operation(self._request(body, made))
        except TagError as error:
            path = f"operations.{index}.{tag_path(error)}"
            raise invalid_fields({path: [error.reason]}) from error


def idempotent_id(caller: str, key: str) -> str:
    """The id that stands for an `Idempotency-Key` under a caller's token."""
    return str(uuid.uuid5(uuid.uuid5(_IDS, caller), key))


def endpoints(handlers: ApplicationEndpoints) -> list[Endpoint]:
    """The rows of the table."""
    application = ApplicationSchema()
    one = "/applications/{id}"
    return [
        Endpoint(
            "POST",
            "/applications",
            handlers.apply,
            "Ask for a resource",
            _GROUP,
            {201: application, 202: application, 200: application},
            body=ApplySchema(),
            example=_EXAMPLE,
            problems=(*_SHORT, Code.OVERFLOW, Code.LIMITS_UNKNOWN),
            idempotency_key=True,
        ),
        Endpoint(
            "POST",
            "/applications/explain",
            handlers.explain,
            "Ask what an application would be answered",
            _GROUP,
            {200: ExplanationSchema()},
            body=ApplySchema(),
            example=_EXAMPLE,
        ),
        Endpoint(
            "GET",
            "/applications",
            handlers.list,
            "List applications, newest first",
            _GROUP,
            {200: ApplicationsSchema()},
            query=ApplicationsQuery(),
        ),
        Endpoint(
            "GET",
            one,
            handlers.read,
            "One application; with `wait` as soon as it waits no more",
            _GROUP,
            {200: application},
            query=WaitQuery(),
            problems=(Code.UNKNOWN_APPLICATION,),
        ),
        Endpoint(
            "POST",
            f"{one}/use",
            handlers.use,
            "Turn the lock into use, or set the amount used",
            _GROUP,
            {200: application},
            body=UseSchema(),
            body_needed=False,
            example={"resource": {"memory": "1Gi"}},
            problems=(*_LIFE, Code.INSUFFICIENT_RESOURCES),
        ),
        Endpoint(
            "POST",
            f"{one}/renew",
            handlers.renew,
            "Start the lock's lease anew",
            _GROUP,
            {200: application},
            body=RenewSchema(),
            body_needed=False,
            example={"lock_seconds": 720},
            problems=_LIFE,
        ),
        Endpoint(
            "POST",
            f"{one}/release",
            handlers.release,
            "Give everything back; cancel what waits",
            _GROUP,
            {200: application},
            body=EmptySchema(),
            body_needed=False,
            problems=(Code.UNKNOWN_APPLICATION,),
        ),
        Endpoint(
            "POST",
            "/batch",
            handlers.batch,
            "Several operations in their order",
            _GROUP,
            {200: BatchResultsSchema()},
            body=BatchSchema(),
            idempotency_key=True,
            example={"operations": [{"op": "apply", **_EXAMPLE}], "atomic": False},
        ),
    ]


def _amounts(body: Mapping[str, Any]) -> dict[str, int] | None:
    resource = body.get("resource")
    return None if resource is None else resource[0]


def _states(text: str | None) -> list[State] | None:
    if text is None:
        return None
    try:
        return [State(word.strip()) for word in text.split(",")]
    except ValueError as error:
        raise invalid_fields({"state": [f"must be of {', '.join(State)}"]}) from error
