"""`rm-service providers`: what it asks for, what it shows, and where secrets may come from."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from rm_service.app import Service
from rm_service.commands.providers import providers
from rm_service.commands.secret_key import secret_key
from rm_service.ledger.database import reader_engine
from rm_service.ledger.schema import migrate
from rm_service.settings import read_settings
from tests.commands.conftest import Run, StubService

GIB = 2**30
STANDING: dict[str, Any] = {
    "state": "failing",
    "problem": None,
    "age_seconds": 71.4,
    "stale": True,
    "fetched_at": "2026-11-20T06:12:26.123456Z",
    "fetch_seconds": 0.2,
    "breaker": "open",
    "failures": 4,
    "last_error": {"kind": "denied", "reason": "401 at c1", "time": "2026-11-20T06:13:26.123456Z"},
    "health": {"ok": False, "detail": "401"},
    "stuck": 2,
}
PROVIDER: dict[str, Any] = {
    "type": "yarn",
    "name": "c1",
    "labels": "yarnCluster=c1",
    "config": {"url": "http://c1", "password": "***"},
    "stale_policy": "deny",
    "refresh_seconds": 10,
    "stale_seconds": 60,
    "protected": {"yarn.memory": GIB},
    "version": 3,
    "created_at": "2026-11-20T06:12:26.123456Z",
    "updated_at": "2026-11-20T06:12:26.123456Z",
    "standing": STANDING,
}
FAULT = {"type": "odd", "distributions": ["odd-rm 1.0"], "reason": "it has no parser"}
LIST = {"items": [PROVIDER], "next_cursor": None, "types": ["yarn"], "plugin_faults": [FAULT]}
PLACE = {
    "name": "root.etl",
    "total": {"yarn.memory": 4 * GIB, "yarn.vcore": 4000},
    "used": {"yarn.memory": GIB},
    "guaranteed": {"yarn.memory": 2 * GIB},
    "pending": {},
    "open": False,
    "details": {},
}
SNAPSHOT = {"type": "yarn", "name": "c1", "items": [PLACE], "next_cursor": "abc", **STANDING}


def lines(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines()]


def test_without_a_name_all_are_listed_with_what_is_wrong(ask: Run, service: StubService) -> None:
    service.answer("GET /providers", LIST)
    listed = ask(providers, COLUMNS="160")
    assert listed.exit_code == 0
    row = "yarn/c1 failing 71 s, stale open deny yarnCluster=c1 401 at c1"
    assert row.split() in lines(listed.stdout)
    assert "the plugin odd of odd-rm 1.0 is not used: it has no parser" in listed.stdout
    assert json.loads(ask(providers, "--json").stdout) == LIST
    service.answers.clear()
    service.answer("GET /providers", {"items": [], "next_cursor": None, "types": [], "plugin_faults": []})
    assert ask(providers).stdout == "there are no providers\n"


def test_a_name_shows_one(ask: Run, service: StubService) -> None:
    service.answer("GET /providers/yarn/c1", PROVIDER)
    shown = lines(ask(providers, "yarn/c1").stdout)
    assert ["config", "password", "***"] in shown
    assert ["protected", "yarn.memory=1Gi"] in shown
    assert ["last", "error", "2026-11-20", "06:13:26Z", "denied:", "401", "at", "c1"] in shown
    assert ask(providers, "yarn").exit_code == 2


def test_a_provider_is_set_from_a_file_and_single_keys(
    ask: Run, service: StubService, tmp_path: Path
) -> None:
    service.answer("PUT /providers/http-json/a%20b", PROVIDER, 201)
    file, secret = tmp_path / "c1=x.yaml", tmp_path / "password"
    file.write_text("url: http://c1\nuser: u\n", encoding="utf-8")
    secret.write_text("hunter2\n", encoding="utf-8")
    configs = [str(file), "user=bob", f"password=@{secret}", "places=[a, b]", "verify=false"]
    options = ["--labels", "yarnCluster in (a,b)", "--policy", "ignore", "--stale", "90"]
    chosen = [part for config in configs for part in ("--config", config)]
    result = ask(providers, "set", "http-json", "a b", *chosen, *options, "--protected", "memory=1Gi")
    assert result.exit_code == 0, result.output
    assert service.asked[0].body == {
        "config": {
            "url": "http://c1",
            "user": "bob",
            "password": "hunter2",
            "places": ["a", "b"],
            "verify": False,
        },
        "labels": "yarnCluster in (a,b)",
        "stale_policy": "ignore",
        "stale_seconds": 90,
        "protected": {"memory": GIB},
    }


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("no-such-file.yaml", "no-such-file.yaml: No such file or directory"),
        ("broken.yaml", "broken.yaml: is no YAML"),
        ("password=@no-such-file", "no-such-file: No such file or directory"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_not_sent(
    ask: Run, service: StubService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.yaml").write_text("password: [hunter2", encoding="utf-8")
    result = ask(providers, "set", "yarn", "c1", "--config", config)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert "hunter2" not in result.stderr
    assert service.asked == []


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("***", "***"),
        ("*word", "*word"),
        ("[hunter2", "[hunter2"),
        ("%x: {", "%x: {"),
        ("&word", "&word"),
        ("a #b", "a #b"),
        ("2026-01-01", "2026-01-01"),
        ("http://rm1:8088", "http://rm1:8088"),
        ('"123"', "123"),
        ("123", 123),
        ("false", False),
        ("", None),
        ("[a, b]", ["a", "b"]),
        ("{x-token: ***}", "{x-token: ***}"),
        ("{x-token: '***'}", {"x-token": "***"}),
    ],
)
def test_a_value_that_is_nothing_else_is_a_text(
    ask: Run, service: StubService, value: str, sent: object
) -> None:
    service.answer("PUT /providers/yarn/c1", PROVIDER, 201)
    result = ask(providers, "set", "yarn", "c1", "--config", f"word={value}")
    assert result.exit_code == 0, result.output
    assert service.asked[0].body == {"config": {"word": sent}}


def test_a_number_where_a_text_is_wanted_is_told_to_need_quotes(ask: Run, service: StubService) -> None:
    text = ["Not a valid string."]
    faults = {"config.password": text, "config.user": ["Missing."], "config.headers.X-Key.value": text}
    problem = {"status": 422, "detail": "no", "code": "invalid_provider", "errors": faults}
    service.answer("PUT /providers/yarn/c1", problem, 422)
    options = ["--config", "password=20261224", "--config", "headers.X-Key=7"]
    refused = ask(providers, "set", "yarn", "c1", *options, COLUMNS="200")
    assert refused.exit_code == 1
    assert "Not a valid string. It was read as a number; if it is a text" in refused.stderr
    assert """--config 'password="..."'""" in refused.stderr
    assert """--config 'headers.X-Key="..."'""" in refused.stderr
    assert "20261224" not in refused.stderr


def test_a_key_of_an_object_is_given_by_itself(ask: Run, service: StubService, tmp_path: Path) -> None:
    service.answer("PUT /providers/http-json/cad", PROVIDER, 201)
    file, secret = tmp_path / "cad.yaml", tmp_path / "token"
    file.write_text("headers: {Accept-Language: en}\n", encoding="utf-8")
    secret.write_text("Bearer hunter2\n", encoding="utf-8")
    configs = [str(file), f"headers.Authorization=@{secret}", "total.cad.memory=memMb"]
    chosen = [part for config in configs for part in ("--config", config)]
    assert ask(providers, "set", "http-json", "cad", *chosen).exit_code == 0
    assert service.asked[0].body == {
        "config": {
            "headers": {"Accept-Language": "en", "Authorization": "Bearer hunter2"},
            "total": {"cad.memory": "memMb"},
        }
    }
    refused = ask(providers, "set", "http-json", "cad", "--config", "url=http://a", "--config", "url.x=1")
    assert refused.exit_code == 2
    assert "url.x: url is no object" in refused.stderr


def test_a_provider_is_removed(ask: Run, service: StubService) -> None:
    service.answer("DELETE /providers/yarn/c1", b"", 204)
    assert ask(providers, "remove", "yarn/c1").stdout == "the provider is removed\n"


def test_the_places_are_shown_with_their_amounts(ask: Run, service: StubService) -> None:
    service.answer("GET /providers/yarn/c1/snapshot", SNAPSHOT)
    shown = lines(ask(providers, "snapshot", "yarn/c1", "--place", "root.etl", COLUMNS="120").stdout)
    assert service.asked[0].query == {"place": ["root.etl"], "limit": ["100"]}
    assert ["age", "71", "s,", "stale"] in shown
    assert ["calls", "that", "hang", "2"] in shown
    assert ["more:", "--cursor", "abc"] in shown
    assert ["root.etl", "no", "yarn.memory", "4Gi", "1Gi", "2Gi", "-"] in shown
    assert ["yarn.vcore", "4", "-", "-", "-"] in shown


def test_what_runs_there_is_shown(ask: Run, service: StubService) -> None:
    application = {
        "id": "application_1_2",
        "place": "root.etl",
        "allocated": {"yarn.memory": GIB},
        "state": "RUNNING",
        "user": "alice",
        "name": "nightly",
        "kind": "SPARK",
        "tags": [],
    }
    answer = {"items": [application], "next_cursor": "abc", "age_seconds": 1.0, "fetched_at": None}
    service.answer("GET /providers/yarn/c1/applications", answer)
    page = ["--limit", "1", "--cursor", "x"]
    shown = lines(ask(providers, "applications", "yarn/c1", *page, COLUMNS="120").stdout)
    assert service.asked[0].query == {"limit": ["1"], "cursor": ["x"]}
    assert shown[1] == ["application_1_2", "root.etl", "RUNNING", "alice", "yarn.memory=1Gi", "nightly"]
    assert shown[2] == ["more:", "--cursor", "abc"]


def test_a_new_key_can_be_used(run: Run) -> None:
    first, second = (run(secret_key).stdout.strip() for _ in range(2))
    assert first != second
    assert Fernet(first).decrypt(Fernet(first).encrypt(b"x")) == b"x"


@pytest.fixture
def url(sqlite_url: str, tmp_path: Path, run: Run) -> Iterator[str]:
    """Address of a running service that has a key."""
    engine = reader_engine(sqlite_url)
    migrate(engine)
    engine.dispose()
    keys = tmp_path / "keys"
    keys.write_text(run(secret_key).stdout, encoding="ascii")
    told = {"RM_DATABASE_URL": sqlite_url, "RM_HTTP_BIND": "127.0.0.1:0", "RM_GRPC_BIND": "off"}
    service = Service(read_settings(None, told | {"RM_SECRET_KEY_FILE": str(keys)}))
    service.start()
    host, port = service.server.address
    yield f"http://{host}:{port}"
    service.stop()


def test_a_provider_of_a_running_service_goes_its_whole_way(run: Run, url: str, tmp_path: Path) -> None:
    places = tmp_path / "places.yaml"
    places.write_text("places:\n  - {name: hall, total: {gpu: 8}, used: {gpu: 3}}\n", encoding="utf-8")
    made = run(providers, "set", "static", "hall-1", "--config", f"path={places}", RM_URL=url)
    assert made.exit_code == 0, made.output
    assert "static/hall-1" in run(providers, RM_URL=url, COLUMNS="160").stdout
    refused = run(providers, "set", "static", "hall-2", "--config", "path=here", RM_URL=url)
    assert refused.exit_code == 1
    assert "config.path" in refused.stderr
    shown = run(providers, "snapshot", "static/hall-1", "--json", RM_URL=url)
    assert json.loads(shown.stdout)["type"] == "static"
    assert run(providers, "remove", "static/hall-1", RM_URL=url).exit_code == 0
    assert run(providers, "static/hall-1", RM_URL=url).exit_code == 1
