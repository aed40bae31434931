"""The nodes of a client: created, changed, drained and taken away in its own words."""

from dataclasses import replace

from rm_service.domain import answers
from rm_service.domain import client_operations as op
from rm_service.domain.accounts import Account
from rm_service.domain.amounts import NOTHING, Amounts
from rm_service.domain.application import HOLDING, State
from rm_service.domain.device_registration import register_devices
from rm_service.domain.devices import totals
from rm_service.domain.events import Kind
from rm_service.domain.lease import end
from rm_service.domain.node_life import (
    DRAINING,
    LOST,
    NOT_READY,
    find,
    next_target,
    not_own,
    set_room,
    unknown,
)
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.domain.registrations import Node
from rm_service.domain.view import View

_REASONS = {
    NOT_READY: "its resource manager says that it is not ready",
    DRAINING: "registered as draining",
}
RESOURCE_TYPE = "LoadInstance"
"""What the ledger's other doors show of a node whose client names no type."""


def create(view: View, operation: op.CreateNode) -> Outcome:
    """Take in a node; one that its client registered before and reports again keeps what runs there."""
    name, partition = operation.instance, operation.partition
    known = find(view, name, partition)
    if known is not None:
        node = known[1]
        owned = node.client == operation.client.id
        if not owned and not partition:
            return _take_part(view, operation, node)
        if not owned or (node.registration or 0) >= operation.client.registration:
            return Refused(Code.ID_REUSED, _exists(name, partition), label={"node": name})
    label_id = view.node_labels[partition, name]
    account, before = view.accounts[label_id], view.nodes.get(label_id)
    node = Node(
        label_id=label_id,
        instance=name,
        target=next_target(view) if before is None else before.target,
        resource_type=RESOURCE_TYPE,
        tags={"partition": partition} if partition else {},
        attributes=operation.attributes,
        devices=() if known is None else known[1].devices,
        registered_at=view.now if known is None else known[1].registered_at,
        partition=partition,
        client=operation.client.id,
        registration=operation.client.registration,
        reason=_REASONS.get(operation.closed or ""),
    )
    room = (_with_devices(account, operation.total), operation.occupied, operation.closed)
    set_room(
        view,
        account,
        node,
        Kind.NODE_REGISTERED,
        room,
        client=operation.client.id,
        answer=answers.accepted_node(name),
    )
    return Done(node=node, created=known is None)


def update(view: View, operation: op.UpdateNode) -> Outcome:
    """Take over what changed: the whole map of attributes, amounts that may fall below what is used."""
    found = find(view, operation.instance, operation.partition)
    if found is None:
        return unknown(operation.instance, operation.partition, operation.client)
    account, node = found
    if node.client != operation.client.id:
        return not_own(node)
    balance = account.balance
    attributes = node.attributes if operation.attributes is None else operation.attributes
    room = (
        _with_devices(account, (balance.total or NOTHING) if operation.total is None else operation.total),
        (balance.protected or {}) if operation.occupied is None else operation.occupied,
        _closed(balance.closed, ready=operation.ready),
    )
    reason = node.reason if room[2] == balance.closed else _REASONS.get(room[2] or "")
    changed = replace(node, attributes=attributes, reason=reason)
    if changed == node and room == (balance.total, balance.protected or {}, balance.closed):
        return Done(node=node, repeated=True)
    set_room(view, account, changed, Kind.NODE_REGISTERED, room)
    return Done(node=changed)


def decommission(view: View, operation: op.DecommissionNode) -> Outcome:
    """Take a node away: what runs there ends, its client is told."""
    found = find(view, operation.instance, operation.partition)
    if found is None:
        return unknown(operation.instance, operation.partition, operation.client)
    account, node = found
    if node.client != operation.client.id:
        return not_own(node)
    if operation.only_unreported and (node.registration or 0) >= operation.client.registration:
        return Done(node=node, repeated=True)
    view.set_room(account, account.balance.total, account.balance.protected, LOST)
    for application_id in view.lookup.tenants_of(node.label_id):
        application = view.applications[application_id]
        if application.state in HOLDING:
            end(view, application, State.LOST, f"Node {node.instance} Removed")
    register_devices(view, account, (), {})
    removed = replace(node, removed=True, deadline=None, devices=())
    set_room(view, account, removed, Kind.NODE_REMOVED, (None, None, None))
    return Done(node=removed)


def _take_part(view: View, operation: op.CreateNode, node: Node) -> Outcome:
    """One of the ledger's own nodes, which somebody else registered: it may be used, and stays as it is."""
    view.post(
        Kind.NODE_REGISTERED,
        node.instance,
        tags=node.tags,
        client=operation.client.id,
        answer=answers.accepted_node(node.instance),
    )
    return Done(node=node, repeated=True)


def _with_devices(account: Account, total: Amounts) -> Amounts:
    """What a client says that its node has, beside the devices: of these only their registration says it."""
    return {**total, **totals(account.balance.devices or ())}


def _closed(closed: str | None, *, ready: bool | None) -> str | None:
    """Draining goes before readiness: only its own word undoes it."""
    if ready is None or closed in {DRAINING, LOST}:
        return closed
    return None if ready else NOT_READY


def _exists(name: str, partition: str) -> str:
    return (
        "failure while adding new node, node rejected with error: \n"
        f"failed to add node {name} to partition {partition}, error: partition {partition} has an existing"
        f" node {name}, node name must be unique"
    )
