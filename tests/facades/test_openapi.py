"""The OpenAPI document says all that the API does, and the page that shows it needs nobody else."""

from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from rm_service.facades.http.endpoints import API
from rm_service.facades.http.openapi import openapi_document
from rm_service.facades.http.problems import PROBLEMS
from rm_service.facades.http.system_pages import add_system_pages
from rm_service.ledger.ledger import Ledger
from rm_service.telemetry import Metrics
from tests.facades.conftest import Api, make_api

NAMES = {
    "{instance}": "example",
    "{id}": "5ab3f2a0-1c2d-4e5f-8a9b-0c1d2e3f4a5b",
    "{type}": "static",
    "{name}": "example",
}
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def web(shared_ledger: Ledger) -> FlaskClient:
    api = make_api(shared_ledger)
    checks: dict[str, str] = {"database": "ok"}
    add_system_pages(api.app, api.endpoints, checks=lambda: checks, metrics=Metrics().text)
    return api.app.test_client()


@pytest.fixture
def document(shared_ledger: Ledger) -> dict[str, Any]:
    return openapi_document(make_api(shared_ledger).endpoints)


def references(part: object) -> set[str]:
    if isinstance(part, dict):
        own = {part["$ref"]} if isinstance(part.get("$ref"), str) else set()
        return own.union(*(references(below) for below in part.values()))
    if isinstance(part, list):
        return set().union(*(references(below) for below in part))
    return set()


def test_every_endpoint_is_described(document: dict[str, Any], shared_ledger: Ledger) -> None:
    for endpoint in make_api(shared_ledger).endpoints:
        operation = document["paths"][API + endpoint.path][endpoint.method.lower()]
        assert operation["summary"]
        assert {str(status) for status in endpoint.answers} <= operation["responses"].keys()
        assert "503" in operation["responses"]
        if endpoint.body is not None:
            assert "application/json" in operation["requestBody"]["content"]


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0"
    for reference in references(document):
        place: Any = document
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]


def test_it_points_at_the_other_interface_below_the_same_address(document: dict[str, Any]) -> None:
    assert "below `/si/v1`" in document["info"]["description"]
    assert not any(path.startswith("/si/") for path in document["paths"])


def test_operation_ids_are_unique(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(set(ids)) == len(ids)


def test_an_amount_is_described_as_an_object_and_a_selector_as_a_text(document: dict[str, Any]) -> None:
    apply = document["components"]["schemas"]["Apply"]["properties"]
    assert apply["resource"]["type"] == "object"
    assert apply["tags"]["additionalProperties"]["type"] == "string"
    assert apply["wait_seconds"]["minimum"] == 0


def test_the_examples_are_answered_as_promised(shared_ledger: Ledger) -> None:
    api: Api = make_api(shared_ledger)
    for endpoint in api.endpoints:
        if endpoint.example is not None:
            path = endpoint.path
            for part, name in NAMES.items():
                path = path.replace(part, name)
            answer = api.send(endpoint.method, path, json=endpoint.example)
            assert answer.status_code in {200, 201, 404, 409}, (path, answer.get_data(as_text=True))


def test_the_documents_page_asks_no_other_host(web: FlaskClient) -> None:
    assert web.get("/openapi.json").get_json()["info"]["title"] == "rm-service"
    assert web.get("/docs").headers["Location"] == "/docs/"
    page = web.get("/docs/")
    assert page.status_code == 200
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    text = page.get_data(as_text=True)
    assert "/openapi.json" in text
    assert "https://" not in text
    with web.get("/docs/swagger-ui-bundle.js") as script:
        assert script.status_code == 200
    assert web.get("/docs/nothing.js").status_code == 404


def test_health_and_readiness(web: FlaskClient) -> None:
    assert web.get("/healthz").get_json() == {"status": "ok"}
    assert web.get("/readyz").get_json() == {"status": "ready", "checks": {"database": "ok"}}


def test_what_is_not_ready_says_what_is_missing(shared_ledger: Ledger) -> None:
    api = make_api(shared_ledger)
    checks = {"database": "ok", "sweeper": "has not swept yet"}
    add_system_pages(api.app, api.endpoints, checks=lambda: checks, metrics=Metrics().text)
    answer = api.app.test_client().get("/readyz")
    assert (answer.status_code, answer.get_json()["code"]) == (503, "not_ready")
    assert answer.get_json()["checks"] == checks


def test_the_documents_list_every_code_of_a_problem() -> None:
    text = (ROOT / "docs" / "problems.md").read_text(encoding="utf-8")
    for code, problem in PROBLEMS.items():
        assert f"| `{code}` | {int(problem.status)} | {problem.meaning} |" in text
    assert text.count("\n| `") == len(PROBLEMS)
