"""The whole of it on a ledger: what is stored is looked at, on each replica, and told to Prometheus."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import structlog
from prometheus_client import CollectorRegistry, generate_latest

from external_providers.base import DeniedError, Health, Place, UnreachableError
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.services.external.external_resources import ExternalResources
from rm_service.services.external.feeds import ProviderState
from rm_service.services.external.keys import Keys, new_key
from rm_service.services.external.metrics import ProviderMetrics
from rm_service.services.external.providers import ProviderWish
from rm_service.services.external.snapshots import Snapshot
from rm_service.services.external.sources import Source
from tests.services.external.scripted import (
    WAIT,
    FakeTime,
    Gate,
    ScriptedProvider,
    all_calls_end,
    place,
    plugins_with,
    tick,
)

KEY = new_key()
PASSWORD = "hunter2-and-more"  # noqa: S105 - an example


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def external(
    ledger: Ledger, plugin: ScriptedProvider, time: FakeTime, registry: CollectorRegistry
) -> ExternalResources:
    """Its time passes when the test says so, and it ticks when the test says so."""
    metrics = ProviderMetrics(registry)
    return ExternalResources(ledger, Keys([KEY]), plugins_with(plugin), metrics=metrics, clocks=time.clocks)


def wish(name: str = "c1", **config: object) -> ProviderWish:
    return ProviderWish("scripted", name, {"url": "http://c1", "password": PASSWORD} | config)


def state(external: ExternalResources, name: str = "c1") -> ProviderState | None:
    view = external.read("scripted", name)
    return None if view is None or view.status is None else view.status.state


def test_what_is_stored_is_looked_at_at_once(external: ExternalResources, plugin: ScriptedProvider) -> None:
    external.store(wish())
    all_calls_end(external.refresher)
    assert state(external) is ProviderState.OK
    assert plugin.requests[0].provider.params["password"] == PASSWORD
    external.remove("scripted", "c1")
    assert external.refresher.statuses() == []


def test_a_change_reaches_every_replica(
    external: ExternalResources, plugin: ScriptedProvider, database_url: str
) -> None:
    ledger = Ledger(LedgerSettings(database_url))
    ledger.open()
    try:
        other = ExternalResources(ledger, Keys([KEY]), plugins_with(plugin), clocks=FakeTime().clocks)
        external.store(wish())
        assert state(other) is None  # it has not heard of it yet
        tick(other.refresher)
        assert state(other) is ProviderState.OK
        other.store(wish(url="http://elsewhere"))
        tick(external.refresher)
        view = external.read("scripted", "c1")
        assert view is not None
        assert view.status is not None
        assert view.status.stored.config["url"] == "http://elsewhere"
        external.remove("scripted", "c1")
        tick(other.refresher)
        assert other.refresher.statuses() == []
        other.stop()
    finally:
        all_calls_end(external.refresher)
        ledger.close()


def test_a_database_that_is_away_changes_nothing(
    external: ExternalResources, time: FakeTime, plugin: ScriptedProvider
) -> None:
    external.store(wish())
    all_calls_end(external.refresher)
    external.ledger.readers.dispose()
    external.refresher._following._stored = _Away()  # type: ignore[assignment]
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            time.passes(10)
            tick(external.refresher)
    assert [line["event"] for line in logs] == ["providers_unreadable"]
    assert plugin.script("c1").asked.count("places") == 4


class _Away:
    def generation(self) -> None:
        raise ValueError("no database")


def test_a_failure_is_told_once_and_so_is_its_end(
    external: ExternalResources, plugin: ScriptedProvider, time: FakeTime
) -> None:
    external.store(wish())
    all_calls_end(external.refresher)
    plugin.says("c1", DeniedError("no"), DeniedError("no"), [place(used=-1)], [place(used=-1)])
    with structlog.testing.capture_logs() as logs:
        for _ in range(5):
            time.passes(10)
            tick(external.refresher)
    assert [(line["event"], line.get("kind")) for line in logs] == [
        ("provider_failed", "denied"),
        ("provider_failed", "quarantined"),
        ("provider_recovered", None),
    ]


def test_answers_that_come_too_late_are_told_once_and_so_is_their_end(
    external: ExternalResources, plugin: ScriptedProvider, time: FakeTime
) -> None:
    def late() -> list[Place]:
        time.passes(25)
        return [place()]

    external.store(replace(wish(), refresh_seconds=5, stale_seconds=20))
    all_calls_end(external.refresher)
    plugin.says("c1", late, late, [place()])
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            time.passes(5)
            tick(external.refresher)  # and, as each look is overdue when the one before ends, all of them
    assert state(external) is ProviderState.OK
    assert plugin.script("c1").asked.count("places") == 5
    assert [line["event"] for line in logs] == [
        "provider_stale",
        "provider_late",
        "provider_fresh",
        "provider_in_time",
    ]
    assert [line for line in logs if line["event"] in {"provider_stale", "provider_fresh"}] == [
        {
            "event": "provider_stale",
            "log_level": "warning",
            "provider": "scripted/c1",
            "age_seconds": 25.0,
            "policy": "deny",
        },
        {
            "event": "provider_fresh",
            "log_level": "info",
            "provider": "scripted/c1",
            "age_seconds": 0.0,
            "policy": "deny",
        },
    ]


def test_what_a_failing_provider_has_said_grows_old_once(
    external: ExternalResources, plugin: ScriptedProvider, time: FakeTime
) -> None:
    external.store(wish())
    all_calls_end(external.refresher)
    plugin.says("c1", DeniedError("no"), DeniedError("no"))
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            time.passes(30)
            tick(external.refresher)
    events = [line["event"] for line in logs]
    assert events == ["provider_failed", "provider_stale", "provider_fresh", "provider_recovered"]


def test_no_secret_gets_out_by_way_of_an_error(
    external: ExternalResources, plugin: ScriptedProvider, time: FakeTime
) -> None:
    script = plugin.script("c1")
    script.health = Health(ok=False, detail=f"login with {PASSWORD} failed")
    error = RuntimeError(f"http://u:{PASSWORD}@c1")
    plugin.says(
        "c1", UnreachableError(f"401 for {PASSWORD}"), UnreachableError("?"), UnreachableError("?"), error
    )
    with structlog.testing.capture_logs() as logs:
        external.store(wish())
        all_calls_end(external.refresher)
        time.passes(10)
        tick(external.refresher)
    status = external.refresher.status("scripted", "c1")
    assert status is not None
    assert status.fault is not None
    assert status.fault.reason == "RuntimeError: http://u:***@c1"
    assert status.health == Health(ok=False, detail="login with *** failed")
    assert PASSWORD not in f"{logs} {status}"
    assert "provider_defect" in {line["event"] for line in logs}


def test_each_provider_has_its_metrics_as_long_as_it_is_there(
    external: ExternalResources, plugin: ScriptedProvider, registry: CollectorRegistry, time: FakeTime
) -> None:
    plugin.says("c1", [place()], DeniedError("no"), DeniedError("no"), DeniedError("no"))
    external.store(wish())
    all_calls_end(external.refresher)
    for _ in range(3):
        time.passes(10)
        tick(external.refresher)
    text = generate_latest(registry).decode()
    who = 'name="c1",type="scripted"'
    assert f"rm_provider_age_seconds{{{who}}} 30.0" in text
    assert f"rm_provider_breaker{{{who}}} 2.0" in text
    assert f"rm_provider_fetch_seconds_count{{{who}}} 1.0" in text
    assert f'rm_provider_failures_total{{kind="denied",{who}}} 3.0' in text
    external.remove("scripted", "c1")
    assert "c1" not in generate_latest(registry).decode()


def test_it_ticks_by_itself_and_stops_with_what_is_being_handed_on(
    ledger: Ledger, plugin: ScriptedProvider
) -> None:
    external = ExternalResources(ledger, Keys([KEY]), plugins_with(plugin))
    gate, told = Gate(), Gate()

    def tell(_source: Source, _snapshot: Snapshot) -> None:
        told()

    external.refresher.on_snapshot.append(tell)
    plugin.says("c1", gate)
    external.providers.store(wish())
    external.start()
    assert gate.reached.wait(WAIT)
    asked = external.refresher.ask("scripted", "c1")
    gate.opened.set()
    assert told.reached.wait(WAIT)
    told.opened.set()
    assert asked.result(WAIT).places.keys() == {"root"}
    external.stop()
    external.stop()  # once more is harmless


@pytest.fixture(autouse=True)
def _nobody_is_left(external: ExternalResources) -> Iterator[None]:
    yield
    all_calls_end(external.refresher)
