"""The migrations make the tables that the code works on, from nothing and from each earlier revision."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from rm_service.domain.application import State
from rm_service.ledger import schema, tables
from rm_service.ledger.audit import audit
from rm_service.ledger.database import reader_engine
from rm_service.ledger.ledger import Ledger, LedgerSettings
from tests.ledger.asking import apply
from tests.postgres import DatabaseServer

SQLITE_HAS_NOT = {"ix_application_live_tags"}


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'rm.db'}"
    else:
        server: DatabaseServer = request.getfixturevalue("postgres_server")
        with server.database() as url:
            yield url


def test_a_migrated_database_has_exactly_the_declared_tables(empty_database: str) -> None:
    engine = reader_engine(empty_database)
    schema.migrate(engine)
    with engine.connect() as connection:
        parts = {name for name in inspect(connection).get_table_names() if name.startswith("event_")}
        missing = SQLITE_HAS_NOT if connection.dialect.name == "sqlite" else set()
        options = {
            "compare_type": True,
            "include_name": lambda name, kind, _: kind != "table" or name not in parts,
            "include_object": lambda _, name, kind, *__: kind != "index" or name not in missing,
        }
        context = MigrationContext.configure(connection, opts=options)
        differences: Any = compare_metadata(context, tables.metadata)
    engine.dispose()
    assert differences == []


def test_a_ledger_of_the_first_revision_goes_on_after_the_migration(
    empty_database: str, default_rules: dict[str, Any]
) -> None:
    engine = reader_engine(empty_database)
    config = schema._config()
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.execute(text("UPDATE ledger_head SET targets = 7"))
        connection.commit()
    schema.migrate(engine)
    engine.dispose()
    ledger = Ledger(LedgerSettings(empty_database, rules=default_rules))
    ledger.open()
    try:
        assert apply(ledger, {"user": "alice"}, {"memory": 1}).state is State.LOCKED
        with ledger.readers.connect() as connection:
            assert connection.execute(text("SELECT targets FROM ledger_head")).scalar_one() == 7
        assert audit(ledger.readers).consistent
    finally:
        ledger.close()
