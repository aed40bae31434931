"""Nodes over HTTP: registered, alive, drained, removed, looked up."""

from dataclasses import dataclass

from rm_service.domain import operations as op
from rm_service.domain.outcomes import Code, Outcome, Refused
from rm_service.facades.http.answer_schemas import NodeSchema as NodeAnswer
from rm_service.facades.http.answer_schemas import NodesSchema
from rm_service.facades.http.device_answer_schemas import AssignmentsSchema
from rm_service.facades.http.device_rendering import assignments_document
from rm_service.facades.http.endpoints import Call, Endpoint, Reply, refusal
from rm_service.facades.http.paths import instance
from rm_service.facades.http.problems import ProblemError
from rm_service.facades.http.rendering import node_document, page_document
from rm_service.facades.http.request_schemas import (
    DrainSchema,
    EmptySchema,
    NodeSchema,
    PartitionQuery,
    SelectorQuery,
)
from rm_service.services.nodes import Nodes

_GROUP = "Nodes"
_EXAMPLE = {
    "resource_type": "LoadInstance",
    "total": {"memory": "64Gi", "vcore": 32000, "instances": 50},
    "protected": {"memory": "2Gi"},
    "tags": {"zone": "a"},
    "attributes": {"gpu": "T4"},
    "devices": [{"name": "gpu0", "count": 1, "attributes": {"Kind": "nvidia-gpu", "memory": "30G"}}],
}


@dataclass(frozen=True, slots=True)
class NodeEndpoints:
    """The handlers. A change is answered with the node as it is afterwards."""

    nodes: Nodes

    def register(self, call: Call) -> Reply:
        """201 registered, 200 updated."""
        body = call.body
        operation = op.RegisterNode(
            instance=instance(call),
            resource_type=body["resource_type"].value,
            total=body["total"],
            protected=body["protected"],
            tags=body["tags"],
            attributes=body["attributes"],
            devices=body["devices"],
            applications=tuple(body["applications"]),
        )
        return self._reply(call, self.nodes.register(operation))

    def heartbeat(self, call: Call) -> Reply:
        """A sign of life."""
        return self._reply(call, self.nodes.heartbeat(instance(call), call.query["partition"]))

    def drain(self, call: Call) -> Reply:
        """Nothing new from now on."""
        outcome = self.nodes.drain(instance(call), call.body.get("reason"), call.query["partition"])
        return self._reply(call, outcome)

    def undrain(self, call: Call) -> Reply:
        """New work again."""
        return self._reply(call, self.nodes.undrain(instance(call), call.query["partition"]))

    def remove(self, call: Call) -> Reply:
        """204 once nothing is held there any more."""
        outcome = self.nodes.remove(instance(call), call.query["partition"])
        return refusal(outcome) if isinstance(outcome, Refused) else Reply(204)

    def read(self, call: Call) -> Reply:
        """One node."""
        return self._read(call, 200)

    def assignments(self, call: Call) -> Reply:
        """What its agent is to set up."""
        name = instance(call)
        found = self.nodes.assignments(name, call.query["partition"])
        if found is None:
            raise ProblemError(Code.UNKNOWN_NODE, f"no node {name} is registered")
        return Reply(200, assignments_document(found))

    def list(self, call: Call) -> Reply:
        """A page of nodes."""
        page = self.nodes.page(call.query["selector"], call.query["limit"], call.query.get("cursor"))
        return Reply(200, page_document(map(node_document, page.items), page.next_cursor))

    def _reply(self, call: Call, outcome: Outcome) -> Reply:
        if isinstance(outcome, Refused):
            return refusal(outcome)
        return self._read(call, 201 if outcome.created else 200)

    def _read(self, call: Call, status: int) -> Reply:
        name = instance(call)
        record = self.nodes.read(name, call.query.get("partition", ""))
        if record is None:
            raise ProblemError(Code.UNKNOWN_NODE, f"no node {name} is registered")
        return Reply(status, node_document(record))


def endpoints(handlers: NodeEndpoints) -> list[Endpoint]:
    """The rows of the table."""
    node = NodeAnswer()
    one = "/nodes/{instance}"
    changed = (Code.UNKNOWN_NODE, Code.NODE_LOST)
    return [
        Endpoint(
            "PUT",
            one,
            handlers.register,
            "Register a node, or what changed of it",
            _GROUP,
            {201: node, 200: node},
            body=NodeSchema(),
            example=_EXAMPLE,
            problems=(Code.OVERFLOW,),
        ),
        Endpoint(
            "GET", "/nodes", handlers.list, "List nodes", _GROUP, {200: NodesSchema()}, query=SelectorQuery()
        ),
        Endpoint(
            "GET",
            one,
            handlers.read,
            "One node",
            _GROUP,
            {200: node},
            query=PartitionQuery(),
            problems=(Code.UNKNOWN_NODE,),
        ),
        Endpoint(
            "GET",
            f"{one}/assignments",
            handlers.assignments,
            "Who holds which devices of a node; as text/event-stream again whenever that changes",
            _GROUP,
            {200: AssignmentsSchema()},
            query=PartitionQuery(),
            problems=(Code.UNKNOWN_NODE,),
        ),
        Endpoint(
            "DELETE",
            one,
            handlers.remove,
            "Remove a node; what ran there is lost and given back",
            _GROUP,
            {204: None},
            query=PartitionQuery(),
            problems=(Code.UNKNOWN_NODE, Code.NODE_IN_USE),
        ),
        Endpoint(
            "POST",
            f"{one}/heartbeat",
            handlers.heartbeat,
            "A sign of life",
            _GROUP,
            {200: node},
            query=PartitionQuery(),
            body=EmptySchema(),
            body_needed=False,
            problems=changed,
        ),
        Endpoint(
            "POST",
            f"{one}/drain",
            handlers.drain,
            "Take nothing new",
            _GROUP,
            {200: node},
            query=PartitionQuery(),
            body=DrainSchema(),
            body_needed=False,
            problems=changed,
            example={"reason": "a new disk"},
        ),
        Endpoint(
            "POST",
            f"{one}/undrain",
            handlers.undrain,
            "Take new work again",
            _GROUP,
            {200: node},
            query=PartitionQuery(),
            body=EmptySchema(),
            body_needed=False,
            problems=changed,
        ),
    ]
