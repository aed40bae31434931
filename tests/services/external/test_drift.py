"""What is promised and not shown is told as it is when somebody looks, whether or not the manager answers."""

from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from external_providers.base import ExternalApplication, UnreachableError
from rm_service.ledger.ledger import Ledger
from rm_service.services.external.drift import KEPT_SECONDS, Drift
from rm_service.services.external.metrics import ProviderMetrics
from tests.services.external.queues import MEMORY, Process, queue
from tests.services.external.scripted import all_calls_end


@pytest.fixture
def process(ledger: Ledger) -> Iterator[Process]:
    process = Process(ledger)
    process.store(process.wish())
    yield process
    all_calls_end(process.external.refresher)


@pytest.fixture
def drift(process: Process) -> Drift:
    return Drift(process.ledger, process.external.refresher, process.time.clocks.monotonic)


def unseen(drift: Drift, process: Process) -> dict[str, int]:
    """By provider, after the last answer is no longer given."""
    process.time.passes(KEPT_SECONDS)
    return {name: amounts[MEMORY] for (_, name), amounts in drift.unseen().items() if MEMORY in amounts}


def test_it_is_what_is_held_at_this_moment(process: Process, drift: Drift) -> None:
    assert unseen(drift, process) == {}
    first = process.granted(10)
    process.granted(20, "b")
    assert unseen(drift, process) == {"c1": 30}
    process.queues.runs = [ExternalApplication("x", "a", {MEMORY: 4}, tags=frozenset({f"rm-{first}"}))]
    process.queues.has[0] = queue("a", used=4)
    process.tick(10)
    assert unseen(drift, process) == {"c1": 26}


def test_it_moves_while_the_manager_is_away(process: Process, drift: Drift) -> None:
    process.queues.trouble = UnreachableError("no route")
    process.tick(10)
    ours = process.granted(10)
    assert unseen(drift, process) == {"c1": 10}
    process.applications.release(ours)
    assert unseen(drift, process).get("c1", 0) == 0


def test_each_place_is_its_speakers(process: Process, drift: Drift) -> None:
    process.store(process.wish("b", "yarnCluster=c1,yarnQueue=b"))
    process.granted(10)
    process.granted(20, "b")
    assert unseen(drift, process) == {"c1": 10, "b": 20}
    process.external.remove("yarn", "b")
    assert unseen(drift, process) == {"c1": 30}
    process.external.remove("yarn", "c1")
    assert unseen(drift, process) == {}


def test_the_ledger_is_asked_now_and_then_however_many_look(process: Process, drift: Drift) -> None:
    process.granted(10)
    first = drift.unseen()
    process.granted(10)
    assert drift.unseen() is first
    assert unseen(drift, process) == {"c1": 20}


def test_prometheus_sees_it(process: Process, drift: Drift) -> None:
    registry = CollectorRegistry()
    ProviderMetrics(registry).watch_unseen(drift.unseen)
    process.granted(10)
    sample = 'rm_provider_unseen{dimension="yarn.memory",name="c1",type="yarn"} 10.0'
    assert sample in generate_latest(registry).decode()
