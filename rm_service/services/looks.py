"""Looks at external places that the ledger is told of before the question of somebody who asks there."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from rm_service.domain import operations as op
from rm_service.domain.outcomes import Outcome
from rm_service.domain.tags import Tags, label_key
from rm_service.ledger.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen of one place."""

    operation: op.Observe
    note: Callable[[Outcome], object]
    """Told what became of it; not called where the ledger could not be told."""


Before = Callable[[Tags], Sequence[Look]]
"""What the ledger is to be told before somebody asks with these tags. It waits for nobody."""


def looks_for(before: Before, several: Iterable[Tags]) -> list[Look]:
    """What it is to be told before several ask; of each place once."""
    looks = {label_key(look.operation.tags): look for tags in several for look in before(tags)}
    return list(looks.values())


def enqueue_behind(
    ledger: Ledger,
    looks: Sequence[Look],
    operations: Sequence[op.DecidedOperation],
    *,
    atomic: bool = False,
) -> Future[list[Outcome]]:
    """Hand operations in behind looks, in one batch. The outcomes of the looks come first.

    `atomic`: all of the operations or none; the looks stand by themselves.
    """
    future = ledger.enqueue(operations, atomic=atomic, looks=[look.operation for look in looks])
    if looks:
        future.add_done_callback(lambda done: _note(looks, done))
    return future


def _note(looks: Sequence[Look], done: Future[list[Outcome]]) -> None:
    if not done.cancelled() and done.exception() is None:
        for look, outcome in zip(looks, done.result(), strict=False):
            look.note(outcome)
