"""SIGTERM: whoever was let in is answered, and nobody else is."""

import random

import pytest

from tests.system.client import Client, event_stream
from tests.system.cluster import HOT, asks_of, offers, set_up
from tests.system.conftest import StartService
from tests.system.customers import RELEASED, Tally, all_entries, busy, check_books, customers, settle

pytestmark = pytest.mark.system

CUSTOMERS = 24


def test_a_service_that_is_told_to_stop_under_load_answers_every_request_that_it_carries_out(
    database_url: str, start_service: StartService
) -> None:
    service = start_service(database_url)
    with Client(service.port) as client:
        set_up(client)
    people = customers(CUSTOMERS, [offers(HOT), offers("alice")], random.Random(3))
    tally = Tally()
    with busy(people, asks_of(service), tally):
        tally.wait_for(300)
        assert service.stop() == 0
    service.start()
    assert sum(one.unanswered for one in people) == 0
    entries = all_entries(people)
    for entry in entries:
        entry.asked = None  # what got no answer must not have been carried out
    with Client(service.port) as client:
        settle(client, entries)
        check_books(client, entries)
    assert any(entry.state == RELEASED for entry in entries)


def test_open_event_streams_are_ended_and_do_not_hold_up_the_stop(
    sqlite_url: str, start_service: StartService
) -> None:
    service = start_service(sqlite_url)
    with Client(service.port) as client, event_stream(service.port) as events:
        set_up(client)
        told = 0
        while told < 4:  # what the stop cuts off, a client asks for again by its last number
            told += next(events)["kind"] == "node.registered"
        assert service.stop() == 0
        for _ in events:
            pass  # it ends, and ends clean: a stream that breaks off raises
