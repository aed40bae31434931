"""A ledger on SQLite and on PostgreSQL, a configuration service on loopback, and what keeps its limits."""

from collections.abc import Iterator
from typing import Any

import pytest

from rm_service.domain.providers import StalePolicy
from rm_service.ledger.audit import audit
from rm_service.ledger.ledger import Ledger, LedgerSettings
from tests.ledger.conftest import database_url, default_rules, postgres_template, sqlite_template
from tests.services.limit_sources.configuration import ConfigurationService
from tests.services.limit_sources.world import Make, World

__all__ = ["database_url", "default_rules", "postgres_template", "sqlite_template"]


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    opened = Ledger(LedgerSettings(database_url))
    opened.open()
    yield opened
    opened.close()


@pytest.fixture
def service() -> Iterator[ConfigurationService]:
    with ConfigurationService() as service:
        yield service


@pytest.fixture
def make(ledger: Ledger, service: ConfigurationService) -> Iterator[Make]:
    made: list[World] = []

    def start(policy: StalePolicy = StalePolicy.LAST_KNOWN, **more: Any) -> World:
        world = World(more.pop("ledger", ledger), more.pop("service", service), policy, **more)
        world.sources.start()
        made.append(world)
        return world

    yield start
    for world in made:
        world.sources.stop()
    assert audit(ledger.readers).consistent


@pytest.fixture
def world(make: Make) -> World:
    return make()
