"""Limits over HTTP."""

from dataclasses import dataclass

from rm_service.domain.limits import Limit
from rm_service.domain.outcomes import Code, Refused
from rm_service.facades.http.answer_schemas import LimitSchema as LimitAnswer
from rm_service.facades.http.answer_schemas import LimitsSchema
from rm_service.facades.http.endpoints import Call, Endpoint, Reply, refusal
from rm_service.facades.http.problems import ProblemError
from rm_service.facades.http.rendering import limit_document, page_document
from rm_service.facades.http.request_schemas import LimitSchema, SelectorQuery
from rm_service.services.limits import Limits

_GROUP = "Limits"
_EXAMPLE = {
    "tags": {"user": "alice", "creator": "IDE", "engineType": "spark-3.3"},
    "total": {"memory": "64Gi", "instances": 10},
    "protected": {"memory": "1Gi"},
}


@dataclass(frozen=True, slots=True)
class LimitEndpoints:
    """The handlers."""

    limits: Limits

    def set(self, call: Call) -> Reply:
        """201 set, 200 changed."""
        total, carried = call.body["total"]
        protected = call.body["protected"][0]
        tags = self.limits.converted({**carried, **call.body["tags"]})
        outcome = self.limits.set(tags, total, protected)
        if isinstance(outcome, Refused):
            return refusal(outcome)
        document = limit_document(Limit(outcome.limit_id or 0, tags, total, protected))
        return Reply(201 if outcome.created else 200, document)

    def remove(self, call: Call) -> Reply:
        """204."""
        outcome = self.limits.remove(_limit_id(call))
        return refusal(outcome) if isinstance(outcome, Refused) else Reply(204)

    def read(self, call: Call) -> Reply:
        """One limit."""
        limit = self.limits.read(_limit_id(call))
        if limit is None:
            raise ProblemError(Code.UNKNOWN_LIMIT, f"no limit {call.path['id']}")
        return Reply(200, limit_document(limit))

    def list(self, call: Call) -> Reply:
        """A page of limits."""
        page = self.limits.page(call.query["selector"], call.query["limit"], call.query.get("cursor"))
        return Reply(200, page_document(map(limit_document, page.items), page.next_cursor))


def endpoints(handlers: LimitEndpoints) -> list[Endpoint]:
    """The rows of the table."""
    limit = LimitAnswer()
    unknown = (Code.UNKNOWN_LIMIT,)
    return [
        Endpoint(
            "PUT",
            "/limits",
            handlers.set,
            "Set the limit of a tag combination",
            _GROUP,
            {201: limit, 200: limit},
            body=LimitSchema(),
            example=_EXAMPLE,
            problems=(Code.INVALID_LIMIT,),
        ),
        Endpoint(
            "GET",
            "/limits",
            handlers.list,
            "List limits",
            _GROUP,
            {200: LimitsSchema()},
            query=SelectorQuery(),
        ),
        Endpoint("GET", "/limits/{id}", handlers.read, "One limit", _GROUP, {200: limit}, problems=unknown),
        Endpoint(
            "DELETE",
            "/limits/{id}",
            handlers.remove,
            "Take a limit away",
            _GROUP,
            {204: None},
            problems=unknown,
        ),
    ]


def _limit_id(call: Call) -> int:
    text = call.path["id"]
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise ProblemError(Code.UNKNOWN_LIMIT, f"no limit {text[:100]}")
    return int(text)
