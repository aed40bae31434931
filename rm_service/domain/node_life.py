"""A node's life: registered, alive, draining, lost, removed."""

from contextlib import suppress
from dataclasses import replace

from rm_service.domain import operations as op
from rm_service.domain.accounts import Account
from rm_service.domain.amounts import AmountOverflowError, Amounts
from rm_service.domain.answers import Answer
from rm_service.domain.application import SECOND, State
from rm_service.domain.class_book import MAX_SIGNATURES
from rm_service.domain.clients import Client
from rm_service.domain.device_registration import register_devices
from rm_service.domain.devices import of_registered, totals, with_taken
from rm_service.domain.events import Kind
from rm_service.domain.lease import book_use
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.domain.registrations import Node
from rm_service.domain.view import View

DRAINING = "draining"
LOST = "lost"
NOT_READY = "not_ready"
"""Why a node takes nothing new whose client says that it is not ready."""


def register(view: View, operation: op.RegisterNode) -> Outcome:
    """Register a node or what changed of it. What runs stays booked; a lost node takes its place again."""
    label_id = view.node_labels[operation.partition, operation.instance]
    account, known = view.accounts[label_id], view.nodes.get(label_id)
    is_new = known is None or known.removed
    closed = account.balance.closed if not is_new and account.balance.closed == DRAINING else None
    node = Node(
        label_id=account.label.id,
        instance=operation.instance,
        target=next_target(view) if known is None else known.target,
        resource_type=operation.resource_type,
        tags=operation.tags,
        attributes=operation.attributes,
        devices=tuple(operation.devices),
        registered_at=view.now if known is None or known.removed else known.registered_at,
        reason=known.reason if known is not None and closed else None,
        partition=operation.partition,
        client=None if known is None or known.removed else known.client,
        registration=None if known is None or known.removed else known.registration,
    )
    if known is not None and not is_new and account.balance.closed != LOST:
        node = replace(node, last_heartbeat=known.last_heartbeat, deadline=known.deadline)
    unchanged = known == node
    registered, signatures = of_registered(operation.devices)
    if view.lookup.classes().too_many(signatures):
        reason = f"all devices would have more than {MAX_SIGNATURES} different sets of attributes"
        return Refused(Code.TOO_MANY_SIGNATURES, reason, field="devices")
    devices = with_taken(registered, account.balance.devices or ())
    room = ({**operation.total, **totals(devices)}, operation.protected, closed)
    if not unchanged or room != (account.balance.total, account.balance.protected, account.balance.closed):
        register_devices(view, account, devices, signatures)
        set_room(view, account, node, Kind.NODE_REGISTERED, room)
    view.put_node(node)
    _rebook(view, operation, account.label.id)
    return Done(node=node, created=is_new)


def heartbeat(view: View, operation: op.HeartbeatNode) -> Outcome:
    """Note a sign of life: no event, only the time of the next one that is due."""
    found = find(view, operation.instance, operation.partition)
    if found is None:
        return unknown(operation.instance, operation.partition)
    account, node = found
    if account.balance.closed == LOST:
        return Refused(Code.NODE_LOST, f"node {operation.instance} is lost: it has to register again")
    deadline = view.now + operation.deadline_seconds * SECOND
    alive = replace(node, last_heartbeat=view.now, deadline=deadline)
    view.put_node(alive)
    return Done(node=alive)


def drain(view: View, operation: op.DrainNode) -> Outcome:
    """Take nothing new from now on."""
    found = find(view, operation.instance, operation.partition)
    if found is None:
        return unknown(operation.instance, operation.partition, operation.client)
    if operation.client is not None and found[1].client != operation.client.id:
        return not_own(found[1])
    return _close(view, found, Kind.NODE_DRAINING, DRAINING, operation.reason)


def undrain(view: View, operation: op.UndrainNode) -> Outcome:
    """Take new work again, and let those who wait for this node look."""
    found = find(view, operation.instance, operation.partition)
    if found is None:
        return unknown(operation.instance, operation.partition, operation.client)
    if operation.client is not None and found[1].client != operation.client.id:
        return not_own(found[1])
    if operation.client is not None and found[0].balance.closed != DRAINING:
        return Refused(Code.NODE_NOT_SCHEDULABLE, f"node {operation.instance} is not draining")
    said = str(found[1].attributes.get("ready", "true")).lower()
    closed = NOT_READY if found[1].client is not None and said != "true" else None
    return _close(view, found, Kind.NODE_UNDRAINED, closed, None)


def lose(view: View, operation: op.LoseNode) -> Outcome:
    """Close a node for good; what it holds is given back by operations that follow."""
    found = find(view, operation.instance, operation.partition)
    if found is None:
        return unknown(operation.instance, operation.partition)
    account, node = found
    silent = node.deadline is not None and view.now >= node.deadline
    if account.balance.closed == LOST or (operation.only_if_silent and not silent):
        return Done(node=node, repeated=True)
    lost = replace(node, reason=operation.reason, deadline=None)
    set_room(
        view,
        account,
        lost,
        Kind.NODE_LOST,
        (account.balance.total or {}, account.balance.protected or {}, LOST),
    )
    return Done(node=lost)


def remove(view: View, operation: op.RemoveNode) -> Outcome:
    """Take the registration away. Its number stays its own if it ever comes back."""
    found = find(view, operation.instance, operation.partition)
    if found is None:
        return unknown(operation.instance, operation.partition)
    account, node = found
    if account.balance.applications:
        held = account.balance.applications
        return Refused(Code.NODE_IN_USE, f"{held} applications still hold something on {operation.instance}")
    removed = replace(node, removed=True, deadline=None, devices=())
    register_devices(view, account, (), {})
    set_room(view, account, removed, Kind.NODE_REMOVED, (None, None, None))
    return Done(node=removed)


def _close(
    view: View, found: tuple[Account, Node], kind: Kind, closed: str | None, reason: str | None
) -> Outcome:
    account, node = found
    balance = account.balance
    if balance.closed == LOST:
        return Refused(Code.NODE_LOST, f"node {node.instance} is lost: it has to register again")
    if balance.closed == closed and node.reason == reason:
        return Done(node=node, repeated=True)
    changed = replace(node, reason=reason)
    set_room(view, account, changed, kind, (balance.total or {}, balance.protected or {}, closed))
    return Done(node=changed)


def set_room(
    view: View,
    account: Account,
    node: Node,
    kind: Kind,
    room: tuple[Amounts | None, Amounts | None, str | None],
    client: str | None = None,
    answer: Answer | None = None,
) -> None:
    """Set what the node has and whether it takes new work, with the event that says so."""
    total, protected, closed = room
    view.set_room(account, total, protected, closed)
    detail: dict[str, object] = {"total": total, "protected": protected, "closed": closed}
    if node.reason is not None:
        detail["reason"] = node.reason
    view.post(
        kind,
        node.instance,
        label_ids=(account.label.id,),
        tags=node.tags,
        detail=detail,
        client=client,
        answer=answer,
    )
    view.put_node(node)
    if closed is None and total is not None:
        view.freed((account.label.id,))


def _rebook(view: View, operation: op.RegisterNode, label_id: int) -> None:
    """Book again what the node reports as running and the ledger had given up as lost."""
    for application_id in operation.applications:
        application = view.applications.get(application_id)
        if application is None or application.client is not None:
            continue
        if application.state is State.LOST and label_id in application.label_ids:
            with suppress(AmountOverflowError):  # beyond 64 bits nothing can be booked: it stays lost
                book_use(view, application, application.resource, report=True)


def next_target(view: View) -> int:
    view.targets += 1
    return view.targets


def find(view: View, instance: str, partition: str = "") -> tuple[Account, Node] | None:
    """A registered node and its account."""
    label_id = view.node_labels.get((partition, instance))
    node = None if label_id is None else view.nodes.get(label_id)
    return None if node is None or node.removed else (view.accounts[node.label_id], node)


def not_own(node: Node) -> Refused:
    """The refusal for a client that would change a node of somebody else."""
    return Refused(Code.WRONG_NODE, f"node {node.instance} was not registered by this resource manager")


def unknown(instance: str, partition: str = "", client: Client | None = None) -> Refused:
    """The refusal for a node that is not there, in the words of whoever asks."""
    label = {"node": instance, "partition": partition} if partition else {"node": instance}
    detail = f"no node {instance} is registered"
    if client is not None:
        detail = f"failed to find node {instance} in partition {partition}"
    return Refused(Code.UNKNOWN_NODE, detail, label=label)
