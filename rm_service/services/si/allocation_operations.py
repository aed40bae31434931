"""From what an RM says of asks, allocations and releases to the ledger's operations."""

from dataclasses import asdict

from rm_service.domain import answers
from rm_service.domain import operations as op
from rm_service.domain.amounts import PORT, Amounts
from rm_service.domain.queue_config import PartitionConfig
from rm_service.domain.selectors import SelectorError, one_of, parse_selector
from rm_service.domain.tags import Tags
from rm_service.ledger.ids import is_id, new_id
from rm_service.services.si.application_operations import adopted_application
from rm_service.services.si.clients import KnownClient
from rm_service.services.si.names import (
    CONTAINER_IMAGE,
    CONTAINER_PORTS,
    FOREIGN,
    NODE_SELECTOR,
    REQUIRED_NODE,
    allocation_name,
    application_name,
    outside_tags,
    partition_name,
    printable,
    resource_fault,
    tag_fault,
)
from rm_service.services.si.requests import MAX_TIMEOUT_MS, Ask, ExistingAllocation, Release

MAX_TAGS_TEXT = 65_536
"""The most characters that the tags of one ask have together; they come back with each of its allocations."""
MAX_TAGS_IN_ALL = 16 * 2**20
MAX_ALLOCATIONS = 10_000
"""The most that one ask may ask for."""
MILLISECOND = 1_000


class _RejectedError(ValueError):
    """Why an ask or an allocation cannot be."""


def ask(known: KnownClient, request: Ask, of_application: Tags) -> op.Ask | op.Tell:
    """The operation of an ask; `of_application` is what is known of the tags of its application."""
    try:
        return _ask(known, request, of_application)
    except _RejectedError as error:
        answer = answers.rejected_ask(request.application, request.key, str(error))
        return op.Tell(client=known.client, subject=printable(request.key), answer=answer)


def book_allocation(
    known: KnownClient, request: ExistingAllocation, of_application: Tags | None = None, partition: str = ""
) -> op.BookAllocation | op.Tell:
    """The operation of an allocation that runs; one that is foreign uses its node and nothing else."""
    try:
        return _book(known, request, of_application or {}, partition)
    except _RejectedError as error:
        answer = answers.rejected_allocation(request.application, request.key, str(error))
        return op.Tell(client=known.client, subject=printable(request.key), answer=answer)


def _ask(known: KnownClient, request: Ask, of_application: Tags) -> op.Ask:
    partition, config = _partition(known, request)
    app = request.application
    if not 0 < request.count <= MAX_ALLOCATIONS:
        raise _RejectedError(f"invalid ask added to app {app}: maxAllocations must be 1 to {MAX_ALLOCATIONS}")
    tags = _charged(known, request, partition, of_application)
    node = request.tags.get(REQUIRED_NODE)
    if node:
        tags["node"] = node
    return op.Ask(
        client=known.client,
        ids=tuple([new_id() for _ in range(request.count)]),
        name=allocation_name(partition, app, request.key),
        parent=application_name(partition, app) if app else None,
        tags=tags,
        resource=_with_ports(request),
        priority=_priority(request.priority, config),
        run_for=min(max(0, request.timeout_ms), MAX_TIMEOUT_MS) * MILLISECOND,
        placement=_placement(known, request, partition, config),
        request=_said(request),
    )


def _book(
    known: KnownClient, request: ExistingAllocation, of_application: Tags, of_node: str
) -> op.BookAllocation:
    partition, config = _partition(known, request, of_node)
    app = "" if FOREIGN in request.tags else request.application
    tags = _charged(known, request, partition, of_application if app else {})
    if not app:
        tags.pop("app", None)
    tags["node"] = request.node
    own_id = request.id if is_id(request.id) else new_id()
    said = _said(request)
    if not app and FOREIGN in request.tags:
        said["foreign"] = True
        said["app"] = request.application
    if not request.id:
        said["anonymous"] = True
    elif own_id != request.id:
        said["uuid"] = request.id
    placement, required_node = _once_more(known, request, partition, config)
    return op.BookAllocation(
        client=known.client,
        id=own_id,
        spare_id=new_id(),
        name=allocation_name(partition, app, request.key),
        parent=application_name(partition, app) if app else None,
        tags=tags,
        resource=_with_ports(request),
        priority=_priority(request.priority, config),
        request=said,
        placement=placement,
        required_node=required_node,
        adopt=adopted_application(known, app, request.queue, partition, config) if request.queue else None,
    )


def release(known: KnownClient, request: Release) -> op.ReleaseAllocation | op.Tell:
    """The operation of a release: by id, else by key, else all of the application."""
    if request.only_ask and not request.partition:
        reason = "an ask is released from a partition: partitionName is required"
        answer = answers.rejected_ask(request.application, request.key, reason)
        return op.Tell(client=known.client, subject=printable(request.key), answer=answer)
    partition = partition_name(known.client.id, request.partition)
    name = allocation_name(partition, request.application, request.key) if request.key else None
    return op.ReleaseAllocation(
        client=known.client,
        partition=partition,
        parent=application_name(partition, request.application) if request.application else None,
        name=name,
        id=request.id or None,
        termination=request.termination,
        only_ask=request.only_ask,
        spare_id=new_id(),
    )


def _partition(
    known: KnownClient, request: Ask | ExistingAllocation, otherwise: str = ""
) -> tuple[str, PartitionConfig]:
    partition, config = known.partition(request.partition or otherwise)
    if config is None:
        raise _RejectedError(
            f"Failed to find partition {partition}, for application {request.application}"
            f" and allocation {request.key}"
        )
    if not request.key:
        raise _RejectedError("an allocation needs a key")
    resource = request.resource or {}
    if any(amount < 0 for amount in resource.values()):
        raise _RejectedError("allocation contains negative resources")
    if not any(resource.values()):
        raise _RejectedError("allocation contains no resources")
    node = request.node if isinstance(request, ExistingAllocation) else request.tags.get(REQUIRED_NODE, "")
    fault = tag_fault(request.application, request.key, request.task_group, node) or resource_fault(*resource)
    if fault is not None:
        raise _RejectedError(fault)
    text = sum(len(key) + len(value) for key, value in request.tags.items())
    if text > MAX_TAGS_TEXT or (isinstance(request, Ask) and text * request.count > MAX_TAGS_IN_ALL):
        raise _RejectedError(f"tags are longer than {MAX_TAGS_TEXT} characters, or {MAX_TAGS_IN_ALL} in all")
    if not node and (isinstance(request, ExistingAllocation) or FOREIGN in request.tags):
        raise _RejectedError(f"node ID is empty for allocation {request.key}")
    return partition, config


def _charged(
    known: KnownClient, request: Ask | ExistingAllocation, partition: str, of_application: Tags
) -> dict[str, str]:
    tags = outside_tags(request.tags) if request.tags else {}
    tags["partition"] = partition
    tags["allocationKey"] = request.key
    if request.application:
        tags["app"] = request.application
    if request.task_group:
        tags["taskGroup"] = request.task_group
    if known.shares_nodes:
        tags["nodePool"] = "shared"
    for key in ("queue", "user", "group"):
        if key in of_application:
            tags[key] = of_application[key]
    return tags


def _once_more(
    known: KnownClient, request: ExistingAllocation, partition: str, config: PartitionConfig
) -> tuple[op.Placement | None, str | None]:
    """Where what runs may be if it is asked for again. What cannot be read of that is left aside."""
    node = request.tags.get(REQUIRED_NODE) or None
    if node is not None and tag_fault(node) is not None:
        return None, None
    try:
        return _placement(known, request, partition, config), node
    except _RejectedError:
        return None, node


def _placement(
    known: KnownClient, request: Ask | ExistingAllocation, partition: str, config: PartitionConfig
) -> op.Placement | None:
    """How a node is chosen; None where the one that is required is all that is said of nodes."""
    node, selector = request.tags.get(REQUIRED_NODE), request.tags.get(NODE_SELECTOR, "")
    if node and not selector:
        return None
    if selector:
        try:
            selector = str(parse_selector(selector))
            if node:
                selector = str(parse_selector(f"{selector},{one_of('node', node)}"))
        except SelectorError as error:
            raise _RejectedError(f"{NODE_SELECTOR}: {error}") from error
    sort = config.node_sort
    weights = tuple(sorted(sort.weights.items()))
    image = request.tags.get(CONTAINER_IMAGE, "")
    return op.Placement(selector, sort.order.value, known.node_partition(partition), weights, image)


def _with_ports(request: Ask | ExistingAllocation) -> Amounts:
    """What is asked for, with one of each port of its node that it wants for itself."""
    resource = request.resource or {}
    ports = request.tags.get(CONTAINER_PORTS)
    if not ports:
        return resource
    return {**resource, **{f"{PORT}{port}": 1 for port in _ports(ports)}}


def _ports(text: str) -> list[str]:
    """The numbers in a list like `8080, 9090/TCP`; a protocol is left aside, since a number is one port."""
    numbers = [part.partition("/")[0].strip() for part in text.split(",")]
    for number in numbers:
        if not (number.isascii() and number.isdecimal() and 0 < int(number[:9]) <= 65535):
            raise _RejectedError(f"{CONTAINER_PORTS}: {text[:60]!r} is no list of ports")
    return [str(int(number)) for number in numbers]


def _priority(priority: int | str, config: PartitionConfig) -> int:
    """One scale for numbers and the names of classes, higher first."""
    if isinstance(priority, int):
        return priority
    if priority not in config.priority_classes:
        raise _RejectedError(f"unknown priority class {priority[:40]!r}")
    return config.priority_classes[priority]


def _said(request: Ask | ExistingAllocation) -> dict[str, object]:
    """What of the request comes back with the allocation. A placeholder is one only in a task group."""
    said: dict[str, object] = {"key": request.key}
    if request.tags:
        said["tags"] = dict(request.tags)
    if request.placeholder and request.task_group:
        said["placeholder"] = True
    if request.originator:
        said["originator"] = True
    if request.preemption is not None:
        said["preemption"] = asdict(request.preemption)
    return said
