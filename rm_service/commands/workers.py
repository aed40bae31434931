"""Further whole processes of the service beside this one, on the same address.

Each is started anew (never forked), shares the port by SO_REUSEPORT, and ends when its parent does: its
standard input is a pipe that the parent holds open.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import structlog

RESTART_SECONDS = 1.0
STOP_SECONDS = 30.0

_log = structlog.get_logger(__name__)


class Workers:
    """Keeps `count` further processes running from `start` to `stop`; one that dies is started again."""

    def __init__(self, count: int, config: Path | None, binds: Mapping[str, str]) -> None:
        self._command = [sys.executable, "-m", "rm_service", "serve", "--worker"]
        if config is not None:
            self._command += ["--config", str(config)]
        self._environment = {**os.environ, **binds}
        self._stopping = threading.Event()
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._threads = [
            threading.Thread(target=self._keep, args=(place,), daemon=True) for place in range(count)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Tell them to end, and wait until they have answered what they had accepted."""
        self._stopping.set()
        for process in list(self._processes.values()):
            process.terminate()
        for thread in self._threads:
            thread.join(STOP_SECONDS)

    def _keep(self, place: int) -> None:
        while not self._stopping.is_set():
            process = subprocess.Popen(self._command, env=self._environment, stdin=subprocess.PIPE)  # noqa: S603
            self._processes[place] = process
            if self._stopping.is_set():
                process.terminate()
            status = process.wait()
            if not self._stopping.is_set():
                _log.error("worker_ended", status=status)
                self._stopping.wait(RESTART_SECONDS)


def watch_parent(ended: threading.Event) -> None:
    """Set `ended` when the process that started this one is gone."""

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        ended.set()

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
