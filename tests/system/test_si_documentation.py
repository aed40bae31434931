"""What the pages on the Scheduler Interface print works as printed: commands, and the program for gRPC."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres import free_port
from tests.system.conftest import StartService
from tests.system.service_process import ROOT
from tests.system.test_readme import README, read_commands, run_commands

PAGE = ROOT / "docs" / "scheduler-interface.md"
GRPC = "127.0.0.1:8311"


@pytest.mark.system
@pytest.mark.parametrize(
    ("page", "sections"),
    [
        (PAGE, ["A five-minute walk", "Who uses what"]),
        (README, ["In front of it: the Scheduler Interface"]),
    ],
    ids=["page", "readme"],
)
def test_the_commands_print_what_the_page_says(
    sqlite_url: str, start_service: StartService, page: Path, sections: list[str]
) -> None:
    text = page.read_text(encoding="utf-8")
    commands = [command for section in sections for command in read_commands(text, section)]
    assert commands
    outputs = run_commands(commands, start_service(sqlite_url))
    wrong = [
        f"$ {command.text}\npage:    {chr(10).join(command.printed)}\nprinted: {output}"
        for command, output in zip(commands, outputs, strict=True)
        if not command.prints(output)
    ]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.system
def test_the_program_prints_what_the_page_says(
    sqlite_url: str, start_service: StartService, tmp_path: Path
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(r"^```python\n(.*?)^```\n\n```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    address = f"127.0.0.1:{free_port()}"
    service = start_service(sqlite_url, grpc_bind=address)
    program = tmp_path / "shim.py"
    program.write_text(found[1].replace(GRPC, address), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)],
        env=dict(service.environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, found[2]), done.stderr
