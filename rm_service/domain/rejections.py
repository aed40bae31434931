"""Rejections: what a client is told when something that it asked for is refused."""

from rm_service.domain import answers
from rm_service.domain import operations as op
from rm_service.domain.events import Kind
from rm_service.domain.outcomes import Refused
from rm_service.domain.view import View

_OF_NODES = op.CreateNode | op.UpdateNode | op.DecommissionNode | op.DrainNode | op.UndrainNode


def reject(view: View, operation: op.DecidedOperation, refused: Refused) -> None:
    """Write down the answer to a client's operation; whoever else asks has the outcome itself."""
    client = getattr(operation, "client", None)
    answer = None if client is None else answer_to(operation, refused.detail)
    if client is None or answer is None:
        return
    view.post(
        Kind.CLIENT_REJECTED,
        str(answer.get("key") or answer.get("app") or answer.get("node") or ""),
        tags={"client": client.id},
        detail={"code": refused.code.value, "reason": refused.detail, "kind": str(answer["kind"])},
        client=client.id,
        answer=answer,
    )


def answer_to(operation: op.DecidedOperation, reason: str) -> answers.Answer | None:
    """The answer that rejects an operation; None for one that is never rejected."""
    if isinstance(operation, _OF_NODES):
        return answers.rejected_node(operation.instance, reason)
    if isinstance(operation, op.AddApplication):
        return answers.rejected_application(operation.tags.get("app", ""), reason)
    if isinstance(operation, op.Ask | op.BookAllocation):
        said = operation.request
        app, key = operation.tags.get("app") or str(said.get("app", "")), str(said.get("key", ""))
        if isinstance(operation, op.Ask):
            return answers.rejected_ask(app, key, reason)
        return answers.rejected_allocation(app, key, reason)
    return None
