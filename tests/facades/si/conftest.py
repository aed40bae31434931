"""A migrated database of each sort, and the desk over it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rm_service.ledger.database import reader_engine
from rm_service.ledger.schema import migrate
from tests.facades.si.desk import Desk, WrittenOutbox
from tests.postgres import DatabaseServer


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a migrated database without rules."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'rm.db'}"
        _migrate(url)
        yield url
    else:
        server: DatabaseServer = request.getfixturevalue("postgres_server")
        with server.database() as url:
            _migrate(url)
            yield url


@pytest.fixture
def outbox(database_url: str) -> Iterator[WrittenOutbox]:
    outbox = WrittenOutbox(database_url)
    yield outbox
    outbox.close()


@pytest.fixture
def desk(outbox: WrittenOutbox) -> Iterator[Desk]:
    with Desk(outbox) as desk:
        yield desk


def _migrate(url: str) -> None:
    engine = reader_engine(url)
    migrate(engine)
    engine.dispose()
