"""A shim: what stands between a resource manager and the scheduler, with a book of its own."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from tests.si.answers import (
    NEW,
    REJECTED_APPLICATION,
    REJECTED_NODE,
    RELEASED,
    STOPPED_BY_RM,
    Allocation,
    Answer,
    answers_in,
)
from tests.si.dialects import (
    CREATE,
    DECOMISSION,
    DIALECTS,
    DRAIN_NODE,
    DRAIN_TO_SCHEDULABLE,
    UPDATE,
    Ask,
    Node,
    Request,
    resource,
)
from tests.si.transports import Grpc, Transport, Twin
from tests.si.wire import Json

PATIENCE = 15.0  # seconds
NOBODY = "nobody-has-this"
Connect = Callable[["Shim"], Transport]


class Shim:
    """One RM in one dialect. What it sends returns at once; `expect` waits for what comes back.

    `held` is what the RM believes to be running: what `new` brought and what it recovered, without what was
    released. `asked` are its asks that nothing has come of yet.
    """

    def __init__(self, dialect: str, rm_id: str, connect: Connect) -> None:
        self.dialect = DIALECTS[dialect]
        self.rm_id = rm_id
        self.held: list[Allocation] = []
        self.asked: dict[tuple[str, str], Ask] = {}
        self.responses: list[tuple[str, Json]] = []
        """Everything that came, with its method."""
        self.ends: dict[str, tuple[str, str]] = {}
        """The status and the details of each stream that has ended, by its method."""
        self._untaken: list[Answer] = []
        self._changed = threading.Condition()
        self._markers = 0
        self._connect = connect
        self._transport = connect(self)

    @classmethod
    def connect(cls, dialect: str, address: str, rm_id: str) -> Self:
        """Over gRPC, to `host:port`."""
        speaks = DIALECTS[dialect]
        return cls(dialect, rm_id, lambda shim: Grpc(address, speaks, shim.receive, shim.end))

    @classmethod
    def twin(cls, dialect: str, port: int, rm_id: str) -> Self:
        """Over HTTP, to a port of this machine."""
        speaks = DIALECTS[dialect]
        return cls(dialect, rm_id, lambda shim: Twin(port, speaks, rm_id, shim.receive, shim.end))

    # ---- the connection ----

    @property
    def transport(self) -> Transport:
        return self._transport

    @property
    def grpc(self) -> Grpc:
        """The transport of a shim that speaks gRPC."""
        assert isinstance(self._transport, Grpc)
        return self._transport

    def register(
        self, config: str = "", *, policy_group: str = "", extra: Mapping[str, str] | None = None
    ) -> None:
        """Raises RefusedError. The old dialect has no configuration and no extra ones."""
        body: Json = {"rmID": self.rm_id, "version": self.dialect.name, "policyGroup": policy_group}
        if config:
            body["config"] = config
        if extra:
            body["extraConfig"] = dict(extra)
        self._transport.register(body)

    def listen(self, *, after: int | None = None, metadata: Mapping[str, str] | None = None) -> None:
        """Open every stream and bind it to this RM by a first message that says nothing more."""
        more = dict(metadata or {})
        if after is not None:
            more["rm-after"] = str(after)
        for method in self.dialect.methods:
            self._transport.open(method, more)
            if isinstance(self._transport, Grpc):
                self.send(method, {})

    def start(self, config: str = "", *, extra: Mapping[str, str] | None = None) -> Self:
        """Register and listen."""
        self.register(config, extra=extra)
        self.listen()
        return self

    def reconnect(self) -> None:
        """Leave the connection and make another, with the same book; what came so far stays known."""
        self._transport.close()
        with self._changed:
            self.ends.clear()
            self._untaken.clear()
        self._transport = self._connect(self)

    def send(self, method: str, body: Json, *, rm_id: str | None = None) -> None:
        """Any request; the RM's own name is added."""
        self._transport.send(method, {**body, "rmID": self.rm_id if rm_id is None else rm_id})

    def close(self) -> None:
        self._transport.close()

    # ---- what an RM says ----

    def add_node(
        self,
        name: str,
        amounts: Mapping[str, int],
        *,
        attributes: Mapping[str, str] | None = None,
        occupied: Mapping[str, int] | None = None,
        existing: Sequence[Allocation] = (),
        action: str = CREATE,
    ) -> None:
        node = Node(
            name=name,
            action=action,
            resource=amounts,
            attributes=attributes or {},
            occupied=occupied,
            existing=existing,
        )
        self._say(self.dialect.nodes([node]))

    def update_node(
        self, name: str, amounts: Mapping[str, int], *, occupied: Mapping[str, int] | None = None
    ) -> None:
        node = Node(name=name, action=UPDATE, resource=amounts, occupied=occupied)
        self._say(self.dialect.nodes([node]))

    def drain(self, name: str) -> None:
        self.act_on_node(name, DRAIN_NODE)

    def undrain(self, name: str) -> None:
        self.act_on_node(name, DRAIN_TO_SCHEDULABLE)

    def decommission(self, name: str) -> None:
        self.act_on_node(name, DECOMISSION)

    def act_on_node(self, name: str, action: str | int) -> None:
        """An action that needs nothing but the node's name."""
        self._say(self.dialect.nodes([Node(name=name, action=action)]))

    def add_application(
        self,
        app: str,
        *,
        queue: str = "root.default",
        user: str = "alice",
        partition: str = "",
        timeout_ms: int = 0,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        body: Json = {
            "applicationID": app,
            "queueName": queue,
            "partitionName": partition,
            "ugi": {"user": user, "groups": ["staff"]},
            "executionTimeoutMilliSeconds": timeout_ms,
            "tags": dict(tags or {}),
        }
        self._say(self.dialect.applications([body], []))

    def remove_application(self, app: str, *, partition: str = "") -> None:
        self._say(self.dialect.applications([], [{"applicationID": app, "partitionName": partition}]))

    def ask(self, *asks: Ask) -> None:
        """One request with these asks."""
        with self._changed:
            self.asked |= {(ask.app, ask.key): ask for ask in asks}
        self._say(self.dialect.asks(asks))

    def withdraw(self, app: str, key: str, *, partition: str = "default") -> None:
        """Release a pending ask."""
        with self._changed:
            self.asked.pop((app, key), None)
        release: Json = {"partitionName": partition, "applicationID": app, "allocationKey": key}
        self._say(self.dialect.ask_release({**release, "terminationType": STOPPED_BY_RM}))

    def release(
        self, allocation: Allocation, *, termination: str | int = STOPPED_BY_RM, partition: str = ""
    ) -> None:
        body = self.dialect.release(
            app=allocation.app,
            key=allocation.key,
            id=allocation.id,
            termination=termination,
            partition=partition,
        )
        self._say(self.dialect.releases([body]))

    def release_all(self, app: str) -> None:
        """Release all that an application has, by naming neither key nor id."""
        body = self.dialect.release(app=app, key="", id="", termination=STOPPED_BY_RM, partition="")
        self._say(self.dialect.releases([body]))

    def confirm(self, released: Answer) -> None:
        """What the scheduler wanted stopped has been stopped: the same release goes back."""
        [allocation] = [held for held in self.held if _same(held, released)]
        self.release(allocation, termination=released.termination)
        with self._changed:
            self.held.remove(allocation)

    def recover(self, *allocations: Allocation) -> None:
        """Report what runs, apart from its node."""
        with self._changed:
            self._hold(allocations)
        self._say(self.dialect.existing(allocations))

    def occupy(self, name: str, amounts: Mapping[str, int]) -> None:
        """Tell that others hold this much of a node that takes `amounts` of nobody else's; replaces."""
        foreign = {
            "allocationKey": f"foreign-{name}",
            "nodeID": name,
            "resourcePerAlloc": resource(amounts),
            "allocationTags": {"foreign": "static"},
        }
        self._say(("UpdateAllocation", {"allocations": [foreign]}))

    def add_known_node(self, name: str, amounts: Mapping[str, int]) -> None:
        """Register a node together with what this RM has running on it, in its dialect's way."""
        mine = [held for held in self.held if held.node == name]
        if self.dialect.node_holds_allocations:
            self.add_node(name, amounts, existing=mine)
            self.expect("accepted_node", node=name)
            return
        self.add_node(name, amounts)
        self.expect("accepted_node", node=name)
        if mine:
            self.recover(*mine)

    def _say(self, request: Request) -> None:
        self.send(*request)

    # ---- what an RM hears ----

    def expect(self, kind: str, *, seconds: float = PATIENCE, **facts: object) -> Answer:
        """The next answer of this kind with these facts that nobody has expected yet."""
        found: list[Answer] = []

        def look() -> bool:
            found[:] = [each for each in self._untaken if each.kind == kind and each.has(**facts)][:1]
            return bool(found)

        with self._changed:
            self._changed.wait_for(look, seconds)
            assert found, (
                f"{self.rm_id} ({self.dialect.name}): no {kind} with {facts} in {seconds:.0f} s;"
                f" not expected yet: {self._untaken}; ended: {self.ends}"
            )
            self._untaken.remove(found[0])
            return found[0]

    def untaken(self, *kinds: str) -> list[Answer]:
        """The answers of these kinds that nobody has expected."""
        with self._changed:
            return [each for each in self._untaken if each.kind in kinds]

    def expect_end(self, method: str, *, seconds: float = PATIENCE) -> tuple[str, str]:
        """The status and the details with which a stream ends."""
        with self._changed:
            ended = self._changed.wait_for(lambda: method in self.ends, seconds)
            assert ended, f"{self.rm_id} ({self.dialect.name}): {method} has not ended in {seconds:.0f} s"
            return self.ends[method]

    def settle(self) -> None:
        """Return when all that was sent so far has been carried out and answered.

        Something that has to be rejected is sent last; answers come in order. First on the streams whose
        requests may cause answers on the allocations' one, then there.
        """
        self._markers += 1
        name = f"{NOBODY}-{self._markers}"
        self.undrain(name)
        self.expect(REJECTED_NODE, node=name)
        self.add_application(name, partition=NOBODY)
        self.expect(REJECTED_APPLICATION, app=name)
        self._say(self.dialect.asks([Ask(key=name, app=name, resource={"memory": 1})]))
        self.expect(self.dialect.rejected_ask, key=name)

    def receive(self, method: str, response: Json) -> None:
        """Called by the transport with each response."""
        fields = self.dialect.methods[method].fields
        with self._changed:
            self.responses.append((method, response))
            for answer in answers_in(response, fields, self.dialect):
                self._book(answer)
                self._untaken.append(answer)
            self._changed.notify_all()

    def end(self, method: str, status: str, details: str) -> None:
        """Called by the transport when a stream has ended."""
        with self._changed:
            self.ends[method] = status, details
            self._changed.notify_all()

    def _book(self, answer: Answer) -> None:
        if answer.kind == NEW:
            self.asked.pop((answer.app, answer.key), None)
            self._hold([answer.allocation])
        elif answer.kind == RELEASED and answer.termination == STOPPED_BY_RM:
            self.held = [held for held in self.held if not _same(held, answer)]

    def _hold(self, allocations: Sequence[Allocation]) -> None:
        """Add what is not there yet: what was recovered is echoed."""
        for allocation in allocations:
            if not any(_identity(held) == _identity(allocation) for held in self.held):
                self.held.append(allocation)


def _identity(allocation: Allocation) -> tuple[str, ...]:
    return (allocation.id,) if allocation.id else (allocation.app, allocation.key)


def _same(held: Allocation, released: Answer) -> bool:
    if released.id:
        return held.id == released.id
    return (held.app, held.key) == (released.app, released.key)
