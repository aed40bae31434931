"""The OpenAPI 3.1 document, made from the table of endpoints and the schemas that read and describe."""

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from marshmallow import Schema
from marshmallow.fields import Field

import rm_service
from rm_service.facades.http.answer_schemas import ProblemSchema
from rm_service.facades.http.endpoints import API, Endpoint
from rm_service.facades.http.fields import IdField
from rm_service.facades.http.problems import ASKED_FOR_STATUS, PROBLEMS, problem_document

_ALWAYS = (
    "unauthorized",
    "not_acceptable",
    "invalid_fields",  # of a path's name, or a query that the path does not take
    "internal",
    "unavailable",
    "closing",
    "overloaded",
)
_WITH_BODY = (
    "malformed_json",
    "body_too_large",
    "unsupported_media_type",
    "outcome_unknown",
)
_TOKEN = "token"  # noqa: S105 - the name of the security scheme


def openapi_document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The document for these endpoints."""
    spec = APISpec(
        title="rm-service",
        version=rm_service.__version__,
        openapi_version="3.1.0",
        plugins=[_Described(schema_name_resolver=_name)],
        info={
            "description": (
                "Amounts booked on labels: total, protected, locked, used, left.\n\n"
                "Beside this API the Scheduler Interface is served, its messages as JSON below `/si/v1`:"
                " `POST /si/v1/RegisterResourceManager`, `POST /si/v1/UpdateAllocation` and so on,"
                " answers at `GET /si/v1/responses/{rmID}`."
            ),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        servers=[{"url": "/"}],
        security=[{}, {_TOKEN: []}],
    )
    spec.components.security_scheme(_TOKEN, {"type": "http", "scheme": "bearer"})
    for group in dict.fromkeys(endpoint.group for endpoint in endpoints):
        spec.tag({"name": group})
    for endpoint in endpoints:
        spec.path(API + endpoint.path, operations={endpoint.method.lower(): _operation(endpoint)})
    document: dict[str, Any] = spec.to_dict()
    return document


class _Described(MarshmallowPlugin):
    """Fields say themselves what they are."""

    def init_spec(self, spec: APISpec) -> None:
        super().init_spec(spec)
        if self.converter is not None:
            self.converter.add_attribute_function(_described)  # type: ignore[no-untyped-call]


def _described(_self: object, field: Field[Any], **_: object) -> dict[str, Any]:
    return dict(getattr(field, "openapi", {}))


def _name(schema: Any) -> str:  # noqa: ANN401 - a schema or its class
    kind = schema if isinstance(schema, type) else type(schema)
    side = "Answer" if kind.__module__.endswith("answer_schemas") else ""
    return kind.__name__.removesuffix("Schema").removesuffix("Answer") + side


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(endpoint),
        "summary": endpoint.summary,
        "tags": [endpoint.group],
        "parameters": list(_parameters(endpoint)),
        "responses": _good(endpoint) | _bad(endpoint),
    }
    if endpoint.body is not None:
        content: dict[str, Any] = {"schema": endpoint.body}
        if endpoint.example is not None:
            content["example"] = endpoint.example
        operation["requestBody"] = {
            "required": endpoint.body_needed,
            "content": {"application/json": content},
        }
    return operation


def _operation_id(endpoint: Endpoint) -> str:
    return f"{endpoint.method.lower()}{endpoint.path.replace('/', '_').replace('{', '').replace('}', '')}"


def _parameters(endpoint: Endpoint) -> Iterable[dict[str, Any]]:
    for part in endpoint.path.split("/"):
        if part.startswith("{"):
            yield {"name": part[1:-1], "in": "path", "required": True, "schema": _path_schema(endpoint, part)}
    if endpoint.query is not None:
        yield {"in": "query", "schema": type(endpoint.query)}
    if endpoint.idempotency_key:
        yield {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "Stands for an id: the same key again repeats the request.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 256},
        }


def _path_schema(endpoint: Endpoint, part: str) -> dict[str, Any]:
    if part == "{id}":
        return {"type": "integer"} if endpoint.path.startswith("/limits") else dict(IdField.openapi)
    return {"type": "string", "minLength": 1, "maxLength": 256}


def _good(endpoint: Endpoint) -> dict[str, Any]:
    return {
        str(status): {"description": HTTPStatus(status).phrase, **_content("application/json", schema)}
        for status, schema in endpoint.answers.items()
    }


def _bad(endpoint: Endpoint) -> dict[str, Any]:
    """Every problem that the endpoint may answer, by status, with an example for each code."""
    codes = [*_ALWAYS, *endpoint.problems]
    if endpoint.body is not None:
        codes += _WITH_BODY
    by_status: dict[int, list[str]] = {}
    for code in codes:
        by_status.setdefault(_status(code, endpoint), []).append(code)
    return {str(status): _problems(status, found) for status, found in sorted(by_status.items())}


def _status(code: str, endpoint: Endpoint) -> int:
    asked_for = endpoint.path == "/applications" and code in ASKED_FOR_STATUS
    return int(HTTPStatus.CONFLICT if asked_for else PROBLEMS[code].status)


def _problems(status: int, codes: Sequence[str]) -> dict[str, Any]:
    examples = {
        str(code): {"summary": PROBLEMS[code].meaning, "value": problem_document(code, "…", status)}
        for code in codes
    }
    content = {"application/problem+json": {"schema": ProblemSchema, "examples": examples}}
    return {"description": ", ".join(map(str, codes)), "content": content}


def _content(media_type: str, schema: Schema | None) -> dict[str, Any]:
    return {} if schema is None else {"content": {media_type: {"schema": schema}}}
