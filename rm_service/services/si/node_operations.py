"""From what an RM says of its nodes to the ledger's operations."""

from rm_service.domain import answers
from rm_service.domain import operations as op
from rm_service.domain.amounts import Amounts
from rm_service.domain.node_life import DRAINING, NOT_READY
from rm_service.ledger.batch import Group
from rm_service.services.si.allocation_operations import book_allocation
from rm_service.services.si.clients import KnownClient
from rm_service.services.si.names import printable, resource_fault, tag_fault
from rm_service.services.si.requests import Dialect, NodeAction, NodeChange

PARTITION = "si/node-partition"
READY = "ready"


def node_groups(known: KnownClient, change: NodeChange, dialect: Dialect) -> list[Group]:
    """What to do about a node, with what runs there.

    For an old RM a node stands or falls with its allocations; for the newer ones each stands for itself.
    """
    operation = _operation(known, change)
    if isinstance(operation, op.Tell):
        return [Group([operation])]
    existing = [
        book_allocation(known, allocation, partition=change.attributes.get(PARTITION, ""))
        for allocation in change.existing
    ]
    if dialect is not Dialect.OLD or not existing:
        return [Group([operation, *existing])]
    for booked in existing:
        if isinstance(booked, op.Tell):
            return [Group([_rejected(known, change.node, str(booked.answer["reason"]))])]
    return [Group([operation, *existing], atomic=True)]


def _operation(known: KnownClient, change: NodeChange) -> op.DecidedOperation:
    partition, config = known.partition(change.attributes.get(PARTITION, ""))
    reason = _fault(change)
    if config is None:
        reason = f"failed to find partition {partition} for new node {change.node}"
    if reason is not None:
        return _rejected(known, change.node, reason)
    return _change(known, change, known.node_partition(partition))


def _change(known: KnownClient, change: NodeChange, partition: str) -> op.DecidedOperation:
    client, node = known.client, change.node
    operation: op.DecidedOperation
    match change.action:
        case NodeAction.CREATE | NodeAction.CREATE_DRAIN:
            operation = op.CreateNode(
                client=client,
                instance=node,
                partition=partition,
                total=change.schedulable or {},
                occupied=change.occupied or {},
                attributes=change.attributes,
                closed=_closed(change),
            )
        case NodeAction.UPDATE:
            operation = op.UpdateNode(
                client=client,
                instance=node,
                partition=partition,
                total=change.schedulable,
                occupied=change.occupied,
                attributes=change.attributes or None,
                ready=_ready(change),
            )
        case NodeAction.DRAIN_NODE:
            operation = op.DrainNode(node, "drained by its resource manager", partition, client)
        case NodeAction.DRAIN_TO_SCHEDULABLE:
            operation = op.UndrainNode(node, partition, client)
        case NodeAction.DECOMISSION:
            operation = op.DecommissionNode(client=client, instance=node, partition=partition)
        case NodeAction.UNKNOWN:
            operation = _rejected(known, node, "unknown action")
    return operation


def _fault(change: NodeChange) -> str | None:
    if not change.node:
        return "a node needs an ID"
    if "/" in change.node:
        return "a node's ID holds no '/'"
    for field, amounts in (
        ("schedulableResource", change.schedulable),
        ("occupiedResource", change.occupied),
    ):
        if _negative(amounts):
            return f"{field} contains negative resources"
    if sum(len(key) + len(value) for key, value in change.attributes.items()) > MAX_ATTRIBUTES_TEXT:
        return f"attributes are longer than {MAX_ATTRIBUTES_TEXT} characters"
    return tag_fault(change.node) or resource_fault(*(change.schedulable or {}), *(change.occupied or {}))


MAX_ATTRIBUTES_TEXT = 262_144


def _negative(amounts: Amounts | None) -> bool:
    return any(amount < 0 for amount in (amounts or {}).values())


def _ready(change: NodeChange) -> bool | None:
    """What the attribute `ready` says; None when nothing is said."""
    said = change.attributes.get(READY)
    return None if said is None else said.lower() == "true"


def _closed(change: NodeChange) -> str | None:
    if change.action is NodeAction.CREATE_DRAIN:
        return DRAINING
    return NOT_READY if _ready(change) is False else None


def _rejected(known: KnownClient, node: str, reason: str) -> op.Tell:
    return op.Tell(client=known.client, subject=printable(node), answer=answers.rejected_node(node, reason))
