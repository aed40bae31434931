"""The Flask application: routes from the table of endpoints, and a problem document for every error."""

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

import structlog
from flask import Flask, Request, Response, request
from flask.globals import request_ctx
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from werkzeug.exceptions import HTTPException

from rm_service.domain.tags import TagError
from rm_service.facades.http.authentication import NOBODY, Authentication
from rm_service.facades.http.endpoints import API, Call, Endpoint, Reply
from rm_service.facades.http.json_text import write_json
from rm_service.facades.http.paths import tag_path
from rm_service.facades.http.problems import ProblemError, invalid_fields
from rm_service.facades.http.reading import JSON, check_accept, read_body, read_idempotency_key, read_query
from rm_service.ledger.errors import LedgerClosedError, LedgerUnavailableError, OutcomeUnknownError
from rm_service.ledger.queries.paging import CursorError
from rm_service.telemetry import REQUEST_ID

PROBLEM_JSON = "application/problem+json"
SLOW_SECONDS = 1.0
_REQUEST_ID = re.compile(r"[A-Za-z0-9._\-]{1,64}")
_CODES = {400: "malformed_request", 404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}

Observe = Callable[[str, str, int, float], object]
"""Told of each request: method, path of the table, status, seconds."""

_log = structlog.get_logger(__name__)
_stdlib_log = logging.getLogger(__name__)


def create_app(
    endpoints: Sequence[Endpoint],
    authentication: Authentication,
    *,
    max_body: int,
    observe: Observe | None = None,
) -> Flask:
    """The application that answers these endpoints below /api/v1. `max_body` in bytes."""
    app = Flask("rm_service", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = max_body
    app.url_map.merge_slashes = False
    for endpoint in endpoints:
        add_endpoint(app, endpoint, API)
    _add_hooks(app, authentication, observe)
    app.register_error_handler(Exception, _answer_error)
    return app


def add_endpoint(app: Flask, endpoint: Endpoint, root: str) -> None:
    """Route one row of the table."""
    rule = root + endpoint.path.replace("{", "<").replace("}", ">")
    app.add_url_rule(
        rule,
        endpoint=f"{endpoint.method} {endpoint.path}",
        view_func=_view(endpoint),
        methods=[endpoint.method],
        provide_automatic_options=False,
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is noted of a request when it comes."""

    began: float
    request_id: str
    caller: str


_ASKED = "rm_service.asked"
"""Where it is kept in the WSGI environment: Flask's own places are slower, and all requests pass here."""


def _view(endpoint: Endpoint) -> Callable[..., Response]:
    def view(**path: str) -> Response:
        asked = request_ctx.request
        check_accept(asked)
        call = Call(
            path=path,
            query=read_query(asked, endpoint),
            body=read_body(asked, endpoint),
            caller=asked.environ[_ASKED].caller,
            idempotency_key=read_idempotency_key(asked, endpoint),
        )
        return respond(endpoint.handler(call))

    return view


def respond(reply: Reply) -> Response:
    """A reply as an HTTP response."""
    document = reply.document
    if document is None:
        return Response(b"", reply.status, reply.headers)
    is_problem = reply.status >= 400
    return Response(
        write_json(document), reply.status, reply.headers, content_type=PROBLEM_JSON if is_problem else JSON
    )


def _add_hooks(app: Flask, authentication: Authentication, observe: Observe | None) -> None:
    def begin() -> None:
        environ, began = request_ctx.request.environ, time.perf_counter()
        given = environ.get("HTTP_X_REQUEST_ID")
        request_id = given if given and _REQUEST_ID.fullmatch(given) else token_hex(8)
        REQUEST_ID.set(request_id)
        environ[_ASKED] = _Asked(began, request_id, NOBODY)
        caller = authentication.caller(environ["PATH_INFO"], environ.get("HTTP_AUTHORIZATION"))
        if caller != NOBODY:
            environ[_ASKED] = _Asked(began, request_id, caller)

    def end(response: Response) -> Response:
        asked = request_ctx.request
        noted: _Asked = asked.environ[_ASKED]
        seconds = time.perf_counter() - noted.began
        headers = response.headers
        headers.add("X-Request-Id", noted.request_id)
        headers.add("X-Content-Type-Options", "nosniff")
        if "Cache-Control" not in headers:
            headers.add("Cache-Control", "no-store")
        if observe is not None:
            rule = asked.url_rule
            observe(asked.method, "(none)" if rule is None else rule.rule, response.status_code, seconds)
        level = _level(response.status_code, seconds)
        if _stdlib_log.isEnabledFor(level):
            _tell(level, asked, response.status_code, seconds, noted.caller)
        return response

    app.before_request(begin)
    app.after_request(end)


def _level(status: int, seconds: float) -> int:
    """The request log tells of all requests at `debug`; of slow ones, and of those that we failed, above."""
    if status >= 500:
        return logging.WARNING
    return logging.INFO if seconds >= SLOW_SECONDS else logging.DEBUG


def _tell(level: int, asked: Request, status: int, seconds: float, caller: str) -> None:
    _log.log(
        level,
        "request",
        method=asked.method,
        path=asked.path,
        status=status,
        milliseconds=round(seconds * 1000, 2),
        caller=caller,
    )


def _answer_error(error: Exception) -> Response:
    problem = _problem_of(error)
    return respond(Reply(problem.status, problem.document(), problem.headers))


def _problem_of(error: Exception) -> ProblemError:
    """What an exception is to the client."""
    for kind, translate in _TRANSLATIONS.items():
        if isinstance(error, kind):
            return translate(error)
    _log.error("request_failed", path=request.path, exc_info=error)
    return ProblemError("internal", "This is a defect; the server's log says more.")


def _later(code: str, detail: str, seconds: int = 1) -> ProblemError:
    return ProblemError(code, detail, headers={"Retry-After": str(seconds)})


def _database_away(error: Exception) -> ProblemError:
    reason = str(getattr(error, "orig", error)).strip()
    _log.warning("database_unavailable", error=reason)
    return _later("unavailable", "the database cannot be reached")


def _problem_of_http(error: HTTPException) -> ProblemError:
    status = error.code or 500
    if status == 413:
        return ProblemError("body_too_large", "The body is longer than is read.")
    headers = {name: value for name, value in error.get_headers(request.environ) if name == "Allow"}
    code = _CODES.get(status, "internal" if status >= 500 else "malformed_request")
    allowed = f"; allowed: {headers['Allow']}" if "Allow" in headers else ""
    detail = {404: f"nothing is under {request.path[:200]}", 405: f"{request.method} is not allowed{allowed}"}
    return ProblemError(
        code, detail.get(status, error.description or "the request cannot be read"), headers=headers
    )


_TRANSLATIONS: Mapping[type[Exception], Callable[[Any], ProblemError]] = {
    ProblemError: lambda error: error,
    TagError: lambda error: invalid_fields({tag_path(error): [error.reason]}),
    CursorError: lambda _: invalid_fields({"cursor": ["is not one of this list: begin without one"]}),
    HTTPException: _problem_of_http,
    LedgerUnavailableError: lambda error: _later("unavailable", str(error), error.retry_after),
    OutcomeUnknownError: lambda error: _later("outcome_unknown", str(error)),
    LedgerClosedError: lambda _: _later("closing", "the service is stopping"),
    OperationalError: _database_away,
    InterfaceError: _database_away,
    PoolTimeoutError: _database_away,
}
