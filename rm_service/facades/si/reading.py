"""Messages of resource managers, read into requests that all dialects share.

Nothing is judged here and nothing raises: an unknown partition, a negative amount or an ask of nothing is for
the service to answer. Numbers that an enum does not have become UNKNOWN, and are logged.
"""

from collections.abc import Iterable, Mapping

from rm_service.domain.amounts import Amounts
from rm_service.facades.si.proto import si_pb2 as si
from rm_service.facades.si.proto import si_v0_pb2 as si_v0
from rm_service.facades.si.unknown_numbers import UnknownNumbers
from rm_service.services.si.requests import (
    Ask,
    Dialect,
    ExistingAllocation,
    NewApplication,
    NodeAction,
    NodeChange,
    Preemption,
    Registration,
    Release,
    RemovedApplication,
    Termination,
    Update,
)

Request = si.AllocationRequest | si.ApplicationRequest | si.NodeRequest | si_v0.UpdateRequest

_UNKNOWN = UnknownNumbers()

FOREIGN = "foreign"
"""The allocation tag of what somebody else runs on a node (newest dialect)."""


def dialect_of(message: Request) -> Dialect | None:
    """The dialect that a message shows by what it uses, or None if it could be of several.

    An RM that never shows anything speaks the newest one.
    """
    if isinstance(message, si_v0.UpdateRequest):
        return Dialect.OLD
    if isinstance(message, si.AllocationRequest):
        return _dialect_of_allocations(message)
    if isinstance(message, si.NodeRequest) and any(
        node.HasField("occupiedResource") or node.existingAllocations for node in message.nodes
    ):
        return Dialect.SEED
    return None


def _dialect_of_allocations(message: si.AllocationRequest) -> Dialect | None:
    releases = message.releases
    if (
        message.asks
        or releases.allocationAsksToRelease
        or any(release.UUID for release in releases.allocationsToRelease)
        or any(allocation.UUID for allocation in message.allocations)
    ):
        return Dialect.SEED
    # What ran before had to have an identity until asks became allocations.
    if any(not allocation.allocationID for allocation in message.allocations):
        return Dialect.NEWEST
    return None


def read_registration(
    message: si.RegisterResourceManagerRequest | si_v0.RegisterResourceManagerRequest,
) -> Registration:
    if isinstance(message, si_v0.RegisterResourceManagerRequest):
        return Registration(rm_id=message.rmID, version=message.version, policy_group=message.policyGroup)
    return Registration(
        rm_id=message.rmID,
        version=message.version,
        policy_group=message.policyGroup,
        build_info=dict(message.buildInfo),
        config=message.config,
        extra_config=dict(message.extraConfig),
    )


def read_allocations(message: si.AllocationRequest, dialect: Dialect) -> Update:
    """In the newest dialect an allocation without a node is an ask, unless somebody else runs it."""
    asks = [_ask(ask) for ask in message.asks]
    existing = []
    newest = dialect is Dialect.NEWEST
    for allocation in message.allocations:
        if newest and not allocation.nodeID and FOREIGN not in allocation.allocationTags:
            asks.append(_ask_of_allocation(allocation))
        else:
            existing.append(_existing(allocation))
    return Update(
        rm_id=message.rmID,
        dialect=dialect,
        allocations=tuple(existing),
        asks=tuple(asks),
        releases=tuple(_releases(message.releases, message.rmID)),
    )


def read_applications(message: si.ApplicationRequest, dialect: Dialect) -> Update:
    return Update(
        rm_id=message.rmID,
        dialect=dialect,
        applications=tuple(map(_application, message.new)),
        removals=tuple(map(_removal, message.remove)),
    )


def read_nodes(message: si.NodeRequest, dialect: Dialect) -> Update:
    nodes = tuple(_node(node, message.rmID) for node in message.nodes)
    return Update(rm_id=message.rmID, dialect=dialect, nodes=nodes)


def read_old_update(message: si_v0.UpdateRequest) -> Update:
    new_nodes = [_old_node(node, NodeAction.CREATE) for node in message.newSchedulableNodes]
    changes = [_old_node(node, _action(node, _OLD_ACTIONS, message.rmID)) for node in message.updatedNodes]
    return Update(
        rm_id=message.rmID,
        dialect=Dialect.OLD,
        applications=tuple(map(_application, message.newApplications)),
        nodes=(*new_nodes, *changes),
        asks=tuple(map(_old_ask, message.asks)),
        releases=tuple(_old_releases(message.releases, message.rmID)),
        removals=tuple(map(_removal, message.removeApplications)),
    )


# ---- amounts, applications -------------------------------------------------------------------------------


def _amounts(resource: si.Resource | si_v0.Resource) -> Amounts:
    quantities = resource.resources
    return {name: quantities[name].value for name in sorted(quantities)}


def _application(message: si.AddApplicationRequest | si_v0.AddApplicationRequest) -> NewApplication:
    return NewApplication(
        application=message.applicationID,
        queue=message.queueName,
        partition=message.partitionName,
        user=message.ugi.user,
        groups=tuple(message.ugi.groups),
        tags=dict(message.tags.items()),
        timeout_ms=message.executionTimeoutMilliSeconds,
        placeholder_ask=_amounts(message.placeholderAsk),
        gang_style=message.gangSchedulingStyle,
    )


def _removal(message: si.RemoveApplicationRequest | si_v0.RemoveApplicationRequest) -> RemovedApplication:
    return RemovedApplication(application=message.applicationID, partition=message.partitionName)


# ---- asks and allocations --------------------------------------------------------------------------------


def _ask(message: si.AllocationAsk) -> Ask:
    return Ask(
        key=message.allocationKey,
        application=message.applicationID,
        partition=message.partitionName,
        resource=_amounts(message.resourceAsk) if message.HasField("resourceAsk") else None,
        count=message.maxAllocations,
        priority=message.priority,
        timeout_ms=message.executionTimeoutMilliSeconds,
        tags=dict(message.tags.items()),
        task_group=message.taskGroupName,
        placeholder=message.placeholder,
        originator=message.Originator,
        preemption=_preemption(message),
    )


def _ask_of_allocation(message: si.Allocation) -> Ask:
    return Ask(
        key=message.allocationKey,
        application=message.applicationID,
        partition=message.partitionName,
        resource=_amounts(message.resourcePerAlloc) if message.HasField("resourcePerAlloc") else None,
        priority=message.priority,
        tags=dict(message.allocationTags.items()),
        task_group=message.taskGroupName,
        placeholder=message.placeholder,
        originator=message.originator,
        preemption=_preemption(message),
    )


def _old_ask(message: si_v0.AllocationAsk) -> Ask:
    return Ask(
        key=message.allocationKey,
        application=message.applicationID,
        partition=message.partitionName,
        resource=_amounts(message.resourceAsk) if message.HasField("resourceAsk") else None,
        count=message.maxAllocations,
        priority=_old_priority(message.priority),
        timeout_ms=message.executionTimeoutMilliSeconds,
        tags=dict(message.tags.items()),
        task_group=message.taskGroupName,
        placeholder=message.placeholder,
    )


def _existing(message: si.Allocation, node: str = "") -> ExistingAllocation:
    """`node` is where it runs if the allocation itself does not say."""
    return ExistingAllocation(
        key=message.allocationKey,
        node=message.nodeID or node,
        application=message.applicationID,
        partition=message.partitionName,
        id=message.UUID or message.allocationID,
        resource=_amounts(message.resourcePerAlloc) if message.HasField("resourcePerAlloc") else None,
        priority=message.priority,
        tags=dict(message.allocationTags.items()),
        task_group=message.taskGroupName,
        placeholder=message.placeholder,
        originator=message.originator,
        preemption=_preemption(message),
        queue=message.queueName,
    )


def _old_existing(message: si_v0.Allocation, node: str) -> ExistingAllocation:
    return ExistingAllocation(
        key=message.allocationKey,
        node=message.nodeID or node,
        application=message.applicationID,
        partition=message.partitionName,
        id=message.UUID,
        resource=_amounts(message.resourcePerAlloc) if message.HasField("resourcePerAlloc") else None,
        priority=_old_priority(message.priority),
        tags=dict(message.allocationTags.items()),
        task_group=message.taskGroupName,
        placeholder=message.placeholder,
        queue=message.queueName,
    )


def _preemption(message: si.AllocationAsk | si.Allocation) -> Preemption | None:
    if not message.HasField("preemptionPolicy"):
        return None
    policy = message.preemptionPolicy
    return Preemption(allow_self=policy.allowPreemptSelf, allow_other=policy.allowPreemptOther)


def _old_priority(priority: si_v0.Priority) -> int | str:
    return priority.priorityClassName or priority.priorityValue


# ---- releases --------------------------------------------------------------------------------------------


def _releases(message: si.AllocationReleasesRequest, rm_id: str) -> Iterable[Release]:
    for release in message.allocationsToRelease:
        yield Release(
            application=release.applicationID,
            key=release.allocationKey,
            id=release.UUID or release.allocationID,
            partition=release.partitionName,
            termination=_termination(release, _TERMINATIONS, rm_id),
            message=release.message,
        )
    for ask in message.allocationAsksToRelease:
        yield Release(
            application=ask.applicationID,
            key=ask.allocationKey,
            partition=ask.partitionName,
            termination=_termination(ask, _TERMINATIONS, rm_id),
            message=ask.message,
            only_ask=True,
        )


def _old_releases(message: si_v0.AllocationReleasesRequest, rm_id: str) -> Iterable[Release]:
    for release in message.allocationsToRelease:
        yield Release(
            application=release.applicationID,
            id=release.UUID,
            partition=release.partitionName,
            termination=_termination(release, _OLD_TERMINATIONS, rm_id),
            message=release.message,
        )
    for ask in message.allocationAsksToRelease:
        yield Release(
            application=ask.applicationID,
            key=ask.allocationkey,
            partition=ask.partitionName,
            termination=_termination(ask, _OLD_TERMINATIONS, rm_id),
            message=ask.message,
            only_ask=True,
        )


# ---- nodes -----------------------------------------------------------------------------------------------


def _node(message: si.NodeInfo, rm_id: str) -> NodeChange:
    node = message.nodeID
    return NodeChange(
        node=node,
        action=_action(message, _ACTIONS, rm_id),
        attributes=dict(message.attributes.items()),
        schedulable=_amounts(message.schedulableResource)
        if message.HasField("schedulableResource")
        else None,
        occupied=_amounts(message.occupiedResource) if message.HasField("occupiedResource") else None,
        existing=tuple(_existing(allocation, node) for allocation in message.existingAllocations),
    )


def _old_node(message: si_v0.NewNodeInfo | si_v0.UpdateNodeInfo, action: NodeAction) -> NodeChange:
    node = message.nodeID
    running = message.existingAllocations if isinstance(message, si_v0.NewNodeInfo) else ()
    return NodeChange(
        node=node,
        action=action,
        attributes=dict(message.attributes.items()),
        schedulable=_amounts(message.schedulableResource)
        if message.HasField("schedulableResource")
        else None,
        occupied=_amounts(message.occupiedResource) if message.HasField("occupiedResource") else None,
        existing=tuple(_old_existing(allocation, node) for allocation in running),
    )


# ---- enums, by name: numbers mean different things in different dialects ---------------------------------


def _termination(
    release: si.AllocationRelease
    | si.AllocationAskRelease
    | si_v0.AllocationRelease
    | si_v0.AllocationAskRelease,
    known: Mapping[int, Termination],
    rm_id: str,
) -> Termination:
    found = known.get(release.terminationType)
    if found is None:
        _UNKNOWN.note(release, "terminationType", rm_id)
        return Termination.UNKNOWN
    return found


def _action(
    node: si.NodeInfo | si_v0.UpdateNodeInfo, known: Mapping[int, NodeAction], rm_id: str
) -> NodeAction:
    found = known.get(node.action)
    if found is None:
        _UNKNOWN.note(node, "action", rm_id)
        return NodeAction.UNKNOWN
    return found


_TERMINATIONS: Mapping[int, Termination] = {
    number: Termination(name) for name, number in si.TerminationType.items()
}
_OLD_TERMINATIONS: Mapping[int, Termination] = {
    number: Termination(name) for name, number in si_v0.TerminationType.items()
}
_ACTIONS: Mapping[int, NodeAction] = {
    number: NodeAction(name) for name, number in si.NodeInfo.ActionFromRM.items()
}
_OLD_ACTIONS: Mapping[int, NodeAction] = {
    number: NodeAction(name) for name, number in si_v0.UpdateNodeInfo.ActionFromRM.items()
}
