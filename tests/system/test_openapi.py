"""The service does what /openapi.json says, whatever is sent to it: schemathesis makes up the requests."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.system.client import Client
from tests.system.conftest import StartService
from tests.system.service_process import ServiceProcess, command_environment

pytestmark = pytest.mark.system

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
EXAMPLES = 15  # for each operation, beside those that its schema's edges give
SECONDS = 100
APPLY = {"tags": {"user": "alice", "node": "h1"}, "resource": {"memory": 1}}


def fuzz(service: ServiceProcess, folder: Path, known: dict[str, object]) -> None:
    """Send requests to every operation; names in their paths are those of `known`, else made up."""
    config = folder / "schemathesis.toml"
    config.write_text(
        "".join(["[parameters]\n", *(f'"path.{name}" = {json.dumps(is_)}\n' for name, is_ in known.items())])
    )
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "--no-color", "run"]
    options = [f"--checks={','.join(CHECKS)}", "--phases=examples,coverage,fuzzing"]
    bounds = [f"--max-examples={EXAMPLES}", "--request-timeout=20", "--generation-deterministic"]
    done = subprocess.run(
        [*command, *options, *bounds, "--continue-on-failure", f"{service.url}/openapi.json"],
        cwd=folder,
        env=command_environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    assert "Tested: " in done.stdout


@pytest.mark.parametrize("known", [False, True], ids=["made-up names", "names that there are"])
def test_answers_to_any_request_are_as_described_and_the_books_still_balance(
    sqlite_url: str,
    tmp_path: Path,
    start_service: StartService,
    open_client: Callable[[ServiceProcess], Client],
    *,
    known: bool,
) -> None:
    service = start_service(sqlite_url)
    client = open_client(service)
    client.put("/nodes/h1", {"total": {"memory": 1000}}, status=201)
    application = client.post("/applications", APPLY, status=201)["id"]
    places = tmp_path / "places.yaml"
    places.write_text("places: [{name: hall, total: {gpu: 8}}]\n", encoding="utf-8")
    client.put("/providers/static/lab", {"config": {"path": str(places)}}, status=201)
    names = {"instance": "h1", "id": application, "type": "static", "name": "lab"} if known else {}
    fuzz(service, tmp_path, names)
    audit = client.get("/audit")
    assert audit["consistent"], audit
    assert "Traceback" not in service.log_text()
