"""The query commands against a running service, each once for people and once for scripts."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.system.client import API, Client, Json
from tests.system.conftest import StartService
from tests.system.service_process import ServiceProcess

pytestmark = pytest.mark.system

NODE = {"total": {"memory": "8Gi", "vcore": 4000}, "attributes": {"gpu": "T4"}}
ASKED = {
    "tags": {"user": "alice", "creator": "IDE", "engineType": "spark-3.3", "node": "h1"},
    "resource": {"memory": "2Gi"},
}


class CommandLine:
    """`rm-service` as an operator types it; it is told by RM_URL where the service is."""

    def __init__(self, service: ServiceProcess) -> None:
        self._service = service

    def text(self, *arguments: str, code: int = 0) -> str:
        done = self._service.run(*arguments, f"--url={self._service.url}")
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        return done.stdout

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.text(*arguments, "--json", code=code))


@pytest.fixture
def application(
    sqlite_url: str, start_service: StartService, open_client: Callable[[ServiceProcess], Client]
) -> tuple[CommandLine, Client, Json]:
    """A service with a node, a limit, an engine and its application."""
    service = start_service(sqlite_url)
    client = open_client(service)
    client.put("/nodes/h1", NODE, status=201)
    client.put("/limits", {"tags": {"user": "*"}, "total": {"memory": "4Gi"}}, status=201)
    application = client.post("/applications", ASKED, status=201)
    client.put("/engines/e1", {"application": application["id"]}, status=201)
    return CommandLine(service), client, client.get(f"/applications/{application['id']}")


def test_every_query_command_prints_what_the_api_answers(
    application: tuple[CommandLine, Client, Json],
) -> None:
    commands, client, one = application
    answers = {
        ("usage", "--by", "user"): "/usage?by=user",
        ("usage", "--by", "user,engineType", "--where", "creator=IDE"): "/usage?by=user,engineType"
        "&where=creator%3DIDE",
        ("top",): "/usage?by=user",
        ("nodes",): "/nodes",
        ("nodes", "--selector", "gpu=T4"): "/nodes",
        ("nodes", "h1"): "/nodes/h1",
        ("applications", "--state", "used"): "/applications",
        ("applications", one["id"]): f"/applications/{one['id']}",
        ("engines",): "/engines",
        ("limits", "list"): "/limits",
        ("labels", "--selector", "user=alice"): "/labels?selector=user%3Dalice",
        ("events", "--after", "2"): "/events?after=2",
        ("audit",): "/audit",
    }
    for command, path in answers.items():
        assert commands.json(*command) == json.loads(client.send("GET", API + path).body), command


def test_explain_says_who_is_in_the_way(application: tuple[CommandLine, Client, Json]) -> None:
    commands, _, one = application
    ask = ("explain", "--tag", "user=alice", "--resource", "memory=3Gi")
    explained = commands.json(*ask)
    assert explained["would_fit"] is False
    assert [short["label"] for short in explained["shortfalls"]] == [{"user": "alice"}]
    assert one["id"] in commands.text(*ask)
    assert commands.json("explain", "--tag", "user=bob", "--resource", "memory=3Gi")["would_fit"] is True


def test_limits_are_set_and_removed(application: tuple[CommandLine, Client, Json]) -> None:
    commands, client, _ = application
    made = commands.json("limits", "set", "--tag", "user=alice", "--total", "memory=8Gi")
    assert made["total"] == {"memory": 8 * 2**30}
    commands.text("limits", "remove", str(made["id"]))
    assert [limit["tags"] for limit in client.get("/limits")["items"]] == [{"user": "*"}]


def test_people_are_shown_tables(application: tuple[CommandLine, Client, Json]) -> None:
    commands, _, _ = application
    assert "alice" in commands.text("usage", "--by", "user")
    assert "h1" in commands.text("nodes")
    assert "consistent" in commands.text("audit")
    assert "application.used" in commands.text("events")


def test_a_refusal_and_a_service_that_is_not_there_have_exit_codes_of_their_own(
    application: tuple[CommandLine, Client, Json], sqlite_url: str, start_service: StartService
) -> None:
    commands, _, _ = application
    assert commands.json("nodes", "nobody", code=1)["code"] == "unknown_node"
    gone = start_service(sqlite_url.replace("rm.db", "other.db"))
    gone.kill()
    assert gone.run("nodes", f"--url={gone.url}").returncode == 3
