"""What was decided about the Scheduler Interface where its specifications leave room or differ.

docs/scheduler-interface.md lists every decision with its test; those that have no better place
are in this folder.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rm_service.ledger.audit import audit
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.services.si.scheduler import SchedulerService
from tests.services.si_decisions.talk import Talk


@pytest.fixture
def ledger(sqlite_template: Path, tmp_path: Path) -> Iterator[Ledger]:
    """Whatever a test has done, the books balance in the end."""
    ledger = Ledger(LedgerSettings(f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'rm.db')}"))
    ledger.open()
    yield ledger
    found = audit(ledger.readers)
    assert found.consistent, found
    ledger.close()


@pytest.fixture
def impatient(sqlite_template: Path, tmp_path: Path) -> Iterator[Talk]:
    """On a ledger in which nobody who waits may be passed."""
    url = f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'impatient.db')}"
    ledger = Ledger(LedgerSettings(url, wait_age_seconds=0))
    ledger.open()
    scheduler = SchedulerService(ledger, resync_seconds=60)
    yield Talk(ledger, scheduler)
    scheduler.close()
    ledger.close()


@pytest.fixture
def talk(ledger: Ledger) -> Iterator[Talk]:
    scheduler = SchedulerService(ledger, resync_seconds=60)
    yield Talk(ledger, scheduler)
    scheduler.close()
