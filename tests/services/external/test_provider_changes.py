"""Places of which nobody says any more what the ledger knows take nothing new, whatever happens between."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import structlog

from external_providers.base import UnreachableError
from rm_service.domain.outcomes import Outcome
from rm_service.domain.providers import StalePolicy
from rm_service.ledger.errors import LedgerUnavailableError
from rm_service.ledger.ledger import Ledger
from tests.services.external.queues import Process
from tests.services.external.scripted import all_calls_end

AWAY = UnreachableError("no route")


@pytest.fixture
def process(ledger: Ledger) -> Iterator[Process]:
    process = Process(ledger)
    yield process
    all_calls_end(process.external.refresher)


def test_a_place_takes_nothing_new_when_its_provider_is_removed(process: Process) -> None:
    process.store(process.wish())
    process.granted(10)
    process.external.remove("yarn", "c1")
    assert process.refused(1) == "unobserved"


def test_nor_if_the_process_that_removed_it_dies_at_once(process: Process) -> None:
    process.store(process.wish())
    process.granted(10)
    process.external.providers.remove("yarn", "c1")
    after = Process(process.ledger)
    after.tick()
    assert after.refused(1) == "unobserved"


def test_nor_if_nobody_uses_it_at_that_moment(process: Process) -> None:
    process.store(process.wish())
    process.applications.release(process.granted(10))
    process.external.remove("yarn", "c1")
    assert process.refused(1) == "unobserved"


def test_nor_if_whatever_happens_is_ignored(process: Process) -> None:
    process.store(replace(process.wish(), stale_policy=StalePolicy.IGNORE))
    process.granted(10)
    process.external.remove("yarn", "c1")
    assert process.refused(1) == "unobserved"


def test_a_provider_that_comes_back_opens_its_places_again(process: Process) -> None:
    process.store(process.wish())
    process.granted(10)
    process.external.remove("yarn", "c1")
    process.store(process.wish())
    process.granted(10)


def test_a_selector_that_leads_elsewhere_shuts_what_it_led_to(process: Process) -> None:
    process.store(process.wish())
    process.granted(10)
    process.store(process.wish(labels="yarnCluster=c1,yarnQueue=b"))
    assert process.refused(1) == "unobserved"
    process.granted(10, "b")


def test_who_speaks_for_a_place_by_now_has_to_look_first(process: Process) -> None:
    process.store(process.wish())
    process.granted(10)
    process.queues.trouble = AWAY
    process.store(process.wish("better", "yarnCluster=c1,yarnQueue=a"))
    assert process.refused(1) == "unobserved"
    process.granted(10, "b")
    process.queues.trouble = None
    process.tick(100)
    process.granted(10)


def test_another_address_has_to_be_looked_at_first(process: Process) -> None:
    process.store(process.wish())
    process.granted(10)
    process.queues.trouble = AWAY
    process.store(process.wish(address="elsewhere"))
    assert process.refused(1) == "unobserved"
    after = Process(process.ledger)
    after.queues.trouble = AWAY
    after.tick()
    assert after.refused(1) == "unobserved"
    process.queues.trouble = None
    process.tick(100)
    process.granted(10)


def test_the_same_address_need_not_be_looked_at_before_it_is_judged_in_another_way(process: Process) -> None:
    process.store(replace(process.wish(), protected={"yarn.memory": 90}))
    process.granted(10)
    process.queues.trouble = AWAY
    process.store(process.wish())
    process.granted(90)


def test_a_restart_forgets_nothing(process: Process) -> None:
    process.store(process.wish())
    process.granted(10)
    after = Process(process.ledger)
    after.queues.trouble = AWAY
    after.tick()
    after.granted(10)
    assert after.refused(81) == "short"


def test_what_the_ledger_could_not_be_told_is_told_by_the_next_tick(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.store(process.wish())
    process.granted(10)

    def unavailable(_ledger: Ledger, _operations: object) -> list[Outcome]:
        raise LedgerUnavailableError("no database")

    monkeypatch.setattr(Ledger, "submit", unavailable)
    with structlog.testing.capture_logs() as logs:
        process.external.remove("yarn", "c1")
        process.tick()
    assert [line["event"] for line in logs] == ["provider_changes_not_told"]
    monkeypatch.undo()
    process.tick()
    assert process.refused(1) == "unobserved"
