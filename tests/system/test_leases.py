"""Locks that nobody uses come back by themselves, on time and once."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime

import pytest

from tests.system.client import Client, Json, event_stream, until
from tests.system.conftest import StartService
from tests.system.service_process import ServiceProcess

pytestmark = pytest.mark.system

LOCK = {"tags": {"user": "alice"}, "resource": {"memory": 1}, "lock_seconds": 1}
RECLAIMED = "application.reclaimed"
SLACK = 5.0  # seconds: a sweep comes each second, the machine may be busy
LOCKS = 400


def seconds_between(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def test_a_lock_that_is_not_used_is_reclaimed_on_time_and_the_stream_tells_of_it(
    database_url: str, start_service: StartService, open_client: Callable[[ServiceProcess], Client]
) -> None:
    service = start_service(database_url, sweep_seconds=1)
    client = open_client(service)
    with event_stream(service.port) as events:
        lock = client.post("/applications", LOCK, status=201)
        kept = client.post("/applications", LOCK, status=201)
        client.post(f"/applications/{kept['id']}/use")
        told = next(event for event in events if event["kind"] == RECLAIMED)
    assert told["subject"] == lock["id"]
    assert 0 <= seconds_between(lock["lock_deadline"], told["time"]) < SLACK
    assert client.get(f"/applications/{lock['id']}")["state"] == "reclaimed"
    assert client.get(f"/applications/{kept['id']}")["state"] == "used"
    refused = client.post(f"/applications/{lock['id']}/use", status=409)
    assert refused["code"] == "expired"
    [row] = client.get("/usage?by=user")["rows"]
    assert (row["locked"], row["used"], row["applications"]) == ({}, {"memory": 1}, 1)


def test_two_services_on_one_database_reclaim_each_lock_once(
    durable_url: str, start_service: StartService, open_client: Callable[[ServiceProcess], Client]
) -> None:
    services = [start_service(durable_url, sweep_seconds=1) for _ in range(2)]
    clients = [open_client(service) for service in services]
    batch = {"operations": [{"op": "apply", **LOCK}] * (LOCKS // 4)}
    locks: list[Json] = []
    for n in range(4):
        locks += clients[n % 2].post("/batch", batch)["results"]
    assert {lock["status"] for lock in locks} == {201}
    assert len({lock["id"] for lock in locks}) == LOCKS
    until(lambda: clients[0].get("/usage?by=user")["rows"] == [], "nothing is locked any more")
    reclaimed = Counter(
        event["subject"] for event in clients[1].pages("/events") if event["kind"] == RECLAIMED
    )
    assert reclaimed == Counter(lock["id"] for lock in locks)
    assert clients[0].get("/audit")["consistent"]
