"""Two services on one PostgreSQL, hundreds of clients, crashes of either and of the database."""

import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.postgres import PostgresServer
from tests.system.client import Answer, Client, Json, NoAnswerError, until
from tests.system.cluster import HOT, offers, set_up
from tests.system.conftest import StartService
from tests.system.customers import (
    GIB,
    Tally,
    all_entries,
    busy,
    check_books,
    customers,
    overbooked,
    settle,
)
from tests.system.service_process import ServiceProcess

pytestmark = pytest.mark.system

CUSTOMERS = 200
COLD = 40
PATIENCE = 60.0  # seconds until somebody has to answer
BETWEEN = 800  # acknowledged requests between two crashes


class Persistent:
    """One customer's way to ask: the same request again, at the other service, until one answers."""

    def __init__(self, ports: list[int]) -> None:
        self._clients = [Client(port) for port in ports]
        self.repeated = 0

    def ask(self, method: str, path: str, body: object) -> Answer:
        return until(lambda: self._try(method, path, body), f"{method} {path} is answered", seconds=PATIENCE)

    def _try(self, method: str, path: str, body: object) -> Answer | None:
        client = self._clients[0]
        try:
            answer = client.send(method, path, body)
        except NoAnswerError:
            answer = None
        if answer is None or answer.status == 503:
            self.repeated += 1
            self._clients.reverse()
            return None
        return answer

    def close(self) -> None:
        for client in self._clients:
            client.close()


class Inspector:
    """Looks at the books through either service during the run, and notes whatever holds too much."""

    def __init__(self, services: list[ServiceProcess]) -> None:
        self.looks = 0
        self.found: list[Json] = []
        self._services = services
        self._ended = threading.Event()

    @contextmanager
    def looking(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _run(self) -> None:
        while not self._ended.wait(0.1):
            service = self._services[self.looks % len(self._services)]
            self._services = [*self._services[1:], self._services[0]]
            try:
                with Client(service.port) as client:
                    if client.send("GET", "/readyz").status == 200:
                        self.found += overbooked(client)
                        self.looks += 1
            except (NoAnswerError, AssertionError):
                continue  # it was killed, or its database was, while it was looked at


@pytest.mark.timeout(300)
def test_two_services_under_load_and_crashes_never_exceed_a_limit_and_lose_or_double_nothing(
    durable_url: str,
    postgres: PostgresServer,
    start_service: StartService,
) -> None:
    first, second = services = [start_service(durable_url) for _ in range(2)]
    with Client(first.port) as client:
        set_up(client, node_memory=200 * GIB, user_memory=60 * GIB)
    # Half of the customers are one user, the others spread over many.
    wanted = [offers(HOT) if n % 2 else offers(f"cold-{n % COLD}") for n in range(2 * COLD)]
    people = customers(CUSTOMERS, wanted, random.Random(20))
    ways = [Persistent([services[n % 2].port, services[1 - n % 2].port]) for n in range(CUSTOMERS)]
    with ExitStack() as stack:
        for way in ways:
            stack.callback(way.close)
        inspector = Inspector(services)
        tally, ended = Tally(), threading.Event()
        with inspector.looking(), busy(people, lambda n: ways[n].ask, tally, ended):
            for crash in (second, postgres, first, postgres, second, postgres):
                tally.wait_for(BETWEEN, PATIENCE)
                if isinstance(crash, PostgresServer):
                    crash.restart("immediate")
                else:
                    crash.kill()
                    tally.wait_for(BETWEEN // 4, PATIENCE)  # the other one goes on alone
                    crash.start()
            tally.wait_for(BETWEEN, PATIENCE)
    entries = all_entries(people)
    assert all(entry.asked is None for entry in entries), "every request was answered in the end"
    assert sum(way.repeated for way in ways) > 0, "no crash hit a request"
    assert inspector.found == []
    assert inspector.looks > 10
    for service in services:
        assert service.is_ready()
        with Client(service.port) as client:
            settle(client, entries)
            check_books(client, entries)
