"""The whole service in this process, asked over a real socket."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from rm_service.app import NoTokenError, Service, check_database
from rm_service.ledger.database import reader_engine
from rm_service.ledger.schema import WrongRevisionError, migrate
from rm_service.settings import read_settings


@contextmanager
def running(url: str, **environment: str) -> Iterator[tuple[Service, str]]:
    free = {"RM_HTTP_BIND": "127.0.0.1:0", "RM_GRPC_BIND": "127.0.0.1:0"}
    settings = read_settings(None, {"RM_DATABASE_URL": url} | free | environment)
    check_database(settings)
    service = Service(settings)
    service.start()
    try:
        host, port = service.server.address
        yield service, f"http://{host}:{port}"
    finally:
        service.stop()


@pytest.fixture
def migrated(sqlite_url: str) -> str:
    engine = reader_engine(sqlite_url)
    migrate(engine)
    engine.dispose()
    return sqlite_url


def asked(method: str, url: str, body: object = None, status: int = 200) -> Any:
    answer = requests.request(method, url, json=body, timeout=10)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_the_life_of_an_application_over_http(migrated: str) -> None:
    with running(migrated) as (_, root):
        api = f"{root}/api/v1"
        asked("PUT", f"{api}/nodes/h1", {"total": {"memory": "2Gi"}}, 201)
        body = {"tags": {"user": "alice", "node": "h1"}, "resource": {"memory": "2Gi"}}
        made = asked("POST", f"{api}/applications", body, 201)
        asked("POST", f"{api}/applications", body, 409)
        asked("POST", f"{api}/applications/{made['id']}/use", {})
        assert asked("GET", f"{api}/usage?by=user")["rows"][0]["used"] == {"memory": 2**31}
        asked("POST", f"{api}/applications/{made['id']}/release")
        assert asked("GET", f"{api}/audit")["consistent"]
        metrics = requests.get(f"{root}/metrics", timeout=10).text
        assert 'rm_operations_total{operation="Apply",outcome="insufficient_resources"} 1.0' in metrics
        assert 'rm_http_requests_total{method="POST",path="/api/v1/applications",status="201"} 1.0' in metrics
        assert "rm_labels 2.0" in metrics


def test_requests_of_resource_managers_are_counted_like_any_other(migrated: str) -> None:
    with running(migrated) as (_, root):
        twin = f"{root}/si/v1"
        asked("POST", f"{twin}/UpdateNode", {"rmID": "cluster-1"}, 404)
        asked("POST", f"{twin}/RegisterResourceManager", {"rmID": "cluster-1"})
        asked("POST", f"{twin}/UpdateNode", {"rmID": "cluster-1"})
        requests.get(f"{twin}/responses/cluster-1", stream=True, timeout=10).close()
        metrics = requests.get(f"{root}/metrics", timeout=10).text
    for method, route, status in (
        ("POST", "/si/v1/RegisterResourceManager", 200),
        ("POST", "/si/v1/UpdateNode", 200),
        ("POST", "/si/v1/UpdateNode", 404),
        ("GET", "/si/v1/responses/<rmID>", 200),
    ):
        counted = f'rm_http_requests_total{{method="{method}",path="{route}",status="{status}"}} 1.0'
        assert counted in metrics.splitlines()
    assert 'rm_http_request_seconds_count{method="POST",path="/si/v1/UpdateNode"} 2.0' in metrics
    assert "cluster-1" not in metrics


def test_it_becomes_ready_by_its_first_sweep(migrated: str) -> None:
    swept = threading.Event()
    with running(migrated) as (service, root):
        service.sweeper.sweep()
        swept.set()
        assert asked("GET", f"{root}/readyz")["checks"] == {
            "database": "ok",
            "migrations": "ok",
            "sweeper": "ok",
        }


def test_a_long_poll_is_answered_when_the_waiting_is_over(migrated: str) -> None:
    with running(migrated) as (_, root):
        api = f"{root}/api/v1"
        asked("PUT", f"{api}/nodes/h1", {"total": {"memory": 1}}, 201)
        body = {"tags": {"node": "h1"}, "resource": {"memory": 1}}
        holder = asked("POST", f"{api}/applications", body, 201)
        waiter = asked("POST", f"{api}/applications", body | {"wait_seconds": 60}, 202)
        found: list[Any] = []
        poll = threading.Thread(
            target=lambda: found.append(asked("GET", f"{api}/applications/{waiter['id']}?wait=30"))
        )
        poll.start()
        asked("POST", f"{api}/applications/{holder['id']}/release")
        poll.join(15)
        assert found[0]["state"] == "locked"


def test_events_stream_as_they_are_listed(migrated: str) -> None:
    with running(migrated) as (_, root):
        api = f"{root}/api/v1"
        asked("PUT", f"{api}/nodes/h1", {"total": {"memory": 1}}, 201)
        listed = asked("GET", f"{api}/events")["items"][-1]
        url = f"{api}/events?after={listed['seq'] - 1}"
        with requests.get(url, headers={"Accept": "text/event-stream"}, stream=True, timeout=10) as stream:
            line = next(line for line in stream.iter_lines() if line.startswith(b"data: "))
        assert json.loads(line.removeprefix(b"data: ")) == listed


def test_requests_that_were_accepted_are_answered_when_it_stops(migrated: str) -> None:
    answers: list[int] = []
    standing, gate = threading.Event(), threading.Event()
    with running(migrated) as (service, root):
        api = f"{root}/api/v1"
        asked("PUT", f"{api}/nodes/h1", {"total": {"memory": 1000}}, 201)

        def stand(_: object) -> None:
            standing.set()
            gate.wait()

        service.ledger.on_commit(stand)  # the writer, after its next commit
        drain = threading.Thread(target=asked, args=("POST", f"{api}/nodes/h1/drain"))
        drain.start()
        standing.wait()
        body = {"tags": {"node": "h1"}, "resource": {"memory": 1}}

        def ask() -> None:
            answers.append(requests.post(f"{api}/applications/explain", json=body, timeout=30).status_code)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        wait_until(lambda: service.ledger.waiting() == len(threads))
        stopping = threading.Thread(target=service.server.stop, args=(20,))
        stopping.start()
        wait_until(lambda: not accepts(*service.server.address))
        gate.set()
        for thread in (drain, *threads, stopping):
            thread.join()
    assert answers == [200] * 8


def wait_until(true: Callable[[], bool]) -> None:
    pause = threading.Event()
    while not true():
        pause.wait(0.01)


def accepts(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def test_it_refuses_to_start_on_a_schema_of_another_version(sqlite_url: str) -> None:
    with pytest.raises(WrongRevisionError, match="migrate"), running(sqlite_url):
        pass


def test_it_refuses_to_start_where_nobody_could_ask(migrated: str, tmp_path: Path) -> None:
    with pytest.raises(NoTokenError, match="token create"), running(migrated, RM_AUTH="token"):
        pass
