"""The Flask application: routes from the table of endpoints, and a problem document for every error."""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from secrets import token_hex

from flask import Flask, Response, request
from flask.globals import request_ctx

from rm_service.facades.http.endpoints import API, Call, Endpoint, Reply
from rm_service.facades.http.error_problems import problem_of
from rm_service.facades.http.json_text import write_json
from rm_service.facades.http.reading import JSON, check_accept, read_body, read_idempotency_key, read_query
from rm_service.hosting.authentication import NOBODY, Authentication
from rm_service.hosting.request_log import NO_ROUTE, RequestLog
from rm_service.telemetry import REQUEST_ID

PROBLEM_JSON = "application/problem+json"
OPEN_PATHS = frozenset({"/healthz", "/readyz", "/openapi.json"})
"""Answered to everybody: they tell nothing about what is held."""
OPEN_PREFIX = "/docs"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._\-]{1,64}")


def create_app(
    endpoints: Sequence[Endpoint],
    authentication: Authentication,
    *,
    max_body: int,
    request_log: RequestLog | None = None,
) -> Flask:
    """The application that answers these endpoints below /api/v1. `max_body` in bytes."""
    app = Flask("rm_service", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = max_body
    app.url_map.merge_slashes = False
    for endpoint in endpoints:
        add_endpoint(app, endpoint, API)
    _add_hooks(app, authentication, request_log or RequestLog())
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


def _add_hooks(app: Flask, authentication: Authentication, request_log: RequestLog) -> None:
    def begin() -> None:
        environ, began = request_ctx.request.environ, time.perf_counter()
        given = environ.get("HTTP_X_REQUEST_ID")
        request_id = given if given and _REQUEST_ID.fullmatch(given) else token_hex(8)
        REQUEST_ID.set(request_id)
        environ[_ASKED] = _Asked(began, request_id, NOBODY)
        caller = authentication.caller(
            environ.get("HTTP_AUTHORIZATION"), open_to_all=_is_open(environ["PATH_INFO"])
        )
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
        rule = asked.url_rule
        request_log.answered(
            method=asked.method,
            path=asked.path,
            route=NO_ROUTE if rule is None else rule.rule,
            status=response.status_code,
            seconds=seconds,
            caller=noted.caller,
        )
        REQUEST_ID.set(None)
        return response

    app.before_request(begin)
    app.after_request(end)


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(OPEN_PREFIX)


def _answer_error(error: Exception) -> Response:
    problem = problem_of(error, request.path)
    return respond(Reply(problem.status, problem.document(), problem.headers))
