"""kill -9 at any moment: what was acknowledged is there, and nothing is half there."""

import random

import pytest

from tests.system.client import Client
from tests.system.cluster import HOT, asks_of, offers, set_up
from tests.system.conftest import StartService
from tests.system.customers import Tally, all_entries, busy, check_books, customers, settle

pytestmark = pytest.mark.system

ROUNDS = 10
CUSTOMERS = 12


@pytest.mark.timeout(300)
def test_a_service_killed_at_any_moment_keeps_all_that_it_acknowledged_and_nothing_by_halves(
    database_url: str, start_service: StartService
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - shown when the test fails
    chance = random.Random(seed)
    service = start_service(database_url)
    with Client(service.port) as client:
        set_up(client)
    people = customers(CUSTOMERS, [offers(HOT), offers("alice"), offers("bob")], chance)
    for _ in range(ROUNDS):
        # Whoever is acknowledged pulls the trigger: a moment after an answer is the one to be tried.
        last = chance.randint(1, 500)
        with busy(people, asks_of(service), Tally(at=last, then=service.kill)):
            pass
        service.start()
        with Client(service.port) as client:
            settle(client, all_entries(people))
            check_books(client, all_entries(people))
    assert sum(one.unanswered for one in people) > ROUNDS, "no request was under way when it was killed"
    assert sum(one.refused for one in people) > 0, "no limit was reached"
