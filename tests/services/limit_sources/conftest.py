"""A ledger on SQLite and on PostgreSQL, and a configuration service on loopback."""

from collections.abc import Iterator

import pytest

from rm_service.ledger.ledger import Ledger, LedgerSettings
from tests.ledger.conftest import database_url, default_rules, postgres_template, sqlite_template
from tests.services.limit_sources.configuration import ConfigurationService

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
