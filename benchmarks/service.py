"""A running service: `rm-service serve` as a real process, or the same one with nothing behind its door."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from benchmarks.http_load import Address

START_SECONDS = 30.0
STOP_SECONDS = 20.0

LISTENING = re.compile(r"http://([\d.]+):(\d+)")

REAL = "rm_service"
NULL = "benchmarks.null_service"
"""Answers a validated application at once, without the ledger."""


class NotServingError(RuntimeError):
    """The service did not say where it listens; the message holds the end of its log."""


@contextlib.contextmanager
def serving(url: str, folder: Path, module: str = REAL, grpc_bind: str = "off") -> Iterator[Address]:
    """The HTTP address of a service on that database, as long as the body runs."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RM_")} | {
        "RM_DATABASE_URL": url,
        "RM_HTTP_BIND": "127.0.0.1:0",
        "RM_GRPC_BIND": grpc_bind,
        "RM_LOG_LEVEL": "warning",
        "PYTHONUNBUFFERED": "1",
    }
    log = folder / f"{module}.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", module, "serve"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        yield _address(process, log)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _address(process: subprocess.Popen[str], log: Path) -> Address:
    """Where it listens, as it prints it."""
    assert process.stdout is not None
    patience = threading.Timer(START_SECONDS, process.kill)
    patience.start()
    try:
        for line in process.stdout:
            found = LISTENING.search(line)
            if found:
                return found[1], int(found[2])
    finally:
        patience.cancel()
    tail = log.read_text(errors="replace")[-2000:]
    raise NotServingError(f"it ended or was silent for {START_SECONDS:.0f} s ({log}):\n{tail}")
