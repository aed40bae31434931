"""A ledger on SQLite and on PostgreSQL, each on a copy of a migrated database with the default rules."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rm_service.bundled import bundled
from rm_service.ledger.database import reader_engine
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.schema import migrate
from rm_service.ledger.sweeper import Sweeper
from tests.ledger.sweeping import SETTINGS
from tests.postgres import DatabaseServer


@pytest.fixture(scope="session")
def default_rules() -> dict[str, Any]:
    document = yaml.safe_load(bundled("config/default.yaml").read_text(encoding="utf-8"))
    return {name: document[name] for name in ("conversions", "label_rules")}


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory, default_rules: dict[str, Any]) -> Path:
    """A migrated SQLite file with the default rules, to be copied."""
    path = tmp_path_factory.mktemp("template") / "rm.db"
    make_template(f"sqlite:///{path}", default_rules)
    return path


@pytest.fixture(scope="session")
def postgres_template(postgres_server: DatabaseServer, default_rules: dict[str, Any]) -> Iterator[str]:
    """The name of a migrated PostgreSQL database with the default rules, to be copied."""
    url = postgres_server.create_database()
    make_template(url, default_rules)
    yield url.rpartition("/")[2]
    postgres_server.drop_database(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a migrated database of the test's own."""
    if request.param == "sqlite":
        path = shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "rm.db")
        yield f"sqlite:///{path}"
    else:
        server: DatabaseServer = request.getfixturevalue("postgres_server")
        with server.database(template=request.getfixturevalue("postgres_template")) as url:
            yield url


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    """An open ledger with the default rules, closed at the end."""
    opened = Ledger(LedgerSettings(database_url))
    opened.open()
    yield opened
    opened.close()


def make_template(url: str, rules: dict[str, Any]) -> None:
    """Migrate and put the rules into force; afterwards nobody is connected and the file is whole."""
    engine = reader_engine(url)
    migrate(engine)
    engine.dispose()
    ledger = Ledger(LedgerSettings(url, rules=rules))
    ledger.open()
    ledger.close()


@pytest.fixture
def postgres(postgres_server: DatabaseServer, postgres_template: str) -> Iterator[str]:
    """Address of a migrated PostgreSQL database with the default rules."""
    with postgres_server.database(template=postgres_template) as url:
        yield url


@pytest.fixture
def sweeper(ledger: Ledger) -> Sweeper:
    """One that has swept before, so that what follows is no first time."""
    sweeper = Sweeper(ledger, SETTINGS)
    sweeper.sweep()
    return sweeper
