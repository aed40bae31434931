"""How each of the three dialects says the same things: methods, bodies of requests, lists of responses."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.si import answers as an
from tests.si.answers import Allocation
from tests.si.wire import Json

Request = tuple[str, Json]
"""A method and the body of its request, still without the rmID."""

CREATE, CREATE_DRAIN, UPDATE = "CREATE", "CREATE_DRAIN", "UPDATE"
DRAIN_NODE, DRAIN_TO_SCHEDULABLE, DECOMISSION = "DRAIN_NODE", "DRAIN_TO_SCHEDULABLE", "DECOMISSION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A stream: what is sent on it, what is received, and which lists of a response hold which answers."""

    request: str
    response: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What an RM says of a node. None: not said."""

    name: str
    action: str | int = CREATE
    resource: Mapping[str, int] | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    occupied: Mapping[str, int] | None = None
    existing: Sequence[Allocation] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What an RM wants. None: not said."""

    key: str
    app: str = ""
    resource: Mapping[str, int] | None = None
    count: int = 1
    priority: int | str | None = None
    timeout_ms: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)
    partition: str = ""


class Dialect(ABC):
    """One generation of the Scheduler Interface, from an RM's side."""

    name: str
    methods: Mapping[str, Method]
    rejected_ask = an.REJECTED_ASK
    """The kind of answer that rejects an ask."""
    first_termination = "UNKNOWN_TERMINATION_TYPE"
    """Number 0 of its termination types."""
    node_holds_allocations = True
    """Whether a node is registered together with what is known to run there."""
    node_holds_occupied = True
    allocation_has_id = True
    ask_has_timeout = True
    ask_has_count = True

    @abstractmethod
    def applications(self, new: Sequence[Json], removed: Sequence[Json]) -> Request: ...

    @abstractmethod
    def nodes(self, nodes: Sequence[Node]) -> Request: ...

    @abstractmethod
    def asks(self, asks: Sequence[Ask]) -> Request: ...

    @abstractmethod
    def releases(self, releases: Sequence[Json]) -> Request: ...

    @abstractmethod
    def ask_release(self, release: Json) -> Request:
        """To withdraw a pending ask, by application and key."""

    @abstractmethod
    def existing(self, allocations: Sequence[Allocation]) -> Request:
        """To report what runs without its node."""

    def allocation(self, each: Allocation) -> Json:
        """An allocation that the RM knows of, in this dialect."""
        known = {"UUID": each.id} if self.allocation_has_id else {}
        return known | {
            "allocationKey": each.key,
            "applicationID": each.app,
            "nodeID": each.node,
            "resourcePerAlloc": resource(each.resource),
            "allocationTags": dict(each.tags),
        }

    def release(self, *, app: str, key: str, id: str, termination: str | int, partition: str) -> Json:  # noqa: A002
        """The release of one allocation, or of all of an application when neither key nor id is given."""
        chosen = {"UUID": id} if self.allocation_has_id else {"allocationKey": key}
        said: Json = {"partitionName": partition, "applicationID": app, "terminationType": termination}
        return said | {name: value for name, value in chosen.items() if value}


class Old(Dialect):
    """One Update stream for everything."""

    name = "old"
    first_termination = "STOPPED_BY_RM"
    methods: Mapping[str, Method] = {
        "Update": Method(
            request="UpdateRequest",
            response="UpdateResponse",
            fields={
                "newAllocations": an.NEW,
                "releasedAllocations": an.RELEASED,
                "releasedAllocationAsks": an.RELEASED_ASK,
                "rejectedAllocations": an.REJECTED_ASK,
                "rejectedApplications": an.REJECTED_APPLICATION,
                "acceptedApplications": an.ACCEPTED_APPLICATION,
                "updatedApplications": an.UPDATED_APPLICATION,
                "rejectedNodes": an.REJECTED_NODE,
                "acceptedNodes": an.ACCEPTED_NODE,
            },
        )
    }

    def applications(self, new: Sequence[Json], removed: Sequence[Json]) -> Request:
        return "Update", {"newApplications": list(new), "removeApplications": list(removed)}

    def nodes(self, nodes: Sequence[Node]) -> Request:
        return "Update", {
            "newSchedulableNodes": [self._node(node) for node in nodes if node.action == CREATE],
            "updatedNodes": [
                {**self._node(node), "action": node.action} for node in nodes if node.action != CREATE
            ],
        }

    def asks(self, asks: Sequence[Ask]) -> Request:
        return "Update", {"asks": [{**_ask(ask), **_old_priority(ask)} for ask in asks]}

    def releases(self, releases: Sequence[Json]) -> Request:
        return "Update", {"releases": {"allocationsToRelease": list(releases)}}

    def ask_release(self, release: Json) -> Request:
        spelled = {"allocationkey" if name == "allocationKey" else name: release[name] for name in release}
        return "Update", {"releases": {"allocationAsksToRelease": [spelled]}}

    def existing(self, allocations: Sequence[Allocation]) -> Request:
        raise NotImplementedError("this dialect reports allocations with their node only")

    def _node(self, node: Node) -> Json:
        return _node(node) | _with_node(self, node)


class ThreeStreams(Dialect):
    """A stream each for allocations, applications and nodes."""

    def applications(self, new: Sequence[Json], removed: Sequence[Json]) -> Request:
        return "UpdateApplication", {"new": list(new), "remove": list(removed)}

    def nodes(self, nodes: Sequence[Node]) -> Request:
        said = [_node(node) | _with_node(self, node) | {"action": node.action} for node in nodes]
        return "UpdateNode", {"nodes": said}

    def releases(self, releases: Sequence[Json]) -> Request:
        return "UpdateAllocation", {"releases": {"allocationsToRelease": list(releases)}}

    def existing(self, allocations: Sequence[Allocation]) -> Request:
        return "UpdateAllocation", {"allocations": [self.allocation(each) for each in allocations]}


_APPLICATIONS_AND_NODES: Mapping[str, Method] = {
    "UpdateApplication": Method(
        request="ApplicationRequest",
        response="ApplicationResponse",
        fields={
            "rejected": an.REJECTED_APPLICATION,
            "accepted": an.ACCEPTED_APPLICATION,
            "updated": an.UPDATED_APPLICATION,
        },
    ),
    "UpdateNode": Method(
        request="NodeRequest",
        response="NodeResponse",
        fields={"rejected": an.REJECTED_NODE, "accepted": an.ACCEPTED_NODE},
    ),
}


class Seed(ThreeStreams):
    """Asks are apart from allocations, which have a UUID."""

    name = "seed"
    methods: Mapping[str, Method] = {
        **_APPLICATIONS_AND_NODES,
        "UpdateAllocation": Method(
            request="AllocationRequest",
            response="AllocationResponse",
            fields={
                "new": an.NEW,
                "released": an.RELEASED,
                "releasedAsks": an.RELEASED_ASK,
                "rejected": an.REJECTED_ASK,
                "rejectedAllocations": an.REJECTED_ALLOCATION,
            },
        ),
    }

    def asks(self, asks: Sequence[Ask]) -> Request:
        said = [{**_ask(ask), **_priority(ask)} for ask in asks]
        return "UpdateAllocation", {"asks": said}

    def ask_release(self, release: Json) -> Request:
        return "UpdateAllocation", {"releases": {"allocationAsksToRelease": [release]}}


class Newest(ThreeStreams):
    """An ask is an allocation without a node; the key is its identity."""

    name = "newest"
    rejected_ask = an.REJECTED_ALLOCATION
    node_holds_allocations = False
    node_holds_occupied = False
    allocation_has_id = False
    ask_has_timeout = False
    ask_has_count = False
    methods: Mapping[str, Method] = {
        **_APPLICATIONS_AND_NODES,
        "UpdateAllocation": Method(
            request="AllocationRequest",
            response="AllocationResponse",
            fields={
                "new": an.NEW,
                "released": an.RELEASED,
                "rejectedAllocations": an.REJECTED_ALLOCATION,
            },
        ),
    }

    def asks(self, asks: Sequence[Ask]) -> Request:
        return "UpdateAllocation", {"allocations": [self._ask(ask) for ask in asks]}

    def ask_release(self, release: Json) -> Request:
        return self.releases([release])

    def _ask(self, ask: Ask) -> Json:
        if ask.count != 1 or ask.timeout_ms:
            raise NotImplementedError("an ask of this dialect is one allocation, and has no timeout")
        return {
            "allocationKey": ask.key,
            "applicationID": ask.app,
            "partitionName": ask.partition,
            "allocationTags": dict(ask.tags),
            **({} if ask.resource is None else {"resourcePerAlloc": resource(ask.resource)}),
            **_priority(ask),
        }


DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (Old(), Seed(), Newest())}


def resource(amounts: Mapping[str, int]) -> Json:
    """Amounts as a Resource."""
    return {"resources": {name: {"value": amount} for name, amount in amounts.items()}}


def _ask(ask: Ask) -> Json:
    body: Json = {
        "allocationKey": ask.key,
        "applicationID": ask.app,
        "partitionName": ask.partition,
        "maxAllocations": ask.count,
        "executionTimeoutMilliSeconds": ask.timeout_ms,
        "tags": dict(ask.tags),
    }
    return body if ask.resource is None else body | {"resourceAsk": resource(ask.resource)}


def _priority(ask: Ask) -> Json:
    return {} if ask.priority is None else {"priority": ask.priority}


def _old_priority(ask: Ask) -> Json:
    if ask.priority is None:
        return {}
    name = "priorityClassName" if isinstance(ask.priority, str) else "priorityValue"
    return {"priority": {name: ask.priority}}


def _node(node: Node) -> Json:
    body: Json = {"nodeID": node.name, "attributes": dict(node.attributes)}
    return body if node.resource is None else body | {"schedulableResource": resource(node.resource)}


def _with_node(dialect: Dialect, node: Node) -> Json:
    """What runs there and what others occupy, where the dialect says it with the node."""
    body: Json = {}
    if node.existing:
        if not dialect.node_holds_allocations:
            raise NotImplementedError("this dialect reports allocations apart from their node")
        body["existingAllocations"] = [dialect.allocation(each) for each in node.existing]
    if node.occupied is not None:
        if not dialect.node_holds_occupied:
            raise NotImplementedError("this dialect reports foreign allocations instead")
        body["occupiedResource"] = resource(node.occupied)
    return body
