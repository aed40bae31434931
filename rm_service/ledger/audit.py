"""The audit: whether the books balance, proved two ways from one snapshot of the database.

Every balance is summed anew from the live applications, and folded anew from the events since the last
checkpoint. Since each application is charged to exactly the labels of the rules, all ancestors of a queue
included, a right sum on every label also makes a parent the sum of its children and what is charged to it
directly, and a node the sum of its applications.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, Engine

from rm_service.domain.accounts import Account
from rm_service.domain.amounts import Amounts
from rm_service.domain.tags import Tags
from rm_service.ledger.audit_balances import check_events, check_sums, read_books
from rm_service.ledger.audit_devices import check_devices
from rm_service.ledger.audit_findings import Check, Difference, Findings
from rm_service.ledger.audit_registers import (
    check_engines,
    check_final,
    check_nodes,
    check_tag_index,
    check_waiters,
)
from rm_service.ledger.queries.events import last_seq

__all__ = ["Audit", "Check", "Difference", "OverLimit", "audit"]


@dataclass(frozen=True, slots=True)
class OverLimit:
    """A label that holds more than total - protected: by a report, or because its total was lowered."""

    label: Tags
    excess: Amounts
    """By how much, in the dimensions where it is so."""


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found."""

    consistent: bool
    seq: int
    """The number of the last event of the snapshot that was looked at."""
    labels_checked: int
    applications_checked: int
    """How many live applications there were."""
    events_folded: int
    differences: list[Difference]
    truncated: bool
    """There were more differences than are named."""
    over_limit: list[OverLimit]
    """For information: no inconsistency."""


def audit(readers: Engine) -> Audit:
    """Check everything on a connection of `Ledger.readers`, while the ledger goes on working.

    Needs memory for the labels, not for the applications, and time for both and for the events since the
    last checkpoint.
    """
    findings = Findings()
    with _snapshot(readers) as connection:
        seq = last_seq(connection)
        books = read_books(connection)
        applications = check_sums(connection, books, findings)
        events = check_events(connection, books, seq, findings)
        check_waiters(connection, books, findings)
        check_final(connection, findings)
        check_engines(connection, findings)
        check_nodes(connection, books, findings)
        check_devices(connection, books, findings)
        check_tag_index(connection, findings)
        over_limit = [found for account in books.accounts() if (found := _over_limit(account)) is not None]
    return Audit(
        consistent=not findings.differences,
        seq=seq,
        labels_checked=books.labels_checked,
        applications_checked=applications,
        events_folded=events,
        differences=findings.differences,
        truncated=findings.truncated,
        over_limit=over_limit,
    )


@contextmanager
def _snapshot(readers: Engine) -> Iterator[Connection]:
    """A connection on which all statements see the same moment; on SQLite every transaction does."""
    with readers.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        with connection.begin():
            yield connection


def _over_limit(account: Account) -> OverLimit | None:
    excess = account.excess()
    return OverLimit(account.label.tags, excess) if excess else None
