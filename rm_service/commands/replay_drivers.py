"""What a replay drives: a running service over HTTP, or a ledger of its own in this process."""

import shutil
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from rm_service.api_client import ApiClient, ProblemError
from rm_service.commands.trace import TraceNode, TraceTask
from rm_service.domain import operations as op
from rm_service.domain.amounts import Amounts
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.domain.selectors import Operator, Requirement, Selector
from rm_service.ledger.database import reader_engine
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.schema import migrate
from rm_service.services.books import Books
from rm_service.settings import read_settings

RESOURCE_TYPE = "Special"
"""The resource type whose dimensions are free: memory, vcore and milli-GPUs."""


@dataclass(frozen=True, slots=True)
class Granted:
    """A task's lock: the application that holds it, and the node that was chosen."""

    id: str
    node: str


@dataclass(frozen=True, slots=True)
class NotGranted:
    """Why a task got nothing: the dimensions in which the best node was short.

    `dimensions` is empty when no single node has all that is asked for, though each amount is free
    somewhere; `no_node_matches` says that no node fulfils the selector at all.
    """

    dimensions: tuple[str, ...]
    no_node_matches: bool = False

    @property
    def reason(self) -> str:
        """The reason as a text to count by."""
        if self.no_node_matches:
            return "no node matches"
        return " + ".join(self.dimensions) or "no single node has all of it"


class DriveError(Exception):
    """The service refused what a replay needs: `code` is the problem's code, the text its detail."""

    def __init__(self, what: str, code: str, detail: str) -> None:
        self.code = code
        super().__init__(f"{what}: {detail} ({code})")


class Driver(Protocol):
    """The few operations of a replay. All raise when the service cannot be reached."""

    def register(self, nodes: Sequence[TraceNode], trace: str) -> None:
        """Register nodes, each with the tag `trace`."""

    def apply(self, task: TraceTask, trace: str) -> Granted | NotGranted:
        """Ask for a task's resource on the first node of `trace` that has room and a fitting model."""

    def use(self, application_id: str) -> None:
        """Turn a lock into use."""

    def release(self, application_id: str) -> None:
        """Give everything back."""

    def audit(self) -> Mapping[str, Any]:
        """The audit's verdict, in the shape of `GET /api/v1/audit`."""

    def close(self) -> None:
        """Let go of what the driver opened."""


def selector_for(task: TraceTask, trace: str) -> str:
    """The nodes that may serve a task: those of this trace, with enough cards of a model that it accepts."""
    requirements = [Requirement("trace", Operator.IN, (trace,))]
    if task.gpus:
        requirements.append(Requirement("gpu", Operator.AT_LEAST, (str(task.gpus),)))
    if task.models:
        requirements.append(Requirement("model", Operator.IN, task.models))
    return str(Selector(tuple(sorted(requirements))))


def tags_of(task: TraceTask) -> dict[str, str]:
    """A task's tags: its name as `job`, and its `qos` where it has one."""
    return {"job": task.name, "qos": task.qos} if task.qos else {"job": task.name}


def attributes_of(node: TraceNode) -> dict[str, str]:
    """A node's attributes: the number of its GPUs, and their model where there are any."""
    return {"gpu": str(node.gpus)} | ({"model": node.model} if node.model else {})


class HttpDriver:
    """Drives a running service, one request an operation."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client
        self._run = uuid.uuid4()

    def register(self, nodes: Sequence[TraceNode], trace: str) -> None:
        for node in nodes:
            body = {
                "resource_type": RESOURCE_TYPE,
                "total": dict(node.total),
                "tags": {"trace": trace},
                "attributes": attributes_of(node),
            }
            self.client.put(f"/nodes/{quote(node.instance, safe='')}", body)

    def apply(self, task: TraceTask, trace: str) -> Granted | NotGranted:
        # With an id of its own the request may be sent again when its answer was lost.
        body = {
            "id": str(uuid.uuid5(self._run, task.name)),
            "tags": tags_of(task),
            "resource": dict(task.resource),
            "placement": {"selector": selector_for(task, trace), "strategy": "first_fit"},
        }
        try:
            answer = self.client.post("/applications", body)
        except ProblemError as problem:
            if problem.code != Code.INSUFFICIENT_RESOURCES:
                raise
            return _not_granted(problem.document.get("shortfalls", []))
        return Granted(answer["id"], answer["node"])

    def use(self, application_id: str) -> None:
        self.client.post(f"/applications/{application_id}/use", {})

    def release(self, application_id: str) -> None:
        self.client.post(f"/applications/{application_id}/release", {})

    def audit(self) -> Mapping[str, Any]:
        verdict: Mapping[str, Any] = self.client.get("/audit")
        return verdict

    def close(self) -> None:
        self.client.close()


class EmbeddedDriver:
    """Drives a ledger of its own, on an SQLite file that goes away with it; no server is needed."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="rm-replay-"))
        url = f"sqlite:///{self._folder / 'rm.db'}"
        engine = reader_engine(url)
        migrate(engine)
        engine.dispose()
        self.ledger = Ledger(LedgerSettings(url, rules=read_settings(None, {}).rules))
        self.ledger.open()

    def register(self, nodes: Sequence[TraceNode], trace: str) -> None:
        registrations = [self.registration(node, trace) for node in nodes]
        for node, outcome in zip(nodes, self.ledger.submit(registrations), strict=True):
            _done(f"node {node.instance}", outcome)

    def apply(self, task: TraceTask, trace: str) -> Granted | NotGranted:
        placement, resource = self.asked(task, trace)
        apply = op.Apply(str(uuid.uuid4()), tags_of(task), resource, placement=placement, id_is_new=True)
        outcome = self.ledger.submit([apply])[0]
        if isinstance(outcome, Refused) and outcome.code is Code.INSUFFICIENT_RESOURCES:
            return _not_granted(
                [
                    {
                        "dimension": shortfall.dimension,
                        "requested": shortfall.requested,
                        "left": shortfall.left,
                        "reason": shortfall.reason,
                    }
                    for shortfall in outcome.shortfalls
                ]
            )
        application = _done(f"task {task.name}", outcome).application
        assert application is not None  # noqa: S101 - what every granted apply carries
        return Granted(application.id, application.tags["node"])

    def registration(self, node: TraceNode, trace: str) -> op.RegisterNode:
        """What is registered of a node."""
        tags, attributes = {"trace": trace}, attributes_of(node)
        return op.RegisterNode(node.instance, RESOURCE_TYPE, node.total, tags=tags, attributes=attributes)

    def asked(self, task: TraceTask, trace: str) -> tuple[op.Placement, Amounts]:
        """What a task asks of a node."""
        return op.Placement(selector_for(task, trace), "first_fit"), task.resource

    def use(self, application_id: str) -> None:
        _done(f"application {application_id}", self.ledger.submit([op.Use(application_id)])[0])

    def release(self, application_id: str) -> None:
        _done(f"application {application_id}", self.ledger.submit([op.Release(application_id)])[0])

    def audit(self) -> Mapping[str, Any]:
        return asdict(Books(self.ledger).audit())

    def close(self) -> None:
        self.ledger.close()
        shutil.rmtree(self._folder)


def _done(what: str, outcome: Outcome) -> Done:
    if isinstance(outcome, Refused):
        raise DriveError(what, outcome.code, outcome.detail)
    return outcome


def _not_granted(shortfalls: Sequence[Mapping[str, Any]]) -> NotGranted:
    short = {one["dimension"] for one in shortfalls if one["left"] < one["requested"]}
    nowhere = any(one.get("reason") == "no_node_matches" for one in shortfalls)
    return NotGranted(tuple(sorted(short)), nowhere)
