"""SlurmProvider is run through the test kit, with commands of our own in place of Slurm's."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from slurm_provider import SlurmProvider

from external_providers.base import MalformedError, UnreachableError
from external_providers.testkit import Config, ProviderContract, Subject, Trouble

CONFIG: Config = {"cluster": "lab", "token": "a-secret-token"}
ANSWERS = {"sinfo": "batch 12/20/4/36", "squeue": "101 batch 12 alice rm-7"}


class TestSlurmProvider(ProviderContract):
    @pytest.fixture
    def subject(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Subject:
        def put(**lines: str) -> None:
            for command, line in lines.items():
                (tmp_path / command).write_text(f"#!/bin/sh\n{line}\n")
                (tmp_path / command).chmod(0o755)

        def when(line: str) -> Callable[[], AbstractContextManager[Config]]:
            @contextmanager
            def way() -> Iterator[Config]:
                put(sinfo=line, squeue=line)
                yield CONFIG

            return way

        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        put(**{command: f"echo {answer}" for command, answer in ANSWERS.items()})
        return Subject(
            SlurmProvider(),
            CONFIG,
            troubles={
                "fails": Trouble(when("exit 1"), UnreachableError),
                "says something else": Trouble(when("echo hello world"), MalformedError),
            },
            hangs={"hangs": when("exec sleep 1000")},
        )
