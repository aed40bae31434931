"""Engines over HTTP: started, alive, ended, looked up."""

from dataclasses import dataclass
from typing import Any

from rm_service.domain import operations as op
from rm_service.domain.outcomes import Code, Outcome, Refused
from rm_service.facades.http.answer_schemas import ApplicationSchema, EnginesSchema
from rm_service.facades.http.answer_schemas import EngineSchema as EngineAnswer
from rm_service.facades.http.endpoints import Call, Endpoint, Reply, refusal
from rm_service.facades.http.paths import instance
from rm_service.facades.http.problems import ProblemError
from rm_service.facades.http.rendering import Document, application_document, engine_document, page_document
from rm_service.facades.http.request_schemas import EngineSchema, ReportSchema, SelectorQuery
from rm_service.ledger.queries.engines import EngineRecord
from rm_service.services.applications import Applications
from rm_service.services.engines import Engines

_GROUP = "Engines"
_EXAMPLE = {
    "application": "5ab3f2a0-1c2d-4e5f-8a9b-0c1d2e3f4a5b",
    "node": "host1:9101",
    "resource": {"memory": "1500Mi", "vcore": 1000},
    "tags": {"version": "3.3"},
}


@dataclass(frozen=True, slots=True)
class EngineEndpoints:
    """The handlers."""

    engines: Engines
    applications: Applications

    def register(self, call: Call) -> Reply:
        """201 registered, 200 known already; its application is used from now on."""
        body = call.body
        operation = op.RegisterEngine(
            instance=instance(call),
            application=body["application"],
            node=body.get("node"),
            resource=_amounts(body),
            tags=body["tags"],
            external_ids=tuple(body["external_ids"]),
        )
        return self._reply(self.engines.register(operation))

    def heartbeat(self, call: Call) -> Reply:
        """A sign of life, with what is used now."""
        return self._reply(self.engines.heartbeat(instance(call), _amounts(call.body)))

    def remove(self, call: Call) -> Reply:
        """The engine ended; its application is answered as it ended."""
        outcome = self.engines.remove(instance(call))
        if isinstance(outcome, Refused):
            return refusal(outcome)
        if outcome.application is None:
            raise TypeError("an operation on an engine gave no application")
        application = outcome.application
        return Reply(200, application_document(application, self.applications.labels(application)))

    def read(self, call: Call) -> Reply:
        """One engine."""
        record = self.engines.read(instance(call))
        if record is None:
            raise ProblemError(Code.UNKNOWN_ENGINE, f"no engine {call.path['instance']} is registered")
        return Reply(200, self._document(record))

    def list(self, call: Call) -> Reply:
        """A page of engines."""
        page = self.engines.page(call.query["selector"], call.query["limit"], call.query.get("cursor"))
        return Reply(200, page_document(map(self._document, page.items), page.next_cursor))

    def _reply(self, outcome: Outcome) -> Reply:
        if isinstance(outcome, Refused):
            return refusal(outcome)
        if outcome.engine is None or outcome.application is None:
            raise TypeError("an operation on an engine gave none")
        record = EngineRecord(outcome.engine, outcome.application)
        return Reply(201 if outcome.created else 200, self._document(record))

    def _document(self, record: EngineRecord) -> Document:
        return engine_document(record, self.applications.labels(record.application))


def endpoints(handlers: EngineEndpoints) -> list[Endpoint]:
    """The rows of the table."""
    engine = EngineAnswer()
    one = "/engines/{instance}"
    return [
        Endpoint(
            "PUT",
            one,
            handlers.register,
            "Register a started engine: its application's lock becomes use",
            _GROUP,
            {201: engine, 200: engine},
            body=EngineSchema(),
            example=_EXAMPLE,
            problems=(
                Code.UNKNOWN_APPLICATION,
                Code.ENGINE_EXISTS,
                Code.WRONG_NODE,
                Code.NODE_LOST,
                Code.NO_LOCK,
                Code.EXPIRED,
                Code.OVERFLOW,
            ),
        ),
        Endpoint(
            "POST",
            f"{one}/heartbeat",
            handlers.heartbeat,
            "A sign of life, with what is used now",
            _GROUP,
            {200: engine},
            body=ReportSchema(),
            body_needed=False,
            example={"resource": {"memory": "1Gi"}},
            problems=(Code.UNKNOWN_ENGINE, Code.OVERFLOW),
        ),
        Endpoint(
            "DELETE",
            one,
            handlers.remove,
            "The engine ended: its application gives everything back",
            _GROUP,
            {200: ApplicationSchema()},
            problems=(Code.UNKNOWN_ENGINE,),
        ),
        Endpoint(
            "GET", one, handlers.read, "One engine", _GROUP, {200: engine}, problems=(Code.UNKNOWN_ENGINE,)
        ),
        Endpoint(
            "GET",
            "/engines",
            handlers.list,
            "List engines",
            _GROUP,
            {200: EnginesSchema()},
            query=SelectorQuery(),
        ),
    ]


def _amounts(body: Any) -> dict[str, int] | None:  # noqa: ANN401 - a body is JSON
    resource = body.get("resource")
    return None if resource is None else resource[0]
