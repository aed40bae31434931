"""Engines: started and reported, alive, ended."""

from dataclasses import dataclass

from rm_service.domain import operations as op
from rm_service.domain.amounts import Amounts
from rm_service.domain.outcomes import Outcome
from rm_service.domain.selectors import Selector
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.engines import EngineRecord, list_engines, read_engine
from rm_service.ledger.queries.paging import Page


@dataclass(frozen=True, slots=True)
class Engines:
    """The life of engines. Each change is answered with the ledger's outcome."""

    ledger: Ledger
    silence_seconds: int
    """How long an engine that has sent a heartbeat may be silent."""

    def register(self, operation: op.RegisterEngine) -> Outcome:
        """A started engine: its application's lock becomes use."""
        return self.ledger.submit([operation])[0]

    def heartbeat(self, instance: str, resource: Amounts | None) -> Outcome:
        """Note a sign of life, and what is used now if that is reported."""
        return self.ledger.submit([op.HeartbeatEngine(instance, self.silence_seconds, resource)])[0]

    def remove(self, instance: str) -> Outcome:
        """An engine ended: its application gives everything back."""
        return self.ledger.submit([op.RemoveEngine(instance)])[0]

    def read(self, instance: str) -> EngineRecord | None:
        """One engine that runs, None if there is none of this name."""
        with self.ledger.readers.connect() as connection:
            return read_engine(connection, instance)

    def page(self, selector: Selector, limit: int, cursor: str | None) -> Page[EngineRecord]:
        """A page of engines, by name. Raises CursorError."""
        with self.ledger.readers.connect() as connection:
            return list_engines(connection, selector=selector, limit=limit, cursor=cursor)
