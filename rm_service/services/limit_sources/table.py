"""Our own table of limits: what is judged by. What another source says is taken over into it."""

from collections.abc import Sequence
from dataclasses import dataclass

from rm_service.domain import operations as op
from rm_service.domain.limits import Limit, LimitError, LimitTerms, check_limit
from rm_service.domain.outcomes import Refused
from rm_service.domain.tags import Tags, label_key
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.limits import limits_on
from rm_service.services.limit_sources.sources import Said


class NotTakenError(Exception):
    """The rules do not allow what a source says. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class LimitTable:
    """The limits in the ledger; those of a source stand there under its name, `owner`."""

    ledger: Ledger
    owner: str

    def limits_of(self, combinations: Sequence[Tags]) -> Said:
        """As the table has them, whoever has set them. Raises SQLAlchemyError."""
        return Said([_terms(limit) for limit in self._rows(combinations)])

    def possible(self, limits: Sequence[LimitTerms]) -> Said:
        """Which of these may stand there under the rules in force. Raises LedgerUnavailableError."""
        rules = self.ledger.book().rules
        found: list[LimitTerms] = []
        faults: dict[str, str] = {}
        for limit in limits:
            try:
                check_limit(limit.tags, limit.total, limit.protected, rules)
            except LimitError as error:
                faults[label_key(limit.tags)] = str(error)
            else:
                found.append(limit)
        return Said(found, faults)

    def take(self, combinations: Sequence[Tags], limits: Sequence[LimitTerms]) -> bool:
        """Make these the source's limits on the combinations; whether that changed anything.

        Where they stand already, the ledger is not written. Raises NotTakenError, SQLAlchemyError, and what
        the ledger raises.
        """
        rows = {label_key(limit.tags): limit for limit in self._rows(combinations)}
        standing = {key: _terms(limit) for key, limit in rows.items() if limit.owner == self.owner}
        others = rows.keys() - standing.keys()
        wanted = {key: limit for limit in limits if (key := label_key(limit.tags)) not in others}
        if standing == wanted:
            return False
        outcome = self.ledger.submit_whole(op.TakeLimits(self.owner, combinations, limits))
        if isinstance(outcome, Refused):
            raise NotTakenError(outcome.detail)
        return not outcome.repeated

    def _rows(self, combinations: Sequence[Tags]) -> list[Limit]:
        with self.ledger.readers.connect() as connection:
            return limits_on(connection, combinations)


def _terms(limit: Limit) -> LimitTerms:
    return LimitTerms(limit.tags, limit.total, limit.protected)
