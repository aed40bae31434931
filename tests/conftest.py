"""Fixtures that every room's tests share."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import structlog

from tests.postgres import DatabaseServer, open_server

# "ci" repeats the same examples in every run, so that a red run means a change, not luck;
# HYPOTHESIS_PROFILE=explore searches further, with fresh examples each time.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.register_profile("explore", deadline=None, print_blob=True, max_examples=2_000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """What one test has told the loggers is nothing to the next."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[DatabaseServer]:
    """A PostgreSQL for the whole session (one for each xdist worker), quick rather than crash-safe."""
    with open_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: DatabaseServer) -> Iterator[str]:
    """Address of an empty PostgreSQL database of the test's own."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """Address of an SQLite database file of the test's own, not made yet."""
    return f"sqlite:///{tmp_path / 'rm.db'}"
