"""What docs/resource-classes.md prints as commands works as printed."""

import json
import re

import pytest

from tests.system.client import Client
from tests.system.conftest import StartService
from tests.system.service_process import ROOT
from tests.system.test_readme import read_commands, run_commands

PAGE = ROOT / "docs" / "resource-classes.md"


@pytest.mark.system
def test_the_commands_print_what_the_page_says(sqlite_url: str, start_service: StartService) -> None:
    service = start_service(sqlite_url)
    text = PAGE.read_text(encoding="utf-8")
    commands = read_commands(text, "In five minutes")
    assert len(commands) >= 6, "a node, two classes, an application, how they stand"
    outputs = run_commands(commands, service)
    wrong = [
        f"$ {command.text}\npage:    {chr(10).join(command.printed)}\nprinted: {output}"
        for command, output in zip(commands, outputs, strict=True)
        if not command.prints(output)
    ]
    assert not wrong, "\n\n".join(wrong)
    granted = json.loads((service.folder / "granted.json").read_text(encoding="utf-8"))
    shown = re.search(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert shown is not None
    parts = [re.escape(part) for part in " ".join(shown[1].split()).split("…")]
    said = json.dumps({name: granted[name] for name in ("node", "devices", "annotations")})
    assert re.fullmatch(".*".join(parts), said), said
    with Client(service.port) as client:
        assert client.get("/audit")["consistent"]
