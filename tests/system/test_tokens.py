"""Who may ask: tokens made on the command line, and never told to anybody else."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.system.client import Client, until
from tests.system.conftest import StartService
from tests.system.service_process import ServiceProcess

pytestmark = pytest.mark.system

ELSEWHERE = "192.0.2.1:8310"  # an address of RFC 5737: no machine has it, so nothing could be bound there


@pytest.fixture
def migrated(sqlite_url: str, tmp_path: Path) -> ServiceProcess:
    """A service that was never started."""
    service = ServiceProcess(sqlite_url, tmp_path)
    service.migrate()
    return service


def made_token(service: ServiceProcess, name: str) -> str:
    done = service.run("token", "create", name)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_with_tokens_asked_for_only_a_valid_one_is_let_in_until_it_is_revoked(
    migrated: ServiceProcess, start_service: StartService, open_client: Callable[..., Client], sqlite_url: str
) -> None:
    token = made_token(migrated, "operator")
    service = start_service(sqlite_url, auth="token", log_level="debug")
    nobody, stranger = open_client(service), open_client(service, token="rm_wrong")  # noqa: S106 - not a secret
    operator = open_client(service, token=token)
    for client in (nobody, stranger):
        answer = client.send("GET", "/api/v1/nodes")
        assert answer.status == 401
        assert answer.document["code"] == "unauthorized"
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert operator.get("/nodes")["items"] == []
    assert nobody.send("GET", "/healthz").status == 200

    assert service.run("token", "revoke", "operator").returncode == 0
    until(lambda: operator.send("GET", "/api/v1/nodes").status == 401, "the revoked token is refused")
    listed = service.run("token", "list").stdout
    assert "operator" in listed
    assert "revoked" in listed
    assert service.stop() == 0
    told = service.log_text() + listed
    assert "path=/api/v1/nodes" in told, "requests are in the log"
    assert token not in told
    assert "rm_wrong" not in told


def test_without_a_token_the_service_does_not_start_on_an_address_that_others_can_reach(
    sqlite_url: str, tmp_path: Path, migrated: ServiceProcess
) -> None:
    refused = ServiceProcess(sqlite_url, tmp_path, http_bind=ELSEWHERE).run("serve")
    assert refused.returncode == 1
    assert "token create" in refused.stderr
    assert ELSEWHERE in refused.stderr


def test_asking_for_tokens_where_there_is_none_is_refused_even_on_this_machine(
    sqlite_url: str, tmp_path: Path, migrated: ServiceProcess
) -> None:
    refused = ServiceProcess(sqlite_url, tmp_path, auth="token").run("serve")
    assert refused.returncode == 1
    assert "token create" in refused.stderr
