"""The README's first five minutes work as printed: its commands are run, its answers compared.

In a block marked `console`, a line that begins with `$ ` is a command, the lines below it are what it prints.
There, `…` stands for anything within a line, and alone on a line for any lines.
"""

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.system.conftest import StartService
from tests.system.service_process import ROOT, ServiceProcess

README = ROOT / "README.md"
SECTION = "The first five minutes"
ADDRESS = re.compile(r"\b(localhost|127\.0\.0\.1):8310\b")
ANY = "…"
END = "--- end of command ---"


@dataclass
class Command:
    """One command of the README with the lines that it is said to print."""

    text: str
    printed: list[str] = field(default_factory=list)

    def expected(self) -> re.Pattern[str]:
        lines = [
            r"(?:.*\n)*"
            if line.strip() == ANY
            else ".*".join(map(re.escape, line.rstrip().split(ANY))) + r"\n"
            for line in self.printed
        ]
        return re.compile("".join(lines))

    def prints(self, output: str) -> bool:
        """Whether the output is what the README says; blanks at the ends of lines do not count."""
        lines = [line.rstrip() for line in output.strip("\n").splitlines()]
        return self.expected().fullmatch("".join(f"{line}\n" for line in lines)) is not None


def read_commands(text: str, section: str) -> list[Command]:
    """The commands in the console blocks of one section."""
    _, found, rest = text.partition(f"\n## {section}\n")
    assert found, f"there is no section {section!r}"
    body = re.split(r"\n## ", rest)[0]
    commands: list[Command] = []
    for block in re.findall(r"^```console\n(.*?)^```$", body, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                commands.append(Command(line[2:]))
            else:
                commands[-1].printed.append(line)
    return commands


def run_commands(commands: list[Command], service: ServiceProcess) -> list[str]:
    """What each prints, one after the other in one shell; `rm-service` and the address are the service's."""
    programs = service.folder / "bin"
    programs.mkdir()
    program = programs / "rm-service"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rm_service "$@"\n')
    program.chmod(0o755)
    here = f"127.0.0.1:{service.port}"
    script = "\n".join(f"{ADDRESS.sub(here, command.text)}\necho; echo '{END}'" for command in commands)
    environment = dict(service.environment)
    environment |= {"PATH": f"{programs}:{environment['PATH']}", "RM_URL": service.url}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=service.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=90,
        check=False,
    )
    outputs = done.stdout.split(f"\n{END}\n")
    assert len(outputs) == len(commands) + 1, done.stdout
    return outputs[:-1]


@pytest.mark.system
def test_the_first_five_minutes_print_what_the_readme_says(
    sqlite_url: str, start_service: StartService, tmp_path: Path
) -> None:
    assert README.is_file(), "README.md is not there"
    commands = read_commands(README.read_text(encoding="utf-8"), SECTION)
    assert len(commands) >= 8, "register, limit, apply until refused, use, release, usage, audit"
    outputs = run_commands(commands, start_service(sqlite_url))
    wrong = [
        f"$ {command.text}\nREADME:  {chr(10).join(command.printed)}\nprinted: {output}"
        for command, output in zip(commands, outputs, strict=True)
        if not command.prints(output)
    ]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.system
@pytest.mark.parametrize(
    ("printed", "output", "same"),
    [
        (['{"id":"…","state":"locked",…}'], '{"id":"1","state":"locked","x":{}}', True),
        (['{"id":"…","state":"locked",…}'], '{"id":"1","state":"used","x":{}}', False),
        (["user  apps", "alice    1", "…"], "user  apps   \nalice    1\nbob\ncarol\n", True),
        (["user  apps", "alice    1"], "user  apps\nalice    1\nbob\n", False),
        ([], "", True),
        ([], "error\n", False),
    ],
)
def test_a_difference_from_the_readme_is_noticed(printed: list[str], output: str, *, same: bool) -> None:
    assert Command("run", printed).prints(output) is same
