"""What stands beside the API: health, readiness, metrics, the OpenAPI document and the page that shows it."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from flask import Flask, Response, redirect
from flask_swagger_ui import get_swaggerui_blueprint
from werkzeug.wrappers import Response as BaseResponse

from rm_service.facades.http.endpoints import Endpoint, Reply
from rm_service.facades.http.http_app import respond
from rm_service.facades.http.json_text import write_json
from rm_service.facades.http.openapi import openapi_document
from rm_service.facades.http.problems import problem_document

DOCS = "/docs"
OPENAPI = "/openapi.json"
_POLICY = (
    "default-src 'self'; img-src 'self' data:;"
    " script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'"
)
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Checks = Callable[[], Mapping[str, str]]
"""What was looked at, by name: `ok`, or what is wrong."""


def add_system_pages(
    app: Flask, endpoints: Sequence[Endpoint], *, checks: Checks, metrics: Callable[[], bytes]
) -> None:
    """Add the pages at the root of the application."""

    @cache
    def document() -> bytes:
        return write_json(openapi_document(endpoints))

    def health() -> Response:
        return respond(Reply(200, {"status": "ok"}))

    def readiness() -> Response:
        found = checks()
        wrong = {name: said for name, said in found.items() if said != "ok"}
        if not wrong:
            return respond(Reply(200, {"status": "ready", "checks": found}))
        detail = ", ".join(f"{name}: {said}" for name, said in wrong.items())
        return respond(Reply(503, problem_document("not_ready", detail, checks=found), {"Retry-After": "1"}))

    def openapi() -> Response:
        return Response(document(), content_type="application/json")

    def show_metrics() -> Response:
        return Response(metrics(), content_type=_METRICS_TYPE)

    def docs() -> BaseResponse:
        return redirect(f"{DOCS}/", 308)

    pages = {"/healthz": health, "/readyz": readiness, OPENAPI: openapi, "/metrics": show_metrics, DOCS: docs}
    for path, page in pages.items():
        app.add_url_rule(
            path, endpoint=path, view_func=page, methods=["GET"], provide_automatic_options=False
        )
    _add_docs(app)


def _add_docs(app: Flask) -> None:
    """Swagger UI out of its package: nothing is fetched from another host, and the page may not either."""
    blueprint = get_swaggerui_blueprint(
        DOCS, OPENAPI, config={"app_name": "rm-service", "validatorUrl": "none"}
    )

    def forbid_others(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["Cache-Control"] = "max-age=3600"
        return response

    blueprint.after_request(forbid_others)
    app.register_blueprint(blueprint)
