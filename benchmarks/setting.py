"""What benchmarks share: how long to measure, and a durable PostgreSQL started for this run."""

import contextlib
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Self

import psycopg

from tests.postgres import PostgresServer, libpq_url

SETTINGS = {
    # A checkpoint that falls into one side of a ratio and not into the other would decide it.
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1h",
    "shared_buffers": "512MB",
}


@dataclass(frozen=True)
class Setting:
    """Seconds of one stretch of load, rounds of a ratio, and where databases live.

    Use it as a context manager: the server and the folder go away at its end.
    """

    seconds: float
    rounds: int
    parent: Path | None = None
    """The folder on whose disk everything is written; None is the system's folder for temporary files."""
    _stack: ExitStack = field(default_factory=ExitStack)

    @cached_property
    def folder(self) -> Path:
        """A folder for this run's files."""
        return Path(
            self._stack.enter_context(tempfile.TemporaryDirectory(prefix="rm-bench-", dir=self.parent))
        )

    @cached_property
    def server(self) -> PostgresServer:
        """A private PostgreSQL with fsync and synchronous_commit on."""
        server = PostgresServer(durable=True, settings=SETTINGS, folder=self.parent)
        return self._stack.enter_context(server)

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """The address of a fresh PostgreSQL database, dropped at the end."""
        with self.server.database() as url:
            yield url

    def machine(self) -> dict[str, str]:
        """What the figures depend on."""
        with psycopg.connect(libpq_url(self.server.url())) as connection:
            version = str(connection.info.parameter_status("server_version"))
        return {
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "processor": f"{os.cpu_count()} x {_processor()}",
            "system": f"{platform.system()} {platform.release()}",
            "python": platform.python_version(),
            "postgresql": version,
            "one fsync": f"{1e6 * fsync_seconds(self.folder):.0f} us",
            "a stretch of load": f"{self.seconds:g} s, {self.rounds} rounds",
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def fsync_seconds(folder: Path, times: int = 200) -> float:
    """The time in which the disk under `folder` makes one appended 8 KiB page durable."""
    with (folder / "fsync").open("wb", buffering=0) as file:
        begun = time.perf_counter()
        for _ in range(times):
            file.write(bytes(8192))
            os.fdatasync(file.fileno())
        return (time.perf_counter() - begun) / times


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
