"""The façade served on SQLite, and on both databases where that matters."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rm_service.ledger.ledger import Ledger, LedgerSettings
from tests.facades.kubernetes.served import OpenWatch, Served, Watch


@pytest.fixture
def own_ledger(sqlite_template: Path, tmp_path: Path) -> Iterator[Ledger]:
    path = shutil.copy(sqlite_template, tmp_path / "rm.db")
    opened = Ledger(LedgerSettings(f"sqlite:///{path}"))
    opened.open()
    yield opened
    opened.close()


@pytest.fixture
def served(own_ledger: Ledger) -> Iterator[Served]:
    """On SQLite."""
    with Served(own_ledger) as served:
        yield served


@pytest.fixture
def served_on_each(ledger: Ledger) -> Iterator[Served]:
    """On SQLite and on PostgreSQL."""
    with Served(ledger) as served:
        yield served


@pytest.fixture
def watch() -> Iterator[OpenWatch]:
    """`watch(served, query, accept=...)` opens a watch, which leaves at the end."""
    with ExitStack() as stack:

        def made(served: Served, query: str = "", *, accept: str = "application/json") -> Watch:
            opened = Watch(served, query, accept=accept)
            stack.callback(opened.leave)
            return opened

        yield made
