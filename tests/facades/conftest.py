"""The API over Flask's test client and the streams over a socket, on a real ledger."""

import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from marshmallow import Schema
from werkzeug.test import TestResponse

from external_providers.static import StaticProvider
from rm_service.facades.http.answer_schemas import ProblemSchema
from rm_service.facades.http.endpoints import API, Endpoint
from rm_service.facades.http.http_app import create_app
from rm_service.facades.http.native_api import Services, native_endpoints
from rm_service.facades.http.problems import PROBLEMS
from rm_service.hosting.authentication import Authentication
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.tailer import Tailer
from rm_service.services.applications import Applications
from rm_service.services.books import Books
from rm_service.services.engines import Engines
from rm_service.services.external.external_resources import ExternalResources
from rm_service.services.external.keys import Keys, new_key
from rm_service.services.limits import Limits
from rm_service.services.nodes import Nodes
from rm_service.services.resource_classes import ResourceClasses
from tests.facades.live import Clients, Service
from tests.ledger.conftest import database_url, default_rules, ledger, postgres_template, sqlite_template
from tests.services.external.scripted import ScriptedProvider, plugins_with

__all__ = ["database_url", "default_rules", "ledger", "postgres_template", "sqlite_template"]

GIB = 2**30
MAX_BODY = 1 << 20
Json = dict[str, Any]


@dataclass
class Api:
    """The API as a client sees it. Every answer is held against what the OpenAPI document says of it."""

    app: Flask
    endpoints: list[Endpoint]
    _answers: dict[str, Endpoint] = field(init=False)

    def __post_init__(self) -> None:
        self._answers = {f"{each.method} {each.path}": each for each in self.endpoints}

    def send(self, method: str, path: str, **more: Any) -> TestResponse:
        """The bare answer."""
        return self.app.test_client().open(API + path, method=method, **more)

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        status: int,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        """The document of an answer that must have this status."""
        answer = self.send(method, path, json=body, headers=headers)
        assert answer.status_code == status, answer.get_data(as_text=True)
        if status == 204:
            assert answer.get_data() == b""
            return {}
        document: Json = answer.get_json()
        self._check(method, path, answer, document)
        return document

    def get(self, path: str, status: int = 200) -> Json:
        return self.call("GET", path, status=status)

    def post(self, path: str, body: object = None, *, status: int) -> Json:
        return self.call("POST", path, body, status=status)

    def put(self, path: str, body: object, *, status: int) -> Json:
        return self.call("PUT", path, body, status=status)

    def delete(self, path: str, *, status: int) -> Json:
        return self.call("DELETE", path, status=status)

    def node(self, instance: str = "h1", **total: object) -> Json:
        """A registered node; by default 8 GiB, 4 cores, 10 instances."""
        room = total or {"memory": "8Gi", "vcore": 4000, "instances": 10}
        return self.put(f"/nodes/{instance}", {"total": room}, status=201)

    def apply(self, status: int = 201, **changes: object) -> Json:
        """An application for 1 GiB by alice on h1, unless something else is said."""
        body = {"tags": {"user": "alice", "node": "h1"}, "resource": {"memory": GIB}} | changes
        return self.post("/applications", body, status=status)

    def audit(self) -> None:
        """The books balance."""
        found = self.get("/audit")
        assert found["consistent"], found["differences"]

    def _check(self, method: str, path: str, answer: TestResponse, document: Json) -> None:
        if answer.status_code >= 400:
            assert answer.content_type == "application/problem+json"
            _hold(ProblemSchema(), document)
            assert document["status"] == answer.status_code
            assert document["code"] in PROBLEMS
            return
        assert answer.content_type == "application/json"
        with self.app.test_request_context(API + path, method=method) as context:
            assert context.request.url_rule is not None
            endpoint = self._answers[context.request.url_rule.endpoint]
        schema = endpoint.answers[answer.status_code]
        assert schema is not None
        _hold(schema, document)


@pytest.fixture
def api(ledger: Ledger) -> Api:
    return make_api(ledger)


@pytest.fixture(scope="session")
def shared_ledger(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    path = shutil.copy(sqlite_template, tmp_path_factory.mktemp("shared") / "rm.db")
    opened = Ledger(LedgerSettings(f"sqlite:///{path}"))
    opened.open()
    make_api(opened).node("h0")
    yield opened
    opened.close()


@pytest.fixture
def refusing(shared_ledger: Ledger) -> Iterator[Api]:
    """The API for requests that must all be refused: at the end nothing has changed. `h0` is registered."""
    books = Books(shared_ledger)
    before = books.last_event()
    yield make_api(shared_ledger)
    assert books.last_event() == before


@pytest.fixture
def service(sqlite_template: Path, tmp_path: Path) -> Iterator[Service]:
    """Started, on a ledger on SQLite; stopped at the end."""
    path = shutil.copy(sqlite_template, tmp_path / "rm.db")
    ledger = Ledger(LedgerSettings(f"sqlite:///{path}"))
    ledger.open()
    tailer = Tailer(ledger)
    tailer.start()
    service = Service(ledger, tailer)
    service.server.start()
    yield service
    service.server.stop(grace=1.0)
    tailer.stop()
    ledger.close()


@pytest.fixture
def clients(service: Service) -> Iterator[Clients]:
    clients = Clients(service)
    yield clients
    for client in clients.made:
        client.connection.close()


def make_api(
    ledger: Ledger,
    *,
    authentication: Authentication | None = None,
    external: ExternalResources | None = None,
) -> Api:
    plugins = plugins_with(ScriptedProvider(), StaticProvider())
    services = Services(
        Applications(ledger, lock_seconds=720),
        Nodes(ledger, silence_seconds=60),
        Engines(ledger, silence_seconds=60),
        Limits(ledger),
        Books(ledger),
        external or ExternalResources(ledger, Keys([new_key()]), plugins),
        ResourceClasses(ledger),
    )
    endpoints = native_endpoints(services)
    gate = authentication or Authentication(needed=False, name_of=lambda _: None)
    return Api(create_app(endpoints, gate, max_body=MAX_BODY), endpoints)


def new_id() -> str:
    return str(uuid.uuid4())


def _hold(schema: Schema, document: Json) -> None:
    assert schema.validate(document) == {}, document
