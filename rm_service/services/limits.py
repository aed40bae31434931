"""Limits: set, listed, taken away."""

from dataclasses import dataclass

from rm_service.domain import operations as op
from rm_service.domain.amounts import Amounts
from rm_service.domain.limits import Limit
from rm_service.domain.outcomes import Outcome
from rm_service.domain.selectors import Selector
from rm_service.domain.tags import Tags
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.limits import list_limits, read_limit
from rm_service.ledger.queries.paging import Page


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits in force."""

    ledger: Ledger

    def set(self, tags: Tags, total: Amounts, protected: Amounts) -> Outcome:
        """Set the limit of a tag combination."""
        return self.ledger.submit_whole(op.SetLimit(tags, total, protected))

    def converted(self, tags: Tags) -> Tags:
        """The tags as the rules convert an application's: a limit on others would bind nobody.

        Raises TagError.
        """
        return self.ledger.book().conversions.apply(tags)

    def remove(self, limit_id: int) -> Outcome:
        """Take a limit away."""
        return self.ledger.submit_whole(op.RemoveLimit(limit_id))

    def read(self, limit_id: int) -> Limit | None:
        """One limit, None if there is none with this id."""
        with self.ledger.readers.connect() as connection:
            return read_limit(connection, limit_id)

    def page(self, selector: Selector, limit: int, cursor: str | None) -> Page[Limit]:
        """A page of limits. Raises CursorError."""
        with self.ledger.readers.connect() as connection:
            return list_limits(connection, selector=selector, limit=limit, cursor=cursor)
