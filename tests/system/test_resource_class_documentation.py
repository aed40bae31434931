"""What docs/resource-classes.md prints as commands works as printed."""

import json

import pytest

from tests.system.client import Client
from tests.system.conftest import StartService
from tests.system.service_process import ROOT
from tests.system.test_readme import read_commands, run_commands

PAGE = ROOT / "docs" / "resource-classes.md"


@pytest.mark.system
def test_the_commands_print_what_the_page_says(sqlite_url: str, start_service: StartService) -> None:
    service = start_service(sqlite_url)
    commands = read_commands(PAGE.read_text(encoding="utf-8"), "In five minutes")
    assert len(commands) >= 6, "a node, two classes, an application, how they stand"
    outputs = run_commands(commands, service)
    wrong = [
        f"$ {command.text}\npage:    {chr(10).join(command.printed)}\nprinted: {output}"
        for command, output in zip(commands, outputs, strict=True)
        if not command.prints(output)
    ]
    assert not wrong, "\n\n".join(wrong)
    granted = json.loads((service.folder / "granted.json").read_text(encoding="utf-8"))
    assert granted["node"] == "host1"
    assert granted["annotations"]["scheduler.alpha.kubernetes.io/resClass_nvidia.high.mem_gpu0"] == "2"
    assert granted["devices"][0] == {
        "class": "nvidia.high.mem",
        "device": "gpu0",
        "quantity": "2",
        "units": [{"unit": 0, "quantity": "1"}, {"unit": 1, "quantity": "1"}],
    }
    with Client(service.port) as client:
        assert client.get("/audit")["consistent"]
