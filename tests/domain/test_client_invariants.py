"""The invariants with a resource manager among those who ask (the domain alone, no database)."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from rm_service.domain import operations as op
from rm_service.domain.application import LIVE, State
from rm_service.domain.clients import Client, Termination
from rm_service.domain.outcomes import Done, Refused
from tests.client_words import (
    RM,
    adding,
    allocation_name,
    asking,
    booking,
    creating_node,
    decommissioning,
    partition_of,
    releasing,
    removing,
    running,
    updating_node,
)
from tests.domain.client_ledger import ClientLedger, check_members
from tests.domain.test_invariants import Invariants

APPS = st.sampled_from(["one", "two", "three"])
KEYS = st.sampled_from(["k", "l", "m"])
MEMORY = st.integers(1, 9)
CLIENT_NODES = st.sampled_from(["c1", "c2"])
TERMINATIONS = st.sampled_from(list(Termination))


class ClientInvariants(Invariants):
    """The same with a resource manager among those who ask."""

    def __init__(self) -> None:
        super().__init__()
        limits = {
            "user=*": {"memory": 40},
            f"partition={partition_of(RM)},queue=root.a": {"memory": 15, "apps": 2},
            f"partition={partition_of(RM)},queue=root.b": {"memory": 9, "apps": 1},
        }
        self.ledger: ClientLedger = ClientLedger(limits, wait_age=50)
        self.client = RM

    def draw_id(self, data: st.DataObject) -> str | None:
        """The id of something that the client has, or had, or never had."""
        own = [each.id for each in self.ledger.view.applications.values() if each.client is not None]
        return data.draw(st.sampled_from([None, *own, "uid-one-k"]))

    @rule(app=APPS, queue=st.sampled_from(["root.a", "root.b"]), run_for=st.sampled_from([0, 0, 40]))
    def add(self, app: str, queue: str, run_for: int) -> None:
        self.ledger.do(adding(app, client=self.client, queue=queue, run_for=run_for))

    @rule(
        app=st.none() | APPS,
        key=KEYS,
        memory=MEMORY,
        count=st.integers(1, 3),
        priority=st.integers(0, 2),
        node=st.none() | CLIENT_NODES,
        run_for=st.sampled_from([0, 0, 30]),
    )
    def ask(self, app: str | None, key: str, memory: int, count: int, **more: Any) -> None:
        seq = self.ledger.view.seq
        before = self.snapshot()
        outcome = self.ledger.do(asking(key, app, memory=memory, count=count, client=self.client, **more))
        if isinstance(outcome, Refused):
            states, balances, _ = self.snapshot()
            assert (states, balances, self.ledger.view.seq) == (*before[:2], seq + 1), "but for the answer"
        else:
            assert len(self.ledger.view.named(allocation_name(app, key, self.client))) >= count

    @rule(
        app=st.none() | APPS,
        key=KEYS,
        memory=MEMORY,
        node=CLIENT_NODES,
        told_as=st.sampled_from(["ours", "theirs", "anonymous"]),
        data=st.data(),
    )
    def book(
        self, app: str | None, key: str, memory: int, node: str, told_as: str, data: st.DataObject
    ) -> None:
        name = allocation_name(app, key, self.client)
        ours = [each.id for each in self.ledger.view.applications.values() if each.name == name]
        report = booking(
            key,
            node,
            app,
            memory=memory,
            id=data.draw(st.sampled_from(ours)) if told_as == "ours" and ours else None,
            uuid=f"uid-{app}-{key}" if told_as == "theirs" else None,
            anonymous=told_as == "anonymous",
            client=self.client,
        )
        outcome = self.ledger.do(report)
        if isinstance(outcome, Done):
            assert outcome.application is not None
            assert outcome.application.used == {"memory": memory}
            seq = self.ledger.view.seq
            again = self.ledger.do(report)
            assert isinstance(again, Done)
            assert again.repeated
            assert self.ledger.view.seq == seq

    @rule(
        app=st.none() | APPS,
        key=st.none() | KEYS,
        termination=TERMINATIONS,
        only_ask=st.booleans(),
        data=st.data(),
    )
    def release_allocation(
        self, app: str | None, key: str | None, termination: Termination, only_ask: bool, data: st.DataObject
    ) -> None:
        release = releasing(
            key, app, id=self.draw_id(data), termination=termination, only_ask=only_ask, client=self.client
        )
        self.ledger.do(release)

    @rule(app=APPS)
    def remove(self, app: str) -> None:
        told = self.ledger.told_by(removing(app, client=self.client))
        assert not any(answer["kind"].startswith("rejected") for answer in told)

    @rule(node=CLIENT_NODES, memory=st.integers(1, 30), occupied=st.integers(0, 3))
    def create_node(self, node: str, memory: int, occupied: int) -> None:
        self.ledger.do(creating_node(node, memory, occupied=occupied, client=self.client))

    @rule(node=CLIENT_NODES, memory=st.none() | st.integers(0, 30), ready=st.none() | st.booleans())
    def update_node(self, node: str, memory: int | None, ready: bool | None) -> None:
        total = None if memory is None else {"memory": memory}
        self.ledger.do(updating_node(node, client=self.client, total=total, ready=ready))

    @rule(node=CLIENT_NODES, only_unreported=st.booleans())
    def decommission(self, node: str, only_unreported: bool) -> None:
        self.ledger.do(decommissioning(node, client=self.client, only_unreported=only_unreported))

    @rule(data=st.data())
    def a_node_with_what_runs_there_or_nothing(self, data: st.DataObject) -> None:
        node, apps = data.draw(CLIENT_NODES), data.draw(st.lists(st.none() | APPS, min_size=1, max_size=3))
        before = self.snapshot()
        reports = [
            booking(f"r{at}", node, app, uuid=f"{node}-{app}-r{at}", client=self.client)
            for at, app in enumerate(apps)
        ]
        outcomes = self.ledger.together([creating_node(node, client=self.client), *reports])
        if not all(isinstance(outcome, Done) for outcome in outcomes):
            states, balances, seq = self.snapshot()
            assert (states, balances, seq) == (*before[:2], before[2] + 1), "but for the answer"

    @rule()
    def sweep(self) -> None:
        self.ledger.sweep()

    @rule()
    def register_again(self) -> None:
        self.client = Client(self.client.id, self.client.registration + 1)

    @rule()
    def forget_what_was_not_reported(self) -> None:
        for node in list(self.ledger.view.nodes.values()):
            if node.client is not None and not node.removed:
                operation = decommissioning(node.instance, client=self.client, only_unreported=True)
                self.ledger.do(operation)
        for application in list(self.ledger.view.applications.values()):
            if application.client is not None:
                self.ledger.do(op.ForgetApplication(client=self.client, id=application.id))
        for application in self.ledger.view.applications.values():
            if application.state in LIVE and application.standing is not None:
                assert application.standing.registration == self.client.registration

    @rule(data=st.data())
    def one_message(self, data: st.DataObject) -> None:
        """Everything that a message can say, in one batch, in the order of a message."""
        client = self.client
        said: list[op.DecidedOperation] = [
            adding(app, client=client) for app in data.draw(st.lists(APPS, max_size=2))
        ]
        said += [
            creating_node(node, 12, client=client) for node in data.draw(st.lists(CLIENT_NODES, max_size=1))
        ]
        said += [
            asking(key, app, memory=memory, count=2, client=client)
            for key, app, memory in data.draw(st.lists(st.tuples(KEYS, APPS, MEMORY), max_size=4))
        ]
        said += [
            releasing(key, app, client=client)
            for key, app in data.draw(st.lists(st.tuples(st.none() | KEYS, APPS), max_size=2))
        ]
        said += [removing(app, client=client) for app in data.draw(st.lists(APPS, max_size=1))]
        self.ledger.in_one_batch(said)

    @invariant()
    def applications_know_their_members(self) -> None:
        check_members(self.ledger)

    @invariant()
    def the_client_knows_what_runs(self) -> None:
        """Whoever only listens knows all that is held, and where; what it confirmed itself may be over."""
        known = running(self.ledger.told())
        held = [each for each in self.ledger.holding() if each.client is not None and not each.has_members]
        for application in held:
            told = known[application.outside_id]
            assert (told["node"], told["key"]) == (application.tags["node"], application.request["key"])
        names = [each.outside_id for each in held]
        assert len(set(names)) == len(names), "two allocations of one id"

    @invariant()
    def what_waits_is_on_no_node_but_one_that_it_requires(self) -> None:
        for application in self.ledger.view.applications.values():
            if application.client is not None and application.state is State.WAITING:
                standing = application.standing
                assert standing is not None
                assert application.tags.get("node") == standing.required_node
                assert not application.devices

    @invariant()
    def every_answer_is_about_something(self) -> None:
        for answer in self.ledger.told():
            assert answer["kind"]
            assert answer.get("app") or answer.get("node") or answer.get("key")


TestClientInvariants = ClientInvariants.TestCase
