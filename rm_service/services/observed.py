"""The ledger with somebody who counts what becomes of operations."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from rm_service.domain import operations as op
from rm_service.domain.outcomes import Outcome, Refused
from rm_service.ledger.ledger import Ledger

Observe = Callable[[str, str, int], object]
"""Told of operations by name, how many were `done`, `repeated`, or refused with which code."""


@dataclass(slots=True)
class ObservedLedger(Ledger):
    """A Ledger; whoever submits, facades and sweeper alike, is counted."""

    observe: Observe

    def enqueue(
        self,
        operations: Sequence[op.DecidedOperation],
        *,
        atomic: bool = False,
        looks: Sequence[op.Observe] = (),
    ) -> Future[list[Outcome]]:
        future = Ledger.enqueue(self, operations, atomic=atomic, looks=looks)
        future.add_done_callback(lambda done: self._count((*looks, *operations), done))
        return future

    def enqueue_whole(self, operation: op.WholeLedgerOperation) -> Future[list[Outcome]]:
        future = Ledger.enqueue_whole(self, operation)
        future.add_done_callback(lambda done: self._count((operation,), done))
        return future

    def _count(self, operations: Sequence[op.Operation], done: Future[list[Outcome]]) -> None:
        if done.cancelled() or done.exception() is not None:
            return
        counts = Counter(
            (type(operation).__name__, _word(outcome))
            for operation, outcome in zip(operations, done.result(), strict=True)
        )
        for (name, word), count in counts.items():
            self.observe(name, word, count)


def _word(outcome: Outcome) -> str:
    if isinstance(outcome, Refused):
        return outcome.code.value
    return "repeated" if outcome.repeated else "done"
