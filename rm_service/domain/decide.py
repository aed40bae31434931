"""The one decision: what an operation does to a view.

No I/O, no clock, no randomness: the same view and operation always give the same outcome.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rm_service.domain import asks, client_nodes, engine_life, lease, node_life, observing, queueing, releases
from rm_service.domain import operations as op
from rm_service.domain.amounts import AmountOverflowError
from rm_service.domain.outcomes import Code, Outcome, Refused
from rm_service.domain.rejections import reject
from rm_service.domain.view import View

_DECISIONS: dict[type, Callable[[View, Any], Outcome]] = {
    op.Apply: queueing.apply,
    op.Wake: queueing.wake,
    op.Observe: observing.observe,
    op.Use: lease.use,
    op.Renew: lease.renew,
    op.Release: lease.release,
    op.Reclaim: lease.reclaim,
    op.Lose: lease.lose,
    op.RegisterNode: node_life.register,
    op.HeartbeatNode: node_life.heartbeat,
    op.DrainNode: node_life.drain,
    op.UndrainNode: node_life.undrain,
    op.LoseNode: node_life.lose,
    op.RemoveNode: node_life.remove,
    op.CreateNode: client_nodes.create,
    op.UpdateNode: client_nodes.update,
    op.DecommissionNode: client_nodes.decommission,
    op.RegisterEngine: engine_life.register,
    op.HeartbeatEngine: engine_life.heartbeat,
    op.RemoveEngine: engine_life.remove,
    op.LoseEngine: engine_life.lose,
    op.AddApplication: asks.add_application,
    op.Ask: asks.ask,
    op.BookAllocation: asks.book_allocation,
    op.ReleaseAllocation: releases.release_allocation,
    op.RemoveApplication: releases.remove_application,
    op.ForgetApplication: releases.forget,
    op.Tell: releases.tell,
}


def decide(view: View, operation: op.DecidedOperation) -> Outcome:
    """Judge one operation on the view and record there what it changes.

    A refusal changes nothing; a client is told of it.
    """
    operation = _of_today(view, operation)
    outcome = _decide(view, operation)
    if isinstance(outcome, Refused):
        reject(view, operation, outcome)
    return outcome


def _of_today(view: View, operation: op.DecidedOperation) -> op.DecidedOperation:
    """A client's operation under its present registration, which may have come through another process."""
    client = getattr(operation, "client", None)
    if client is None or view.registrations.get(client.id, 0) <= client.registration:
        return operation
    return replace(operation, client=op.Client(client.id, view.registrations[client.id]))  # type: ignore[arg-type]


def _decide(view: View, operation: op.DecidedOperation) -> Outcome:
    try:
        return _DECISIONS[type(operation)](view, operation)
    except AmountOverflowError as error:
        label = ",".join(f"{key}={value}" for key, value in (error.label or {}).items())
        detail = f"{label}: {error}" if label else str(error)
        return Refused(Code.OVERFLOW, detail, field=error.dimension, label=error.label)


def decide_together(view: View, operations: Sequence[op.DecidedOperation]) -> list[Outcome]:
    """Judge a group that stands or falls together; a wait counts as a refusal.

    When one is refused, nothing of the group takes place and the others are told `not_done`. A client is told
    that its first operation is refused: of a node, with what it reports as running there.
    """
    outcomes: list[Outcome] = []
    operations = [_of_today(view, operation) for operation in operations]
    view.begin()
    for operation in operations:
        outcomes.append(outcome := _decide(view, operation))
        if isinstance(outcome, Refused):
            view.undo()
            reject(view, operations[0], outcome)
            return _only_refusal(outcomes, len(operations))
    view.keep()
    return outcomes


def _only_refusal(outcomes: list[Outcome], count: int) -> list[Outcome]:
    place = len(outcomes) - 1
    not_done = Refused(Code.NOT_DONE, f"operation {place} of the group was refused, so none took place")
    return [outcomes[place] if index == place else not_done for index in range(count)]
