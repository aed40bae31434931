"""A node's agent sets up each device once and takes it down once, whoever is killed meanwhile."""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.system.client import Client, Json, until
from tests.system.conftest import StartService
from tests.system.service_process import ServiceProcess

pytestmark = pytest.mark.system

AGENT = Path(__file__).with_name("node_agent.py")
CLASSES = "/apis/resourceclass.rm/v1alpha1/resourceclasses"
KIND = {"key": "Kind", "operator": "In", "values": ["gpu"]}
LARGE = {"key": "memory", "operator": "GtEq", "values": ["30G"]}
NODE = {
    "total": {"memory": "64Gi"},
    "devices": [
        {"name": "gpu0", "count": 4, "attributes": {"Kind": "gpu", "memory": "40G"}},
        {"name": "gpu1", "count": 4, "attributes": {"Kind": "gpu", "memory": "16G"}},
    ],
}
ASKS = ({"any": 1}, {"large": 1}, {"any": 2, "large": 1}, {"any": "300m"}, {"large": "500m", "any": 1})
ROUNDS = 6
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
"""For what does not depend on the database."""


class AgentProcess:
    """The agent of node n1, on the same state whenever it is started again."""

    def __init__(self, service: ServiceProcess, folder: Path) -> None:
        self._service = service
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(AGENT), str(self._service.port), "n1", str(self._folder), *options],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def wait(self) -> int:
        """Its exit code when it has ended by itself; a signal's number is negative."""
        assert self._process is not None
        process, self._process = self._process, None
        return process.wait(30)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def calls(self) -> list[Json]:
        """What the plugins were called for, in order."""
        path = self._folder / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def service(database_url: str, start_service: StartService) -> ServiceProcess:
    """With two classes that overlap, and a node with devices of both."""
    service = start_service(database_url)
    with Client(service.port) as client:
        for name, expressions in (("any", [KIND]), ("large", [KIND, LARGE])):
            document = {
                "apiVersion": "resourceclass.rm/v1alpha1",
                "kind": "ResourceClass",
                "metadata": {"name": name},
                "spec": {"resourceSelector": [{"matchExpressions": expressions}]},
            }
            assert client.send("POST", CLASSES, document).status == 201
        client.put("/nodes/n1", NODE, status=201)
    return service


@pytest.fixture
def agent(service: ServiceProcess, tmp_path: Path) -> Iterator[AgentProcess]:
    folder = tmp_path / "agent"
    folder.mkdir()
    agent = AgentProcess(service, folder)
    yield agent
    agent.kill()


def ask(client: Client, classes: Json) -> Json | None:
    """An application that uses what it was granted, or None if there is no room."""
    answer = client.send("POST", "/api/v1/applications", {"tags": {"user": "alice"}, "classes": classes})
    assert answer.status in {201, 409}, answer
    if answer.status == 409:
        return None
    return client.post(f"/applications/{answer.document['id']}/use", {})


def release(client: Client, applications: Sequence[Json]) -> None:
    for application in applications:
        client.post(f"/applications/{application['id']}/release", {})


def until_it_holds(agent: AgentProcess, applications: Sequence[Json]) -> None:
    wanted = {
        (each["id"], held["class"], held["device"]) for each in applications for held in each["devices"]
    }
    until(lambda: set_up(agent.calls()) == wanted or None, f"what is set up is {wanted}")


def set_up(calls: Sequence[Json]) -> set[tuple[str, str, str]]:
    """What is set up after these calls. Each call is a step that may be taken: never twice the same."""
    held: set[tuple[str, str, str]] = set()
    for call in calls:
        key = (call["application"], call["class"], call["device"])
        if call["verb"] == "Allocate":
            assert key not in held, f"set up twice: {call}"
            held.add(key)
        else:
            held.remove(key)
    return held


def check_once(calls: Sequence[Json]) -> None:
    """Each assignment was set up once and taken down once, and no unit was ever given to two at a time."""
    assert set_up(calls) == set()
    counted = Counter((call["verb"], call["application"], call["class"], call["device"]) for call in calls)
    assert set(counted.values()) == {1}
    assert [call["call"] for call in calls] == list(range(1, len(calls) + 1))
    taken: Counter[tuple[str, int]] = Counter()
    for call in calls:
        sign = 1 if call["verb"] == "Allocate" else -1
        for unit in call["units"]:
            taken[call["device"], unit["unit"]] += sign * milli(unit["quantity"])
        assert all(0 <= amount <= 1000 for amount in taken.values()), call


def milli(quantity: str) -> int:
    return int(quantity.removesuffix("m")) if quantity.endswith("m") else 1000 * int(quantity)


@ON_SQLITE
@pytest.mark.parametrize("point", ["intent", "call", "done"])
def test_an_agent_that_dies_within_a_call_makes_it_once(
    service: ServiceProcess, agent: AgentProcess, point: str
) -> None:
    with Client(service.port) as client:
        granted = [each for each in (ask(client, {"any": 1}) for _ in range(4)) if each]
        agent.start("--die", point)
        assert agent.wait() < 0, "it killed itself"
        agent.start()
        until_it_holds(agent, granted)
        agent.kill()
        release(client, granted)
        agent.start("--die", point)
        assert agent.wait() < 0
        agent.start()
        until_it_holds(agent, [])
        check_once(agent.calls())
        assert client.get("/audit")["consistent"]


@pytest.mark.timeout(300)
def test_each_assignment_is_set_up_and_taken_down_once_whoever_is_killed(
    service: ServiceProcess, agent: AgentProcess
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - shown when the test fails
    chance = random.Random(seed)

    def kill_agent() -> None:
        agent.kill()
        agent.start()

    def kill_service() -> None:
        service.kill()
        service.start()

    def kill_both() -> None:
        agent.kill()
        service.kill()
        agent.start()  # it comes back first, and finds nobody
        service.start()

    disasters: Sequence[Callable[[], None]] = (kill_agent, kill_service, kill_both)
    held: list[Json] = []
    everybody = 0
    agent.start()
    for round_ in range(ROUNDS):
        with Client(service.port) as client:
            granted = [each for each in (ask(client, chance.choice(ASKS)) for _ in range(6)) if each]
            everybody += len(granted)
            held += granted
            chance.shuffle(held)
        disasters[round_ % len(disasters)]()  # the agent is about to set up what was granted
        until_it_holds(agent, held)
        with Client(service.port) as client:
            going, held = held[: len(held) // 2 + 1], held[len(held) // 2 + 1 :]
            release(client, going)
        disasters[(round_ + 1) % len(disasters)]()  # and now to take down
        until_it_holds(agent, held)
    with Client(service.port) as client:
        release(client, held)
        until_it_holds(agent, [])
        check_once(agent.calls())
        assert len({call["application"] for call in agent.calls()}) == everybody >= ROUNDS
        assert client.get("/audit")["consistent"]


@ON_SQLITE
def test_an_agent_takes_everything_down_and_ends_when_its_node_is_removed(
    service: ServiceProcess, agent: AgentProcess
) -> None:
    with Client(service.port) as client:
        granted = ask(client, {"any": 2, "large": 1})
        assert granted is not None
        agent.start()
        until_it_holds(agent, [granted])
        client.call("DELETE", "/nodes/n1", status=204)
        assert agent.wait() == os.EX_OK
        check_once(agent.calls())
        assert client.get(f"/applications/{granted['id']}")["state"] == "lost"
        assert client.get("/audit")["consistent"]
