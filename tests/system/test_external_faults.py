"""Whatever goes wrong between the service and a real YARN: operators see it, nobody else is harmed."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rm_service.services.external.refresher import FETCH_SECONDS, TICK_SECONDS
from tests.system.client import API, Client, Json, until
from tests.system.service_process import ServiceProcess
from tests.yarn import proxy
from tests.yarn.cluster import YarnCluster
from tests.yarn.fixtures import yarn_cluster
from tests.yarn.proxy import Mood, YarnProxy

__all__ = ["yarn_cluster"]

# The first test of all may have to fetch Hadoop.
pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(400),
    pytest.mark.parametrize("yarn_cluster", ["capacity"], indirect=True),
]

REFRESH, STALE = 1, 2
SEEN = REFRESH + FETCH_SECONDS
"""Whatever goes wrong is seen when the next look, at most a refresh away, has had its time."""
LATE = 2 * REFRESH + TICK_SECONDS
"""A look that hangs is seen when the one behind it is due; the rest is what a busy machine may take."""
PATIENCE = 10
SLOW = 1.0
"""So long an answer takes that is late: the three of a look together are older than may be."""
APPLICATIONS = "/ws/v1/cluster/apps"
"""What YARN is asked first in each look."""
QUEUE = "root.etl.daily"
ROOM = 16
"""So many GiB the queue has."""
LAB = {"places": [{"name": "gpu", "total": {"gpu.count": 4}}]}

MOODS: Mapping[str, tuple[Mood, str, str]] = {
    "cuts connections": (proxy.cuts, "unreachable", "connection"),
    "half answers": (proxy.halves, "unreachable", "the answer was cut off"),
    "status 500": (proxy.fails, "unreachable", "answers HTTP 500"),
    "bytes": (proxy.says(proxy.NO_TEXT), "malformed", "the answer is not JSON"),
    "a page": (proxy.says(proxy.PAGE, "text/html"), "malformed", "not JSON: it cannot be read from line 1"),
    "50 MB": (proxy.floods(50), "malformed", "the answer is longer than 32 MiB"),
}
"""What the proxy does, and the kind and a part of the reason that operators are told."""


class World:
    """A service that follows a YARN through a proxy, and a file that has nothing to do with it."""

    def __init__(self, process: ServiceProcess, client: Client, yarn: YarnProxy, lab: Path) -> None:
        self.process = process
        self.client = client
        self.yarn = yarn
        self._log_begins = len(process.log_text())
        lab.write_text(json.dumps(LAB))
        client.put("/providers/static/lab", self._record({"path": str(lab)}), status=201)

    def follow(self, name: str = "c1", policy: str = "deny") -> None:
        self.store(name, policy, status=201)
        until(lambda: self.standing(name)["state"] == "ok", f"{name} has been looked at")

    def store(self, name: str, policy: str, *, status: int = 200) -> None:
        record = self._record({"addresses": [self.yarn.web]}) | {"stale_policy": policy}
        self.client.put(f"/providers/yarn/{name}", record, status=status)

    def _record(self, config: Json) -> Json:
        return {"config": config, "refresh_seconds": REFRESH, "stale_seconds": STALE}

    def forget(self) -> None:
        for one in self.client.get("/providers")["items"]:
            self.client.call("DELETE", f"/providers/{one['type']}/{one['name']}", status=204)

    def standing(self, name: str = "c1", type_: str = "yarn") -> Json:
        return self.client.get(f"/providers/{type_}/{name}")["standing"] or {"state": "pending"}

    def snapshot(self) -> Json:
        return self.client.get("/providers/yarn/c1/snapshot")

    def ask(self, gib: int, cluster: str = "c1") -> str:
        """Ask for a part of the queue: why it is not granted, empty if it is."""
        tags = {"user": "alice", "yarnCluster": cluster, "yarnQueue": QUEUE}
        resource = {"yarn.memory": f"{gib}Gi", "yarn.vcore": 1000}
        answer = self.client.send("POST", f"{API}/applications", {"tags": tags, "resource": resource})
        if answer.status == 201:
            return ""
        assert answer.status == 409, answer.body
        return str(answer.document["shortfalls"][0]["reason"])

    def check_others(self) -> None:
        """The ledger's own labels are granted, and the file is seen as ever."""
        own = {"tags": {"user": "bob", "node": "ecm"}, "resource": {"memory": "1Mi"}}
        self.client.post("/applications", own, status=201)
        lab = self.standing("lab", "static")
        assert (lab["state"], lab["last_error"]) == ("ok", None)

    def listed(self) -> str:
        """The line of c1 in the list that operators see."""
        done = self.process.run("providers", f"--url={self.process.url}")
        assert done.returncode == 0, done.stderr
        [line] = [line for line in done.stdout.splitlines() if "yarn/c1" in line]
        return line

    def logged(self, event: str) -> list[str]:
        """The lines of the log, since this world began, that tell of this event of c1."""
        lines = self.process.log_text()[self._log_begins :].splitlines()
        return [line for line in lines if event in line and "yarn/c1" in line]

    def is_seen_to_be_late(self) -> None:
        """A look takes longer than the time between two: API, list, log and metrics say so."""
        until(lambda: self.standing()["state"] == "late", "it is late", seconds=LATE + PATIENCE)
        assert "late" in self.listed()
        [told] = until(lambda: self.logged("provider_late"), "it is told")
        assert "warning" in told
        metrics = self.client.send("GET", "/metrics").body.decode()
        assert 'rm_provider_late{name="c1",type="yarn"} 1.0' in metrics

    def recovers(self) -> None:
        """Nothing is in the way any more: all is as it was before."""
        self.yarn.be(proxy.passes)
        until(lambda: self.standing()["state"] == "ok", "YARN is looked at again")
        standing = self.standing()
        assert (standing["breaker"], standing["failures"]) == ("closed", 0)
        until(lambda: not self.standing()["stale"], "what is known is new")
        assert not self.ask(1)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """One service on SQLite for all of these tests."""
    folder = tmp_path_factory.mktemp("external-faults")
    process = ServiceProcess(f"sqlite:///{folder / 'rm.db'}", folder)
    process.migrate()
    process.start()
    with Client(process.port) as client:
        client.put("/nodes/ecm", {"total": {"memory": "64Gi"}}, status=201)
    yield process
    process.close()


@pytest.fixture
def world(
    process: ServiceProcess, yarn_cluster: YarnCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    monkeypatch.setenv("COLUMNS", "400")  # so that a line of a table is a line
    with YarnProxy(yarn_cluster.web) as yarn, Client(process.port) as client:
        world = World(process, client, yarn, tmp_path / "lab.json")
        yield world
        world.forget()
        _release_all(client)
    print(process.log_tail())  # noqa: T201 - pytest shows it with a failure


def _release_all(client: Client) -> None:
    for one in list(client.pages("/applications?state=locked")):
        client.post(f"/applications/{one['id']}/release")


@pytest.mark.parametrize("what", MOODS)
def test_an_operator_sees_what_is_wrong_and_nobody_else_is_harmed(what: str, world: World) -> None:
    mood, kind, reason = MOODS[what]
    world.follow()
    assert not world.ask(1)
    world.yarn.be(mood)
    until(lambda: world.standing()["state"] == "failing", "that something is wrong is seen", seconds=SEEN)
    seen = world.snapshot()
    _check_error(world.standing()["last_error"], kind, reason)
    line = world.listed()
    assert "failing" in line
    assert reason in line
    assert [line for line in world.logged("provider_failed") if kind in line and reason in line]
    until(lambda: world.standing()["stale"], "what is known has become old")
    world.check_others()
    assert world.ask(1) == "external_stale"
    later = world.snapshot()
    assert (later["items"], later["fetched_at"]) == (seen["items"], seen["fetched_at"])
    assert later["age_seconds"] > seen["age_seconds"]
    world.recovers()
    assert len(world.logged("provider_recovered")) == 1


def _check_error(error: Mapping[str, Any], kind: str, reason: str) -> None:
    assert error["kind"] == kind, error
    assert reason in error["reason"], error
    assert re.fullmatch(r"[ -~]+", error["reason"]), error


def test_a_yarn_that_is_slow_is_late_and_what_is_known_grows_old(world: World) -> None:
    world.follow()
    world.yarn.be(proxy.delays(SLOW))
    world.is_seen_to_be_late()
    until(lambda: world.standing()["stale"], "what is known has become old")
    world.check_others()
    assert world.ask(1) == "external_stale"
    until(lambda: world.standing()["fetch_seconds"] > STALE, "an answer has come, late")
    standing = world.standing()
    assert (standing["state"], standing["last_error"], standing["breaker"]) == ("late", None, "closed")
    world.recovers()
    until(lambda: world.logged("provider_in_time"), "it is told that it is over")


def test_an_answer_that_drips_is_given_up(world: World) -> None:
    world.follow()
    world.yarn.be(proxy.drips)
    world.is_seen_to_be_late()
    until(lambda: world.standing()["stale"], "what is known has become old")
    world.check_others()
    assert world.ask(1) == "external_stale"
    until(lambda: world.standing()["state"] == "failing", "the look is given up", seconds=SEEN + PATIENCE)
    # Whoever sees it first, the plug-in or the refresher.
    error = world.standing()["last_error"]
    assert error["kind"] in {"unreachable", "timeout"}, error
    assert "no answer" in error["reason"] or "did not answer in time" in error["reason"], error
    world.check_others()
    world.recovers()


def test_a_yarn_that_is_away_for_long_is_left_alone_and_found_again(world: World) -> None:
    world.follow()
    world.yarn.be(proxy.cuts)
    until(lambda: world.standing()["breaker"] == "open", "it is left alone")
    asked = world.yarn.asked[APPLICATIONS]
    world.yarn.be(proxy.passes)

    def is_tried_again() -> bool:
        asked_by_now = world.yarn.asked[APPLICATIONS]
        is_open = world.standing()["breaker"] == "open"
        assert not is_open or asked_by_now == asked
        return not is_open

    assert world.standing()["failures"] >= 3
    until(is_tried_again, "its time is over")
    world.recovers()


def test_what_counts_when_nobody_can_look_is_what_the_policy_says(world: World) -> None:
    policies = {"c1": "deny", "c2": "last_known", "c3": "ignore"}
    for name, policy in policies.items():
        world.follow(name, policy)
    assert {name: world.ask(ROOM + 1, name) for name in policies} == dict.fromkeys(policies, "short")
    world.yarn.be(proxy.cuts)
    until(lambda: all(world.standing(name)["stale"] for name in policies), "all is old")
    assert world.ask(1, "c1") == "external_stale"
    assert not world.ask(ROOM, "c2")
    assert world.ask(1, "c2") == "short"
    assert not world.ask(ROOM + 1, "c3")
    world.check_others()
    world.yarn.be(proxy.passes)
    until(lambda: all(world.standing(name)["state"] == "ok" for name in policies), "YARN is back")
    until(lambda: not world.ask(1, "c1"), "it is granted again")
    until(lambda: {world.ask(1, name) for name in ("c2", "c3")} == {"short"}, "the ledger was told of it")


def test_a_policy_may_be_changed_while_nobody_can_look(world: World) -> None:
    world.follow()
    assert not world.ask(1)
    world.yarn.be(proxy.cuts)
    until(lambda: world.standing()["stale"], "what is known has become old")
    assert world.ask(1) == "external_stale"
    world.store("c1", "last_known")
    until(lambda: not world.ask(1), "what was seen last counts")
    assert world.ask(ROOM) == "short"
    world.store("c1", "ignore")
    until(lambda: not world.ask(ROOM), "nothing counts")
    world.store("c1", "deny")
    assert world.ask(1) == "external_stale"


def test_who_waits_is_let_in_when_the_policy_is_changed(world: World) -> None:
    world.follow()
    assert not world.ask(1)
    world.yarn.be(proxy.cuts)
    until(lambda: world.standing()["stale"], "what is known has become old")
    tags = {"user": "carol", "yarnCluster": "c1", "yarnQueue": QUEUE}
    body = {"tags": tags, "resource": {"yarn.memory": "1Gi", "yarn.vcore": 1000}, "wait_seconds": 300}
    waiting = world.client.post("/applications", body, status=202)
    world.store("c1", "last_known")
    address = f"/applications/{waiting['id']}"
    until(lambda: world.client.get(address)["state"] == "locked", "what was seen last counts")
