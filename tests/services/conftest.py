"""A ledger on SQLite and on PostgreSQL, and a resource manager that has registered with it."""

from collections.abc import Iterator

import pytest

from rm_service.domain.clients import Client
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.services.si.scheduler import SchedulerService
from tests.ledger.conftest import database_url, default_rules, postgres_template, sqlite_template
from tests.ledger.telling import check_books
from tests.services.shim import RM, Shim, node

__all__ = ["database_url", "default_rules", "postgres_template", "sqlite_template"]


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    """Open; at the end the books balance."""
    ledger = Ledger(LedgerSettings(database_url))
    ledger.open()
    yield ledger
    check_books(ledger, RM, Client("rm-2"))
    ledger.close()


@pytest.fixture
def shim(ledger: Ledger) -> Iterator[Shim]:
    """Registered with CONFIG; node-1 has 20."""
    service = SchedulerService(ledger, resync_seconds=60)
    shim = Shim(ledger, service)
    shim.register()
    shim.say(nodes=node())
    yield shim
    service.close()
