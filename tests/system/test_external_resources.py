"""An application whose executors run in a real YARN queue: both halves right, whatever becomes of YARN."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.system.client import API, Answer, Client, Json, until
from tests.system.conftest import StartService
from tests.system.service_process import ServiceProcess
from tests.yarn.cluster import YarnCluster
from tests.yarn.fixtures import yarn_cluster

__all__ = ["yarn_cluster"]

# The first test of all may have to fetch Hadoop.
pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(400),
    pytest.mark.parametrize("yarn_cluster", ["capacity"], indirect=True),
]

MIB = 2**20
GIB = 2**30
QUEUE = {"yarnCluster": "c1", "yarnQueue": "root.etl.daily"}
APPLICANTS = 64
ROOM = 16
"""So many of 1 GiB each have room in the queue."""


class World:
    """A service that follows one YARN, and engine managers that ask it."""

    def __init__(self, process: ServiceProcess, client: Client, yarn: YarnCluster) -> None:
        self.process = process
        self.client = client
        self.yarn = yarn
        client.put("/nodes/ecm", {"total": {"memory": "64Gi", "vcore": "64", "instances": 100}}, status=201)

    def follow(self, address: str, **more: object) -> None:
        config = {"addresses": [address]}
        self.client.put("/providers/yarn/c1", {"config": config, "refresh_seconds": 1, **more}, status=201)

    def ask(self, client: Client, user: str, *, gib: int = 1, wait: int = 0) -> Answer:
        """A driver on the node and its executors in the queue, as Linkis asks for them."""
        executors = {"queueMemory": f"{gib}g", "queueCores": 1, "queueInstances": 1}
        named = {"queueName": QUEUE["yarnQueue"], "clusterName": QUEUE["yarnCluster"]}
        body = {
            "tags": {"user": user, "node": "ecm"},
            "resource": {
                "loadInstanceResource": {"memory": "100m", "cores": 1, "instances": 1},
                "yarnResource": {**executors, **named},
            },
            "wait_seconds": wait,
        }
        return client.send("POST", f"{API}/applications", body)

    def start(self, client: Client, id_: str, *, tagged: bool) -> str:
        """Its engine starts, and its executors in YARN; what it is called there. Half of them carry our id,
        of the others the engine says what they are called.
        """
        tag = f"rm-{id_}" if tagged else f"job-{id_}"
        name = self.yarn.submit("root.etl.daily", tag=tag, megabytes=1024, vcores=1, containers=1)
        self.yarn.await_containers(name)
        told = {} if tagged else {"external_ids": [name]}
        client.put(f"/engines/engine-{id_}", {"application": id_, **told}, status=201)
        return name

    def end(self, name: str, id_: str) -> None:
        self.yarn.finish(name)
        self.client.call("DELETE", f"/engines/engine-{id_}")

    def queue(self) -> Json:
        [label] = self.client.get("/labels?selector=yarnQueue=root.etl.daily")["items"]
        return dict(label)

    def provider_state(self) -> str:
        standing = self.client.get("/providers/yarn/c1")["standing"]
        return "" if standing is None else str(standing["state"])

    def check_books(self) -> None:
        audit = self.client.get("/audit")
        assert audit["consistent"], audit
        assert self.queue()["used"].get("yarn.memory", 0) <= ROOM * GIB


@pytest.fixture
def world(
    sqlite_url: str,
    start_service: StartService,
    open_client: Callable[[ServiceProcess], Client],
    yarn_cluster: YarnCluster,
) -> World:
    process = start_service(sqlite_url, sweep_seconds=1)
    return World(process, open_client(process), yarn_cluster)


def test_parallel_applicants_never_overbook_a_queue_that_lags_behind(
    world: World, open_client: Callable[[ServiceProcess], Client]
) -> None:
    world.follow(world.yarn.web)
    until(lambda: world.provider_state() == "ok", "YARN has been looked at")
    clients = [open_client(world.process) for _ in range(APPLICANTS)]
    engines = [open_client(world.process) for _ in range(ROOM)]

    def all_ask(user: str) -> list[Answer]:
        return list(threads.map(lambda client: world.ask(client, user), clients))

    def start(at: int) -> tuple[str, str]:
        return world.start(engines[at], granted[at], tagged=at % 2 == 0), granted[at]

    with ThreadPoolExecutor(APPLICANTS) as threads:
        asked = all_ask("first")
        granted = [str(each.document["id"]) for each in asked if each.status == 201]
        assert len(granted) == ROOM
        assert {each.document["code"] for each in asked if each.status != 201} == {"insufficient_resources"}
        starting = [threads.submit(start, at) for at in range(ROOM)]
        while not all(each.done() for each in starting):  # YARN shows some of them by now, and some not
            assert {each.status for each in all_ask("meanwhile")} == {409}
        started = [each.result() for each in starting]
    until(lambda: not world.queue()["external"]["unseen"].get("yarn.memory"), "YARN shows all of them")
    queue = world.queue()
    assert (queue["left"]["yarn.memory"], queue["used"]["yarn.memory"]) == (0, ROOM * GIB)
    drivers = {"memory": ROOM * 100 * MIB, "vcore": ROOM * 1000, "instances": ROOM}
    assert world.client.get("/nodes/ecm")["used"] == drivers
    assert queue["used"]["yarn.apps"] == ROOM
    waiting = world.ask(world.client, "next", wait=60)
    assert waiting.status == 202
    world.end(*started[0])
    address = f"/applications/{waiting.document['id']}"
    until(lambda: world.client.get(address)["state"] == "locked", "the next one is in")
    world.check_books()
    for each in started[1:]:
        world.end(*each)
    world.client.post(f"{address}/release")
    assert world.client.get("/nodes/ecm")["used"] == {}
    until(lambda: world.ask(world.client, "last", gib=ROOM).status == 201, "all of it is free again")
    world.check_books()


def test_yarn_goes_away_and_comes_back(world: World) -> None:
    world.follow(world.yarn.web, stale_seconds=2)
    until(lambda: world.provider_state() == "ok", "YARN has been looked at")
    granted = world.ask(world.client, "alice")
    assert granted.status == 201
    world.yarn.stop_resource_manager()
    try:
        until(lambda: world.provider_state() == "failing", "that YARN is away is seen")
        until(lambda: _reason(world.ask(world.client, "bob")) == "external_stale", "it is not relied on")
        own = {"tags": {"user": "bob", "node": "ecm"}, "resource": {"memory": "1Gi"}}
        world.client.post("/applications", own, status=201)
        world.client.post(f"/applications/{granted.document['id']}/use")
        waiting = world.ask(world.client, "carol", wait=90)
        assert waiting.status == 202
    finally:
        world.yarn.start_resource_manager()
    address = f"/applications/{waiting.document['id']}"
    until(lambda: world.client.get(address)["state"] == "locked", "YARN is back", seconds=60)
    world.check_books()


def _reason(answer: Answer) -> str:
    return str(answer.document["shortfalls"][0]["reason"]) if answer.status == 409 else ""
