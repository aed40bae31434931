"""The ledger with somebody who counts what becomes of operations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rm_service.domain import operations as op
from rm_service.domain.outcomes import Outcome, Refused
from rm_service.ledger.ledger import Ledger

Observe = Callable[[str, str], object]
"""Told of each operation by name: `done`, `repeated`, or the code of its refusal."""


@dataclass(slots=True)
class ObservedLedger(Ledger):
    """A Ledger; whoever submits, facades and sweeper alike, is counted."""

    observe: Observe

    def submit(self, operations: Sequence[op.DecidedOperation], *, atomic: bool = False) -> list[Outcome]:
        outcomes = Ledger.submit(self, operations, atomic=atomic)
        for operation, outcome in zip(operations, outcomes, strict=True):
            self.observe(type(operation).__name__, _word(outcome))
        return outcomes

    def submit_whole(self, operation: op.WholeLedgerOperation) -> Outcome:
        outcome = Ledger.submit_whole(self, operation)
        self.observe(type(operation).__name__, _word(outcome))
        return outcome


def _word(outcome: Outcome) -> str:
    if isinstance(outcome, Refused):
        return outcome.code.value
    return "repeated" if outcome.repeated else "done"
