"""The service as a real process: started, told to stop, or killed."""

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.postgres import free_port

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60.0
STOP_SECONDS = 40.0
LOG_TAIL = 6000  # characters

# Waits until our end of its standard input closes, however this process ends, and then ends the service.
GUARD = 'cat >/dev/null; kill -KILL "$0"'


class ServiceError(RuntimeError):
    """The service did not start or did not end; the message holds the end of its log."""


def command_environment(**settings: object) -> dict[str, str]:
    """The environment of a command of ours: `http_bind="..."` becomes RM_HTTP_BIND; no other RM_ variable,
    and no proxy: all traffic stays on this machine.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RM_")}
    ours = {f"RM_{name.upper()}": str(value) for name, value in settings.items()}
    return inherited | {"NO_PROXY": "*", "no_proxy": "*"} | ours


class ServiceProcess:
    """`rm-service serve` on a port of 127.0.0.1 that stays the same when it is started again.

    It runs in `folder`, logs into a file there, and imports the package from `package` (a checkout, or what
    a wheel installed). `settings` are its RM_ variables: `lock_seconds=1`.
    """

    def __init__(
        self,
        database_url: str,
        folder: Path,
        *,
        package: Path = ROOT,
        name: str = "service",
        **settings: object,
    ) -> None:
        self.port = free_port()
        self.folder = folder
        self.log = folder / f"{name}.log"
        self._settings = {
            "database_url": database_url,
            "http_bind": f"127.0.0.1:{self.port}",
            "grpc_bind": "off",
            **settings,
        }
        self._package = package
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> Mapping[str, str]:
        """What any command needs to work on this service's database with this service's package."""
        # -P in PYTHONSAFEPATH: what is in the current folder is not imported.
        path = {"PYTHONPATH": str(self._package), "PYTHONSAFEPATH": "1"}
        return command_environment(**self._settings) | path

    def run(self, *arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        """`rm-service ARGUMENTS` on the service's database, to its end."""
        return subprocess.run(
            [sys.executable, "-m", "rm_service", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def module_file(self) -> Path:
        """Where its processes import the package from."""
        code = "import rm_service; print(rm_service.__file__)"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return Path(done.stdout.strip())

    def migrate(self) -> None:
        """Bring the database to the newest schema. Raises ServiceError."""
        done = self.run("migrate")
        if done.returncode != 0:
            raise ServiceError(f"migrate ended with {done.returncode}:\n{done.stdout}{done.stderr}")

    def start(self) -> None:
        """Start it, and return when /readyz says that it is ready. Raises ServiceError."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rm_service", "serve"],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, str(self._process.pid)], stdin=subprocess.PIPE, start_new_session=True
        )
        self._await_ready()

    def stop(self) -> int:
        """SIGTERM; its exit code when it has ended. Raises ServiceError if it does not end."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: it ends in the middle of whatever it is doing."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """End it if it is still there."""
        if self._process is not None:
            self.kill()

    def log_text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def log_tail(self) -> str:
        return f"--- {self.log.name}\n{self.log_text()[-LOG_TAIL:]}"

    def is_ready(self) -> bool:
        """Whether /readyz answers 200 just now."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        with contextlib.closing(connection):
            try:
                connection.request("GET", "/readyz")
                return connection.getresponse().status == 200
            except (OSError, http.client.HTTPException):
                return False

    def _await_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                raise ServiceError(f"the service ended while it started\n{self.log_tail()}")
            if self.is_ready():
                return
            time.sleep(0.05)
        raise ServiceError(f"the service is not ready after {START_SECONDS:.0f} s\n{self.log_tail()}")

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            raise ServiceError("the service is not running")
        self._dismiss_guard()  # before the process is waited for: its number may then be another's
        process.send_signal(number)
        try:
            return process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.wait()
            raise ServiceError(
                f"the service did not end in {STOP_SECONDS:.0f} s\n{self.log_tail()}"
            ) from error

    def _dismiss_guard(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.kill()
            guard.wait()
            if guard.stdin is not None:
                guard.stdin.close()
