"""Long polls, seen from the other end of a socket, with a real ledger behind."""

import json
import threading
import uuid
from typing import Any

import pytest

from rm_service.domain import operations as op
from tests.facades.live import PATIENCE, Client, Clients, Service, until


class TestLongPoll:
    @pytest.fixture
    def waiting(self, service: Service) -> tuple[str, str]:
        """The ids of one that holds all there is, and of one that waits for it."""
        service.ledger.submit([op.RegisterNode("h1", "Memory", {"memory": 1})])
        holder = service.apply(node="h1")
        waiter = service.apply(node="h1", wait_seconds=600)
        assert (service.state(holder), service.state(waiter)) == ("locked", "waiting")
        return holder, waiter

    def poll(self, client: Client, id_: str, wait: int) -> tuple[int, Any]:
        response = client.get(f"/api/v1/applications/{id_}?wait={wait}")
        return response.status, json.loads(response.read())

    def test_who_waits_no_more_is_answered_at_once(self, clients: Clients, waiting: tuple[str, str]) -> None:
        status, answer = self.poll(clients(), waiting[0].upper(), 300)
        assert (status, answer) == (200, {"id": waiting[0], "state": "locked"})

    def test_an_unknown_application_is_not_waited_for(self, clients: Clients) -> None:
        assert self.poll(clients(), str(uuid.uuid4()), 300)[0] == 404

    def test_it_is_answered_when_the_waiting_ends(
        self, service: Service, clients: Clients, waiting: tuple[str, str]
    ) -> None:
        holder, waiter = waiting
        answers: list[tuple[int, Any]] = []
        client = clients()
        thread = threading.Thread(target=lambda: answers.append(self.poll(client, waiter, 300)))
        thread.start()
        until(lambda: service.server.open_streams == 1)
        service.ledger.submit([op.Release(holder)])
        thread.join(PATIENCE)
        assert answers == [(200, {"id": waiter, "state": "locked"})]
        until(lambda: service.server.open_streams == 0)

    def test_many_wait_on_few_threads(
        self, service: Service, clients: Clients, waiting: tuple[str, str]
    ) -> None:
        holder, waiter = waiting
        polls = [clients() for _ in range(50)]  # the server has 4 threads
        for client in polls:
            client.connection.request("GET", f"/api/v1/applications/{waiter}?wait=300")
        until(lambda: service.server.open_streams == len(polls))
        service.ledger.submit([op.Release(holder)])
        answers = [json.loads(client.connection.getresponse().read()) for client in polls]
        assert {answer["state"] for answer in answers} == {"locked"}

    def test_when_the_time_is_over_the_state_is_told_as_it_is(
        self, clients: Clients, waiting: tuple[str, str]
    ) -> None:
        assert self.poll(clients(), waiting[1], 1) == (200, {"id": waiting[1], "state": "waiting"})

    def test_a_server_that_stops_answers(
        self, service: Service, clients: Clients, waiting: tuple[str, str]
    ) -> None:
        client = clients()
        client.connection.request("GET", f"/api/v1/applications/{waiting[1]}?wait=300")
        until(lambda: service.server.open_streams == 1)
        service.server.stop(grace=5.0)
        assert json.loads(client.connection.getresponse().read())["state"] == "waiting"

    def test_a_client_that_leaves_is_forgotten(
        self, service: Service, clients: Clients, waiting: tuple[str, str]
    ) -> None:
        client = clients()
        client.connection.request("GET", f"/api/v1/applications/{waiting[1]}?wait=300")
        until(lambda: service.server.open_streams == 1)
        client.connection.close()
        until(lambda: service.server.open_streams == 0)
        assert service.polls._polls == {}

    @pytest.mark.parametrize("query", ["wait=0", "wait=301", "wait=x", "wait=5&also=1", "", "state=used"])
    def test_everything_else_is_an_ordinary_request(
        self, clients: Clients, waiting: tuple[str, str], query: str
    ) -> None:
        response = clients().get(f"/api/v1/applications/{waiting[1]}?{query}")
        assert response.status == 404, "it went to the application, which knows nothing"

    def test_who_may_not_ask_is_told_so(self, clients: Clients, waiting: tuple[str, str]) -> None:
        response = clients().get(f"/api/v1/applications/{waiting[1]}?wait=5", Authorization="Bearer wrong")
        assert response.status == 401
