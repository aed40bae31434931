"""A ledger on SQLite and on PostgreSQL, and providers in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.services.external.keys import Keys, new_key
from rm_service.services.external.providers import Providers
from tests.ledger.conftest import database_url, default_rules, postgres_template, sqlite_template
from tests.services.external.scripted import ScriptedProvider, plugins_with

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
