"""What a replay drives over the Scheduler Interface: a resource manager of its own, on its three streams."""

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rm_service.api_client import ApiClient
from rm_service.commands.embedded_service import EmbeddedService
from rm_service.commands.replay_drivers import DriveError, attributes_of, selector_for, tags_of
from rm_service.commands.replay_messages import Carried
from rm_service.commands.si_streams import SiStreams
from rm_service.commands.trace import TraceNode, TraceTask
from rm_service.domain.amounts import Amounts
from rm_service.facades.si.proto import si_pb2 as si
from rm_service.services.si.names import NODE_SELECTOR

RM_ID = "replay"
CONFIG = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: trace
"""
QUEUE = "root.trace"
PARTITION = "default"
USER = "replay"
NO_QOS = "none"
"""The application of tasks without a `qos`."""


class SiDriver:
    """Speaks as the resource manager `replay`: its tasks are asks of one application for each `qos`.

    `start` it before anything else. `audit` gives the verdict and `on_close` is called at the end: neither
    is a part of the Scheduler Interface.
    """

    def __init__(
        self,
        streams: SiStreams,
        audit: Callable[[], Mapping[str, Any]],
        on_close: Callable[[], object],
    ) -> None:
        self.audit = audit
        self._streams = streams
        self._on_close = on_close
        self._nodes: list[str] = []
        self._running: dict[str, set[str]] = {}
        """The names of the tasks that run, by application."""
        self._numbers = itertools.count(1)

    def start(self) -> None:
        """Register; what an earlier replay left is given up. Raises UnreachableError, DriveError."""
        self._streams.register(CONFIG, {"rm.resync": "wipe"})
        self.carry([], [], "")  # what ended by that, and is told now, is none of ours

    def register(self, nodes: Sequence[TraceNode], trace: str) -> None:
        """One message with all of them. Raises DriveError when one is rejected."""
        sent = [
            si.NodeInfo(
                nodeID=node.instance,
                action=si.NodeInfo.CREATE,
                attributes=attributes_of(node) | {"trace": trace},
                schedulableResource=_resource(node.total),
            )
            for node in nodes
        ]
        self._streams.nodes.send(si.NodeRequest(nodes=sent, rmID=RM_ID))
        left = {node.instance for node in nodes}
        while left:
            answer = self._streams.nodes.receive()
            for rejected in answer.rejected:
                raise DriveError(f"node {rejected.nodeID}", "rejected_node", rejected.reason)
            left -= {accepted.nodeID for accepted in answer.accepted}
        self._nodes += [node.instance for node in nodes]

    def carry(self, asks: Sequence[TraceTask], releases: Sequence[TraceTask], trace: str) -> Carried:
        """As Carrier. Raises DriveError when an ask is rejected."""
        self._open_applications({_application(task) for task in asks})
        mark = f"end of message {next(self._numbers)}"
        # An ask that is not granted at once is withdrawn by the same message, of which nothing is told. What
        # can only be refused is last: when its refusal is there, all that came of the message has been told.
        given_up = [_ask_release(_application(task), task.name) for task in asks]
        message = si.AllocationRequest(
            rmID=RM_ID,
            asks=[_ask(task, trace) for task in asks],
            releases=si.AllocationReleasesRequest(
                allocationsToRelease=[_release(task) for task in releases],
                allocationAsksToRelease=[*given_up, si.AllocationAskRelease(allocationKey=mark)],
            ),
        )
        sent = time.perf_counter()
        self._streams.allocations.send(message)
        carried = self._collect(mark, sent)
        ended = time.perf_counter() - sent
        for task in asks:
            carried.asked.setdefault(task.name, ended)
        self._note(asks, releases, carried)
        return carried

    def close(self) -> None:
        """Take the nodes and the applications away again, unless the connection is broken."""
        try:
            if not self._streams.broken and self._nodes:
                self._leave()
        finally:
            self._streams.close()
            self._on_close()

    def _collect(self, mark: str, sent: float) -> Carried:
        carried = Carried()
        while True:
            answer = self._streams.allocations.receive()
            seconds = time.perf_counter() - sent
            for new in answer.new:
                carried.nodes[new.allocationKey] = new.nodeID
                carried.asked[new.allocationKey] = seconds
            for released in answer.released:
                carried.released[released.allocationKey] = seconds
            for rejected in answer.rejected:
                if rejected.allocationKey == mark:
                    return carried
                raise DriveError(f"task {rejected.allocationKey}", "rejected_ask", rejected.reason)

    def _note(self, asks: Iterable[TraceTask], releases: Iterable[TraceTask], carried: Carried) -> None:
        for task in asks:
            if task.name in carried.nodes:
                self._running[_application(task)].add(task.name)
        for task in releases:
            self._running[_application(task)].discard(task.name)

    def _open_applications(self, names: set[str]) -> None:
        """Those in which nothing runs may have been completed meanwhile; to open one again is harmless."""
        idle = {name for name in names if not self._running.get(name)}
        if not idle:
            return
        new = [
            si.AddApplicationRequest(
                applicationID=name,
                queueName=QUEUE,
                ugi=si.UserGroupInformation(user=USER, groups=[USER]),
            )
            for name in sorted(idle)
        ]
        self._streams.applications.send(si.ApplicationRequest(new=new, rmID=RM_ID))
        while idle:
            answer = self._streams.applications.receive()
            for rejected in answer.rejected:
                if rejected.applicationID not in self._running:
                    what = f"application {rejected.applicationID}"
                    raise DriveError(what, "rejected_application", rejected.reason)
                idle.discard(rejected.applicationID)  # it is there still
            for accepted in answer.accepted:
                self._running[accepted.applicationID] = set()
                idle.discard(accepted.applicationID)

    def _leave(self) -> None:
        """On each stream something comes last that can only be refused: with its refusal, all is gone."""
        remove = [si.RemoveApplicationRequest(applicationID=name) for name in self._running]
        self._streams.applications.send(si.ApplicationRequest(remove=remove, rmID=RM_ID))
        mark = si.AddApplicationRequest(applicationID="end of replay", queueName="root.none")
        self._streams.applications.send(si.ApplicationRequest(new=[mark], rmID=RM_ID))
        while all(each.applicationID != mark.applicationID for each in self._receive_rejected()):
            pass
        gone = [
            si.NodeInfo(nodeID=name, action=si.NodeInfo.DECOMISSION)
            for name in (*self._nodes, self._nodes[-1])
        ]
        self._streams.nodes.send(si.NodeRequest(nodes=gone, rmID=RM_ID))
        while not self._streams.nodes.receive().rejected:
            pass

    def _receive_rejected(self) -> Iterable[si.RejectedApplication]:
        return self._streams.applications.receive().rejected


def served(address: str, client: ApiClient, token: str | None) -> SiDriver:
    """Drives a running service: gRPC at `address`, the audit from its HTTP API."""
    streams = SiStreams(address, RM_ID, token)
    return _started(streams, lambda: client.get("/audit"), client.close)


def embedded() -> SiDriver:
    """Drives a whole service in this process, on an SQLite file that goes away with it."""
    service = EmbeddedService()
    streams = SiStreams(service.grpc_address, RM_ID)
    return _started(streams, service.audit, service.close)


def _started(
    streams: SiStreams, audit: Callable[[], Mapping[str, Any]], on_close: Callable[[], object]
) -> SiDriver:
    driver = SiDriver(streams, audit, on_close)
    try:
        driver.start()
    except BaseException:
        driver.close()
        raise
    return driver


def _application(task: TraceTask) -> str:
    return task.qos or NO_QOS


def _resource(amounts: Amounts) -> si.Resource:
    return si.Resource(resources={name: si.Quantity(value=amount) for name, amount in amounts.items()})


def _ask(task: TraceTask, trace: str) -> si.AllocationAsk:
    return si.AllocationAsk(
        allocationKey=task.name,
        applicationID=_application(task),
        partitionName=PARTITION,
        resourceAsk=_resource(task.resource),
        maxAllocations=1,
        tags=tags_of(task) | {NODE_SELECTOR: selector_for(task, trace)},
    )


def _release(task: TraceTask) -> si.AllocationRelease:
    return si.AllocationRelease(
        partitionName=PARTITION,
        applicationID=_application(task),
        allocationKey=task.name,
        terminationType=si.STOPPED_BY_RM,
    )


def _ask_release(application: str, key: str) -> si.AllocationAskRelease:
    return si.AllocationAskRelease(
        partitionName=PARTITION,
        applicationID=application,
        allocationKey=key,
        terminationType=si.STOPPED_BY_RM,
    )
