"""A request read into a call: query and body checked by their schemas, each fault under its field's path."""

from collections.abc import Mapping
from typing import Any

from flask import Request
from marshmallow import Schema, ValidationError

from rm_service.domain.tags import value_fault
from rm_service.facades.http.endpoints import Endpoint
from rm_service.facades.http.json_text import read_json
from rm_service.facades.http.problems import FieldErrors, ProblemError, invalid_fields

JSON = "application/json"
_SCHEMA = "_schema"


def read_query(request: Request, endpoint: Endpoint) -> Mapping[str, Any]:
    """The query's parameters. Raises ProblemError."""
    if endpoint.query is None:
        if request.query_string:
            raise invalid_fields({name: ["is no parameter of this path"] for name in request.args or ("?",)})
        return {}
    given: dict[str, str] = {}
    for name, values in request.args.lists():
        if len(values) > 1:
            raise invalid_fields({name: ["is given twice"]})
        given[name] = values[0]
    return load(endpoint.query, given)


def read_body(request: Request, endpoint: Endpoint) -> Mapping[str, Any]:
    """The body. Raises ProblemError."""
    if endpoint.body is None:
        return {}
    body = request.get_data(cache=False)
    if not body and not endpoint.body_needed:
        return load(endpoint.body, {})
    if request.environ.get("CONTENT_TYPE") != JSON:
        _check_media_type(request)
    return load(endpoint.body, read_json(body))


def read_idempotency_key(request: Request, endpoint: Endpoint) -> str | None:
    """The header `Idempotency-Key`, where it means something. Raises ProblemError."""
    key = request.environ.get("HTTP_IDEMPOTENCY_KEY") if endpoint.idempotency_key else None
    if key is None:
        return None
    fault = "must not be empty" if not key else value_fault(key)
    if fault:
        raise invalid_fields({"Idempotency-Key": [fault]})
    return str(key)


def check_accept(request: Request) -> None:
    """Raise ProblemError (406) if the client takes no JSON."""
    accept = request.environ.get("HTTP_ACCEPT", "")
    if not accept or "*/*" in accept or "json" in accept or "application/*" in accept:
        return
    raise ProblemError("not_acceptable", f"The answer is {JSON}, which Accept excludes.")


def load(schema: Schema, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document as its schema reads it. Raises ProblemError naming every field that is wrong."""
    try:
        loaded: Mapping[str, Any] = schema.load(document)
    except ValidationError as error:
        raise invalid_fields(_flat(error.messages, "")) from error
    return loaded


def _flat(messages: object, path: str) -> FieldErrors:
    if isinstance(messages, Mapping):
        found: dict[str, list[str]] = {}
        for name, below in messages.items():
            place = path if name == _SCHEMA else f"{path}.{name}" if path else str(name)
            for where, texts in _flat(below, place).items():
                found.setdefault(where, []).extend(texts)
        return found
    said = messages if isinstance(messages, list) else [messages]
    return {path or "(the whole)": [str(text) for text in said]}


def _check_media_type(request: Request) -> None:
    charset = request.mimetype_params.get("charset", "utf-8").lower()
    if not (request.is_json and charset in {"utf-8", "utf8", "us-ascii"}):
        raise ProblemError(
            "unsupported_media_type",
            f"The body must be {JSON} in UTF-8, not {request.content_type or 'without a Content-Type'}.",
            headers={"Accept": JSON},
        )
