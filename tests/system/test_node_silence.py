"""A node that falls silent is lost with what ran there, and takes its place again when it comes back."""

from collections.abc import Callable

import pytest

from tests.system.client import Client, until
from tests.system.conftest import StartService
from tests.system.service_process import ServiceProcess

pytestmark = pytest.mark.system

NODE = {"total": {"memory": "8Gi"}}
ON_NODE = {"tags": {"user": "alice", "node": "h1"}, "resource": {"memory": "2Gi"}}
TWO_GIB = 2 * 2**30


def test_a_silent_node_is_lost_with_its_applications_and_books_them_again_when_it_returns(
    database_url: str, start_service: StartService, open_client: Callable[[ServiceProcess], Client]
) -> None:
    client = open_client(start_service(database_url, sweep_seconds=1, node_silence_seconds=1))
    client.put("/nodes/h1", NODE, status=201)
    client.put("/nodes/never-heard", NODE, status=201)
    used = client.post("/applications", ON_NODE, status=201)["id"]
    client.post(f"/applications/{used}/use")
    locked = client.post("/applications", ON_NODE, status=201)["id"]
    client.post("/nodes/h1/heartbeat")

    ids = (used, locked)
    until(
        lambda: {client.get(f"/applications/{each}")["state"] for each in ids} == {"lost"},
        "both applications are lost",
    )
    node = client.get("/nodes/h1")
    assert (node["state"], node["locked"], node["used"]) == ("lost", {}, {})
    assert "heartbeat" in node["reason"]
    for each in ids:
        reason = client.get(f"/applications/{each}")["reason"]
        assert "h1" in reason
        assert "heartbeat" in reason
    assert client.get("/nodes/never-heard")["state"] == "schedulable", "it never sent a heartbeat"
    refused = client.post("/applications", ON_NODE, status=409)
    assert refused["code"] in {"node_not_schedulable", "insufficient_resources"}, refused

    client.put("/nodes/h1", {**NODE, "applications": [used]}, status=200)
    node = client.get("/nodes/h1")
    assert (node["state"], node["used"]) == ("schedulable", {"memory": TWO_GIB})
    assert client.get(f"/applications/{used}")["state"] == "used"
    assert client.get(f"/applications/{locked}")["state"] == "lost", "the node did not name it"
    assert client.get("/audit")["consistent"]
