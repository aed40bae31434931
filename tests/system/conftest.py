"""Real processes: the service on SQLite and on PostgreSQL, both as durable as in production."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import PostgresServer, free_port
from tests.si.served import Served, StartSi
from tests.system.client import Client
from tests.system.service_process import ServiceProcess
from tests.test_packaging import installed, wheel

__all__ = ["installed", "wheel"]

_numbers = itertools.count(1)

StartService = Callable[..., ServiceProcess]

# A commit takes 3 ms (at the least): crashes find one under way.
SLOW_COMMITS = {"commit_delay": "3000", "commit_siblings": "0"}


@pytest.fixture(scope="session")
def durable_server() -> Iterator[PostgresServer]:
    """A PostgreSQL of our own that writes as safely as in production and may be stopped."""
    with PostgresServer(durable=True, settings=SLOW_COMMITS) as server:
        yield server


@pytest.fixture
def postgres(durable_server: PostgresServer) -> PostgresServer:
    """The same, running, whatever the test before did to it."""
    return durable_server.start()


@pytest.fixture
def durable_url(postgres: PostgresServer) -> Iterator[str]:
    """An empty PostgreSQL database of the test's own."""
    url = postgres.create_database()
    yield url
    postgres.start()
    postgres.drop_database(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, sqlite_url: str) -> str:
    """An empty database of the test's own."""
    return sqlite_url if request.param == "sqlite" else str(request.getfixturevalue("durable_url"))


@pytest.fixture
def start_service(tmp_path: Path) -> Iterator[StartService]:
    """`start_service(database_url, **settings)`: a running service on that database, ended after the test.

    When a test fails, the end of each service's log is shown with it.
    """
    services: list[ServiceProcess] = []

    def start(database_url: str, **settings: Any) -> ServiceProcess:
        service = ServiceProcess(database_url, tmp_path, name=f"service-{len(services)}", **settings)
        services.append(service)
        service.migrate()
        service.start()
        return service

    yield start
    for service in services:
        service.close()
        print(service.log_tail())  # noqa: T201 - pytest shows it with a failure


@pytest.fixture
def open_client() -> Iterator[Callable[..., Client]]:
    """`open_client(service)`: a client of that service, closed after the test."""
    clients: list[Client] = []

    def connect(service: ServiceProcess, *, token: str | None = None) -> Client:
        clients.append(Client(service.port, token=token))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


@pytest.fixture
def start_si(start_service: StartService) -> Iterator[StartSi]:
    """`start_si(database_url, **settings)`: a running service that speaks the Scheduler Interface as well."""
    running: list[Served] = []

    def start(database_url: str, **settings: Any) -> Served:
        address = f"127.0.0.1:{free_port()}"
        process = start_service(database_url, grpc_bind=address, **settings)
        running.append(Served(process, address, Client(process.port)))
        return running[-1]

    yield start
    for served in running:
        served.close()


@pytest.fixture(scope="module")
def si_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServiceProcess, str]]:
    """One service on SQLite for a module's tests, and where it speaks the Scheduler Interface."""
    folder = tmp_path_factory.mktemp("si")
    address = f"127.0.0.1:{free_port()}"
    process = ServiceProcess(f"sqlite:///{folder / 'rm.db'}", folder, grpc_bind=address)
    process.migrate()
    process.start()
    yield process, address
    process.close()


@pytest.fixture
def si(si_process: tuple[ServiceProcess, str]) -> Iterator[Served]:
    """The module's service for one test, with names of RMs that no other test has."""
    process, address = si_process
    served = Served(process, address, Client(process.port), suffix=f"-{next(_numbers)}")
    yield served
    served.close()
    print(process.log_tail())  # noqa: T201 - pytest shows it with a failure
