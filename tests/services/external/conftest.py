"""A ledger on SQLite and on PostgreSQL, providers in it, and a refresher of others without a database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.services.external.keys import Keys, new_key
from rm_service.services.external.providers import Providers
from rm_service.services.external.refresher import Refresher
from tests.ledger.conftest import database_url, default_rules, postgres_template, sqlite_template
from tests.services.external.scripted import FakeTime, ScriptedProvider, plugins_with
from tests.services.external.shelf import Shelf

__all__ = ["database_url", "default_rules", "postgres_template", "sqlite_template"]


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    opened = Ledger(LedgerSettings(database_url))
    opened.open()
    yield opened
    opened.close()


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text(f"{new_key()}\n", encoding="ascii")
    return file


@pytest.fixture
def providers(ledger: Ledger, key_file: Path) -> Providers:
    return Providers(ledger, plugins_with(ScriptedProvider()), Keys.of_file(str(key_file)))


@pytest.fixture
def plugin() -> ScriptedProvider:
    return ScriptedProvider()


@pytest.fixture
def shelf(plugin: ScriptedProvider) -> Shelf:
    shelf = Shelf(plugin)
    shelf.put("c1")
    return shelf


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def refresher(shelf: Shelf, time: FakeTime) -> Refresher:
    return Refresher(shelf, time.clocks)  # type: ignore[arg-type]
