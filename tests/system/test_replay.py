"""A production cluster's trace, replayed in the process and over HTTP: the same grants, clean books."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.system.client import Client
from tests.system.conftest import StartService
from tests.system.service_process import ROOT, ServiceProcess

pytestmark = pytest.mark.system

OPENB = Path(os.environ.get("RM_TEST_OPENB", ROOT.parent / "shared" / "data" / "openb"))
NODES, TASKS = 1523, 8152
SECONDS = 240.0


@pytest.mark.skipif(not OPENB.is_dir(), reason="the openb trace is not here; RM_TEST_OPENB says where it is")
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
