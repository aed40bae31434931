"""A ledger of the third revision goes on with devices: its nodes have registered some already."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from sqlalchemy import text

from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.ledger import schema, tables
from rm_service.ledger.audit import audit
from rm_service.ledger.database import reader_engine
from rm_service.ledger.ledger import Ledger, LedgerSettings
from tests.domain.device_ledger import cards
from tests.ledger.asking import apply, done
from tests.ledger.device_asking import (
    WHOLE,
    check,
    create_classes,
    given,
    read,
    refused,
    standing,
    with_devices,
)
from tests.postgres import DatabaseServer

DEVICES_OF_THE_FOURTH = ("resource_class", "device_signature", "application_device")


@pytest.fixture(params=["sqlite", "postgresql"])
def migrated(
    request: pytest.FixtureRequest, tmp_path: Path, default_rules: dict[str, Any]
) -> Iterator[Ledger]:
    """On a database of revision 3, migrated: n1 with two cards that nobody counted, and memory held."""
    if request.param == "sqlite":
        yield from _migrated(f"sqlite:///{tmp_path / 'rm.db'}", default_rules)
    else:
        server: DatabaseServer = request.getfixturevalue("postgres_server")
        with server.database() as url:
            yield from _migrated(url, default_rules)


def _migrated(url: str, rules: dict[str, Any]) -> Iterator[Ledger]:
    engine = reader_engine(url)
    schema.migrate(engine)
    engine.dispose()
    ledger = Ledger(LedgerSettings(url, rules=rules))
    ledger.open()
    with_devices(ledger, "n1")
    apply(ledger, {"user": "alice", "node": "n1"}, {"memory": 5}, lock_seconds=3600)
    ledger.close()
    engine = reader_engine(url)
    config = schema._config()
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0003")
        known = '[{"name": "g", "count": 2, "attributes": {"Kind": "gpu", "memory": "16G"}}]'
        connection.execute(tables.node.update().values(devices=text(f"'{known}'")))
        connection.commit()
    schema.migrate(engine)
    engine.dispose()
    ledger = Ledger(LedgerSettings(url, rules=rules))
    ledger.open()
    yield ledger
    ledger.close()


def test_what_ran_is_there_and_the_books_balance(migrated: Ledger) -> None:
    create_classes(migrated)
    assert audit(migrated.readers).differences == []
    assert apply(migrated, {"user": "alice", "node": "n1"}, {"memory": 95}).state is State.LOCKED
    assert audit(migrated.readers).differences == []


def test_devices_count_from_the_nodes_next_registration_on(migrated: Ledger) -> None:
    create_classes(migrated)
    assert standing(migrated, "any") == (0, 0)
    refused(migrated, {"any": WHOLE})
    with_devices(migrated, "n1", cards("g", 2))
    assert standing(migrated, "any") == (2 * WHOLE, 0)
    granted = given(migrated, {"any": WHOLE})
    check(migrated)
    done(migrated, op.Use(granted.id), op.Release(granted.id))
    assert read(migrated, granted.id).state is State.RELEASED
    check(migrated)


def test_a_node_of_before_can_be_lost_and_removed(migrated: Ledger) -> None:
    create_classes(migrated)
    done(migrated, op.LoseNode("n1", "silent"))
    assert audit(migrated.readers).differences == []
    with_devices(migrated, "n1", cards("g", 2))
    check(migrated)
