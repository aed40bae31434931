"""What a user installs works in an empty folder, without the checkout."""

from pathlib import Path

import pytest

from tests.system.client import Client
from tests.system.service_process import ServiceProcess

pytestmark = pytest.mark.system


def test_the_wheel_migrates_and_serves_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    service = ServiceProcess("sqlite:///var/rm.db", tmp_path, package=installed)
    assert service.module_file().is_relative_to(installed)
    service.migrate()
    assert (tmp_path / "var" / "rm.db").is_file()
    service.start()
    try:
        with Client(service.port) as client:
            node = client.put("/nodes/h1", {"total": {"memory": "1Gi"}}, status=201)
            assert node["state"] == "schedulable"
            client.post("/applications", {"tags": {"node": "h1"}, "resource": {"memory": 1}}, status=201)
            assert client.get("/audit")["consistent"]
            assert client.send("GET", "/openapi.json").status == 200
            assert client.send("GET", "/docs/").status == 200
        assert service.stop() == 0
    finally:
        service.close()
    assert "Traceback" not in service.log_text()
