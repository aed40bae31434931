"""The Flask application: routes from the table of endpoints, and a problem document for all that goes wrong."""

import re
import time
import uuid
from collections.abc import Callable, Sequence

import structlog
from flask import Flask, Response, g, request
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from werkzeug.exceptions import HTTPException

from rm_service.domain.tags import TagError
from rm_service.facades.http.authentication import Authentication
from rm_service.facades.http.endpoints import API, Call, Endpoint, Reply
from rm_service.facades.http.json_text import write_json
from rm_service.facades.http.paths import tag_path
from rm_service.facades.http.problems import ProblemError, invalid_fields
from rm_service.facades.http.reading import JSON, check_accept, read_body, read_idempotency_key, read_query
from rm_service.ledger.errors import LedgerClosedError, LedgerUnavailableError, OutcomeUnknownError
from rm_service.ledger.queries.paging import CursorError

PROBLEM_JSON = "application/problem+json"
RETRY_AFTER = "1"
SLOW_SECONDS = 1.0
_REQUEST_ID = re.compile(r"[A-Za-z0-9._\-]{1,64}")
_CODES = {400: "malformed_request", 404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}

Observe = Callable[[str, str, int, float], object]
"""Told of each request: method, path of the table, status, seconds."""

_log = structlog.get_logger(__name__)


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


def _view(endpoint: Endpoint) -> Callable[..., Response]:
    def view(**path: str) -> Response:
        asked = app_ctx.request  # a proxy looks it up at each touch
        check_accept(asked)
        call = Call(
            path=path,
            query=read_query(asked, endpoint),
            body=read_body(asked, endpoint),
            caller=g.caller,
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
        g.began = time.perf_counter()
        given = request.environ.get("HTTP_X_REQUEST_ID", "")
        g.request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=g.request_id)
        g.caller = authentication.caller(request.path, request.environ.get("HTTP_AUTHORIZATION"))

    def end(response: Response) -> Response:
        seconds = time.perf_counter() - g.began
        response.headers["X-Request-Id"] = g.request_id
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers.setdefault("Cache-Control", "no-store")
        path = request.url_rule.rule if request.url_rule is not None else "(none)"
        if observe is not None:
            observe(request.method, path, response.status_code, seconds)
        _tell(response.status_code, seconds)
        return response

    app.before_request(begin)
    app.after_request(end)


def _tell(status: int, seconds: float) -> None:
    """The request log: each request at `debug`, those that were slow or our fault above."""
    if status >= 500:
        tell = _log.warning
    else:
        tell = _log.info if seconds >= SLOW_SECONDS else _log.debug
    tell(
        "request",
        method=request.method,
        path=request.path,
        status=status,
        milliseconds=round(seconds * 1000, 2),
        caller=g.get("caller", ""),
    )


def _answer_error(error: Exception) -> Response:
    problem = _problem_of(error)
    return respond(Reply(problem.status, problem.document(), problem.headers))


def _problem_of(error: Exception) -> ProblemError:
    """What an exception is to the client."""
    match error:
        case ProblemError():
            return error
        case TagError():
            return invalid_fields({tag_path(error): [error.reason]})
        case CursorError():
            return invalid_fields({"cursor": ["is not one of this list: begin without one"]})
        case HTTPException():
            return _problem_of_http(error)
        case LedgerUnavailableError():
            return ProblemError("unavailable", str(error), headers={"Retry-After": str(error.retry_after)})
        case OutcomeUnknownError():
            return ProblemError("outcome_unknown", str(error), headers={"Retry-After": RETRY_AFTER})
        case LedgerClosedError():
            return ProblemError("closing", "The service is stopping.", headers={"Retry-After": RETRY_AFTER})
        case OperationalError() | InterfaceError() | PoolTimeoutError():
            reason = str(error.orig if isinstance(error, DBAPIError) else error).strip()
            _log.warning("database_unavailable", error=reason)
            detail = "the database cannot be reached"
            return ProblemError("unavailable", detail, headers={"Retry-After": RETRY_AFTER})
    _log.error("request_failed", path=request.path, exc_info=error)
    return ProblemError("internal", "This is a defect; the server's log says more.")


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
