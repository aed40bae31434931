"""A production cluster's trace, replayed in the process, over HTTP and over gRPC: clean books every time."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.si.served import StartSi
from tests.system.client import Client
from tests.system.conftest import StartService
from tests.system.service_process import ROOT, ServiceProcess

pytestmark = pytest.mark.system

OPENB = Path(os.environ.get("RM_TEST_OPENB", ROOT.parent / "shared" / "data" / "openb"))
NODES, TASKS = 1523, 8152
SECONDS = 240.0


needs_openb = pytest.mark.skipif(
    not OPENB.is_dir(), reason="the openb trace is not here; RM_TEST_OPENB says where it is"
)


@needs_openb
@pytest.mark.timeout(2 * SECONDS + 60)
def test_the_openb_trace_gives_the_same_grants_embedded_and_over_http_and_the_books_balance(
    sqlite_url: str, start_service: StartService, open_client: Callable[[ServiceProcess], Client]
) -> None:
    service = start_service(sqlite_url)
    reports = []
    for way in ("--embedded", f"--url={service.url}"):
        done = service.run("replay", str(OPENB), way, "--json", seconds=SECONDS)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        reports.append(json.loads(done.stdout))
    embedded, over_http = reports
    for report in reports:
        assert report["nodes"] == NODES
        assert report["granted"] + report["refused"] == TASKS
        assert report["granted"] > report["refused"]
        assert report["audit"]["consistent"]
        assert all(report["peak_used"][name] <= total for name, total in report["total"].items())
    for name in ("digest", "granted", "refused_by", "peak_used"):
        assert embedded[name] == over_http[name], name
    held = [row for row in open_client(service).get("/usage?by=node")["rows"] if row["applications"]]
    assert held == [], "what it held at the end was given back"


@needs_openb
@pytest.mark.timeout(2 * SECONDS + 60)
def test_the_openb_trace_goes_through_the_scheduler_interface_and_leaves_nothing_behind(
    database_url: str, start_si: StartSi
) -> None:
    served = start_si(database_url)
    ways = (["--url", served.process.url, "--grpc", served.address], ["--embedded"])
    reports = []
    for way in ways:
        done = served.process.run("replay", str(OPENB), "--via", "si", *way, "--json", seconds=SECONDS)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        reports.append(json.loads(done.stdout))
    through_service, embedded = reports
    assert through_service["nodes"] == NODES
    assert through_service["granted"] == TASKS, "at no time is the cluster nearly full"
    assert through_service["operations"] == 2 * TASKS
    assert through_service["audit"]["consistent"]
    for name in ("digest", "granted", "refused_by", "peak_used"):
        assert through_service[name] == embedded[name], name
    assert served.nodes("replay") == {}
    assert served.members("replay", "used") == []
    assert served.members("replay", "waiting") == []
    assert served.client.get("/audit")["consistent"]
    served.no_traceback()
