"""The commands against the service itself: what they ask for is there, and says what they show."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import requests

from rm_service.api_client import ApiClient
from rm_service.app import Service
from rm_service.commands.applications import applications
from rm_service.commands.audit import audit
from rm_service.commands.classes import classes
from rm_service.commands.engines import engines
from rm_service.commands.events import events
from rm_service.commands.explain import explain
from rm_service.commands.labels import labels
from rm_service.commands.limits import limits
from rm_service.commands.nodes import nodes
from rm_service.commands.replay import replay
from rm_service.commands.resource_managers import resource_managers
from rm_service.commands.top import top
from rm_service.commands.usage import usage
from rm_service.ledger.database import reader_engine
from rm_service.ledger.schema import migrate
from rm_service.settings import read_settings
from tests.commands.conftest import Run


@pytest.fixture
def url(sqlite_url: str) -> Iterator[str]:
    """Address of a running service."""
    engine = reader_engine(sqlite_url)
    migrate(engine)
    engine.dispose()
    binds = {"RM_HTTP_BIND": "127.0.0.1:0", "RM_GRPC_BIND": "127.0.0.1:0"}
    service = Service(read_settings(None, {"RM_DATABASE_URL": sqlite_url} | binds))
    service.start()
    host, port = service.server.address
    yield f"http://{host}:{port}"
    service.stop()


@pytest.fixture
def held(url: str) -> str:
    """The id of an application that an engine uses on node n1, under a limit for its user."""
    client = ApiClient(url)
    client.put("/nodes/n1", {"total": {"memory": "4Gi", "vcore": 4000}, "attributes": {"gpu": "2"}})
    client.put("/limits", {"tags": {"user": "alice"}, "total": {"memory": "3Gi"}})
    body = {"tags": {"user": "alice", "node": "n1"}, "resource": {"memory": "2Gi", "vcore": 500}}
    application: str = client.post("/applications", body)["id"]
    client.put("/engines/e1", {"application": application, "node": "n1"})
    client.close()
    return application


@pytest.fixture
def gpus(url: str) -> str:
    """The id of an application that holds two large GPUs and half a small one on host1."""
    kind = {"key": "Kind", "operator": "In", "values": ["nvidia-gpu"]}
    memory = {"key": "memory", "operator": "GtEq", "values": ["30G"]}
    for name, expressions in (("nvidia.high.mem", [kind, memory]), ("nvidia.any", [kind])):
        document = {
            "apiVersion": "resourceclass.rm/v1alpha1",
            "kind": "ResourceClass",
            "metadata": {"name": name},
            "spec": {"resourceSelector": [{"matchExpressions": expressions}]},
        }
        created = f"{url}/apis/resourceclass.rm/v1alpha1/resourceclasses"
        requests.post(created, json=document, timeout=10).raise_for_status()
    client = ApiClient(url)
    large = {"name": "gpu0", "count": 4, "attributes": {"Kind": "nvidia-gpu", "memory": "40G"}}
    small = {"name": "gpu1", "count": 2, "attributes": {"Kind": "nvidia-gpu", "memory": "16G"}}
    client.put("/nodes/host1", {"total": {"memory": "256Gi"}, "devices": [large, small]})
    body = {"tags": {"user": "alice"}, "classes": {"nvidia.high.mem": 2, "nvidia.any": "500m"}}
    application: str = client.post("/applications", {**body, "device_strategy": "best_fit"})["id"]
    client.close()
    return application


def cells(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines()]


def test_both_drivers_grant_the_same(run: Run, trace: Path, url: str) -> None:
    over_http = json.loads(run(replay, str(trace), "--url", url, "--json").stdout)
    embedded = json.loads(run(replay, str(trace), "--embedded", "--json").stdout)
    for same in ("digest", "granted", "refused_by", "peak_used", "total", "operations"):
        assert over_http[same] == embedded[same]
    assert over_http["audit"]["consistent"] is True
    assert over_http["granted"] == 5


def test_a_second_replay_on_the_same_service_grants_the_same(run: Run, trace: Path, url: str) -> None:
    digests = [json.loads(run(replay, str(trace), "--url", url, "--json").stdout)["digest"] for _ in range(2)]
    assert digests[0] == digests[1]


@pytest.mark.parametrize(
    ("command", "arguments", "line"),
    [
        (usage, ("--by", "user"), "alice 1 memory 3Gi 2Gi 1Gi"),
        (top, (), "alice 1 memory 3Gi 2Gi 1Gi"),
        (nodes, (), "n1 schedulable memory 4Gi 2Gi 2Gi"),
        (nodes, ("n1",), "attributes gpu=2"),
        (limits, ("list",), "1 user=alice operator memory 3Gi"),
        (labels, ("--selector", "user"), "user=alice 1 memory 3Gi 2Gi 1Gi"),
        (explain, ("--tag", "user=alice", "--resource", "memory=2Gi"), "user=alice memory 2Gi 1Gi 3Gi 0 2Gi"),
        (explain, ("--resource", "memory=1Gi", "--selector", "gpu>1"), "would be granted on n1"),
    ],
)
@pytest.mark.usefixtures("held")
def test_a_command_shows_what_is_held(
    run: Run, url: str, command: click.Command, arguments: tuple[str, ...], line: str
) -> None:
    result = run(command, *arguments, RM_URL=url, COLUMNS="160")
    assert result.exit_code == 0
    assert line.split() in cells(result.stdout)


@pytest.mark.parametrize(
    ("command", "arguments", "line"),
    [
        (classes, (), "nvidia.any 6 2500m 3500m 0"),
        (classes, ("nvidia.high.mem",), "nvidia.high.mem 4 2 2 0"),
        (classes, ("explain", "nvidia.high.mem"), "1 fails 16G GtEq 30G"),
        (classes, ("explain", "nvidia.high.mem"), "nvidia.any 4 2 0"),
        (classes, ("explain", "nvidia.any"), "nvidia.high.mem 4 2 1500m"),
        (nodes, ("host1",), "gpu0 4 2 1 Kind=nvidia-gpu, memory=40G"),
        (nodes, ("host1",), "gpu1 2 1 1 Kind=nvidia-gpu, memory=16G"),
        (nodes, ("host1", "--assignments"), "nvidia.any gpu1 500m 0"),
        (explain, ("--class", "nvidia.high.mem=2"), "nvidia.high.mem gpu0 2 2 3"),
        (explain, ("--class", "nvidia.any=3", "--tag", "node=host2"), "would not be granted"),
    ],
)
@pytest.mark.usefixtures("gpus")
def test_a_command_shows_devices(
    run: Run, url: str, command: click.Command, arguments: tuple[str, ...], line: str
) -> None:
    result = run(command, *arguments, RM_URL=url, COLUMNS="160")
    assert result.exit_code == 0
    assert " ".join(line.split()) in " ".join(result.stdout.split())


def test_an_application_shows_its_devices(run: Run, url: str, gpus: str) -> None:
    shown = cells(run(applications, gpus, RM_URL=url, COLUMNS="160").stdout)
    assert ["nvidia.high.mem", "gpu0", "2", "0", "1"] in shown


def test_an_application_is_listed_and_shown(run: Run, url: str, held: str) -> None:
    listed = cells(run(applications, "--state", "used", "--selector", "user=alice", RM_URL=url).stdout)
    assert listed[1][:3] == [held, "used", "memory=2Gi"]
    shown = cells(run(applications, held, RM_URL=url).stdout)
    assert ["engine", "e1"] in shown
    assert [line[-1] for line in shown[-2:]] == ["locked", "used"]


def test_an_engine_is_listed_with_its_application(run: Run, url: str, held: str) -> None:
    listed = cells(run(engines, RM_URL=url, COLUMNS="160").stdout)
    assert listed[1][:4] == ["e1", "n1", "memory=2Gi", "vcore=500m"]
    assert listed[1][-1] == held


def test_who_has_registered_is_listed_and_what_was_amiss_is_in_the_history(run: Run, url: str) -> None:
    said = {"rmID": "cluster-1", "version": "1.5.2", "policyGroup": "elsewhere"}
    requests.post(f"{url}/si/v1/RegisterResourceManager", json=said, timeout=10).raise_for_status()
    listed = cells(run(resource_managers, RM_URL=url, COLUMNS="160").stdout)
    assert listed[1][:5] == ["cluster-1", "running", "-", "1.5.2", "elsewhere"]
    assert listed[1][-1] == "1"
    history = run(events, RM_URL=url).stdout
    warned = next(line for line in history.splitlines() if "client.registered" in line)
    assert warned.endswith('warning: there is no policy group "elsewhere": default is used')


@pytest.mark.usefixtures("held")
def test_the_audit_of_what_is_held_is_consistent(run: Run, url: str) -> None:
    result = run(audit, RM_URL=url)
    assert result.exit_code == 0
    assert "and 1 applications checked" in result.stdout


def test_the_history_names_what_was_locked(run: Run, url: str, held: str) -> None:
    lines = cells(run(events, RM_URL=url).stdout)
    locked = next(line for line in lines if line[3] == "application.locked")
    assert held in locked
    assert "memory=2Gi" in locked


def test_the_live_stream_brings_the_past_and_then_what_happens(url: str, held: str) -> None:
    client = ApiClient(url)
    stream = client.events(0)
    before = [
        event["kind"]
        for event in itertools.takewhile(lambda event: event["kind"] != "application.used", stream)
    ]
    assert before.count("application.locked") == 1
    other = ApiClient(url)
    other.post(f"/applications/{held}/release", {})
    assert next(event["subject"] for event in stream if event["kind"] == "application.released") == held
    other.close()
    client.close()
