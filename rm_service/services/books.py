"""The books as a whole: usage by tags, the labels, the history, and the proof that it all adds up."""

from collections.abc import Sequence
from dataclasses import dataclass

from rm_service.domain.accounts import Account
from rm_service.domain.application import Instant
from rm_service.domain.selectors import Selector
from rm_service.ledger.audit import Audit, audit
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.clients import ResourceManager, list_resource_managers
from rm_service.ledger.queries.events import LabelledEvent, last_seq, read_events
from rm_service.ledger.queries.labels import list_labels
from rm_service.ledger.queries.paging import Page
from rm_service.ledger.queries.usage import Usage, usage


@dataclass(frozen=True, slots=True)
class Books:
    """Questions to the whole ledger; nothing is changed."""

    ledger: Ledger

    def usage(self, by: Sequence[str], where: Selector, at: Instant | None) -> Usage:
        """What is held by each combination of values of the tags `by`, now or at a past moment."""
        book = self.ledger.book()
        with self.ledger.readers.connect() as connection:
            return usage(connection, book, by, where=where, at=at)

    def labels(self, selector: Selector, limit: int, cursor: str | None) -> Page[Account]:
        """A page of labels with their balances. Raises CursorError."""
        book = self.ledger.book()
        with self.ledger.readers.connect() as connection:
            return list_labels(connection, book, selector=selector, limit=limit, cursor=cursor)

    def events(self, after: int, limit: int) -> list[LabelledEvent]:
        """The next events behind number `after`."""
        with self.ledger.readers.connect() as connection:
            return read_events(connection, self.ledger.labels, after, limit)

    def last_event(self) -> int:
        """The number of the last event."""
        with self.ledger.readers.connect() as connection:
            return last_seq(connection)

    def resource_managers(self) -> list[ResourceManager]:
        """Who has registered through the Scheduler Interface."""
        with self.ledger.readers.connect() as connection:
            return list_resource_managers(connection)

    def audit(self) -> Audit:
        """Prove the balances by the applications and by the events, in one snapshot."""
        return audit(self.ledger.readers)
