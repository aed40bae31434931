"""PostgreSQL goes away and comes back: refusals that say so, recovery without a restart, no lock lost."""

from collections.abc import Callable
from datetime import datetime

import psycopg
import pytest

from tests.postgres import PostgresServer, free_port, libpq_url
from tests.system.client import Client, Json, NoAnswerError, until
from tests.system.conftest import StartService
from tests.system.service_process import ServiceProcess

pytestmark = pytest.mark.system

LOCK_SECONDS = 60
LOCK = {"tags": {"user": "alice", "node": "h1"}, "resource": {"memory": 1}, "lock_seconds": LOCK_SECONDS}
SWEEP_SECONDS = 1
TEN_MINUTES = 600_000_000  # microseconds
RECOVERY = 30.0

AGE = """
UPDATE sweep SET succeeded_at = succeeded_at - %(gap)s;
UPDATE application SET deadline = deadline - %(gap)s;
UPDATE node SET deadline = deadline - %(gap)s
"""


def lengthen_outage(server: PostgresServer, url: str) -> None:
    """Make a stopped server's data ten minutes older, out of the service's reach, and stop it again."""
    port = server.port
    server.port = free_port()
    server.start()
    try:
        with psycopg.connect(libpq_url(server.url(url.rpartition("/")[2])), autocommit=True) as connection:
            for statement in AGE.split(";"):
                connection.execute(statement, {"gap": TEN_MINUTES})
    finally:
        server.stop()
        server.port = port


def seconds_left(application: Json, now: datetime) -> float:
    return (datetime.fromisoformat(application["lock_deadline"]) - now).total_seconds()


def test_while_the_database_is_away_requests_are_told_so_and_afterwards_all_goes_on(
    durable_url: str,
    postgres: PostgresServer,
    start_service: StartService,
    open_client: Callable[[ServiceProcess], Client],
) -> None:
    service = start_service(durable_url, sweep_seconds=SWEEP_SECONDS)
    client = open_client(service)
    client.put("/nodes/h1", {"total": {"memory": 10}}, status=201)
    before = client.post("/applications", LOCK, status=201)

    postgres.stop()
    for method, path, body in (
        ("POST", "/api/v1/applications", LOCK),
        ("POST", f"/api/v1/applications/{before['id']}/use", {}),
        ("GET", f"/api/v1/applications/{before['id']}", None),
        ("GET", "/api/v1/nodes", None),
        ("GET", "/readyz", None),
    ):
        answer = client.send(method, path, body)
        assert answer.status == 503, (path, answer.body)
        assert answer.headers["content-type"] == "application/problem+json"
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.document["code"] in {"unavailable", "not_ready"}
    assert client.send("GET", "/healthz").status == 200

    postgres.start()
    until(service.is_ready, "the service is ready again", seconds=RECOVERY)
    assert client.post(f"/applications/{before['id']}/use")["state"] == "used"
    after = client.post("/applications", LOCK, status=201)
    ids = [application["id"] for application in client.pages("/applications")]
    assert sorted(ids) == sorted([before["id"], after["id"]]), "what was refused was not kept"
    assert client.get("/audit")["consistent"]


def test_ten_minutes_without_the_database_cost_nobody_a_lock_that_could_not_be_renewed(
    durable_url: str,
    postgres: PostgresServer,
    start_service: StartService,
    open_client: Callable[[ServiceProcess], Client],
) -> None:
    service = start_service(durable_url, sweep_seconds=SWEEP_SECONDS)
    client = open_client(service)
    client.put("/nodes/h1", {"total": {"memory": 10}}, status=201)
    client.post("/nodes/h1/heartbeat")
    renewed = client.post("/applications", LOCK, status=201)
    left_alone = client.post("/applications", LOCK, status=201)

    postgres.stop()
    lengthen_outage(postgres, durable_url)
    postgres.start()
    shifted = until(lambda: shift_event(client), "the deadlines are shifted", seconds=RECOVERY)

    now = datetime.fromisoformat(shifted["time"])
    for lock in (renewed, left_alone):
        found = client.get(f"/applications/{lock['id']}")
        assert found["state"] == "locked"
        assert 0 < seconds_left(found, now) <= LOCK_SECONDS + SWEEP_SECONDS * 2
    assert client.get("/nodes/h1")["state"] == "schedulable", "its heartbeats could not come through"

    client.post(f"/applications/{renewed['id']}/renew", {"lock_seconds": 1})
    until(
        lambda: client.get(f"/applications/{renewed['id']}")["state"] == "reclaimed",
        "the renewed lock is over in its own time",
    )
    assert client.get(f"/applications/{left_alone['id']}")["state"] == "locked"
    assert client.get("/audit")["consistent"]


def shift_event(client: Client) -> Json | None:
    """The event of the shift, when the database can be asked and there is one."""
    try:
        answer = client.send("GET", "/api/v1/events?limit=1000")
    except NoAnswerError:
        return None
    events = answer.document["items"] if answer.status == 200 else []
    return next((event for event in events if event["kind"] == "deadlines.shifted"), None)
