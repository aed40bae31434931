"""The invariants of the ledger under any sequence of operations (the domain alone, no database)."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rm_service.domain import operations as op
from rm_service.domain.application import HOLDING, LIVE, State
from rm_service.domain.members import parent_of
from rm_service.domain.outcomes import Done
from rm_service.domain.placing import find_room, read_placement
from rm_service.domain.queueing import bar_at_gate
from rm_service.domain.tags import node_tags
from tests.domain.pure_ledger import PureLedger

AMOUNTS = st.fixed_dictionaries({}, optional={name: st.integers(0, 9) for name in ("memory", "vcore", "gpu")})
NODES = st.sampled_from(["n1", "n2", "n3"])
TAGS = st.fixed_dictionaries(
    {},
    optional={
        "node": NODES,
        "user": st.sampled_from(["alice", "bob"]),
        "creator": st.sampled_from(["IDE", "cron"]),
        "queue": st.sampled_from(["root", "root.a", "root.a.b", "root.c"]),
    },
)


def without_both_node_and_placement(operation: op.DecidedOperation) -> op.DecidedOperation:
    if isinstance(operation, op.Apply) and operation.placement is not None:
        tags = {key: value for key, value in operation.tags.items() if key != "node"}
        return replace(operation, tags=tags)
    return operation


class Invariants(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        limits = {
            "user=*": {"memory": 12},
            "user=bob": {"memory": 6, "vcore": 9},
            "queue=root.a": {"vcore": 10},
        }
        self.ledger: PureLedger = PureLedger(limits, wait_age=50)
        self.ids = [f"app-{number}" for number in range(1, 400)]
        self.reported_over = False

    def known(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.ledger.view.applications) or ["nobody"]))

    @rule(tags=TAGS, resource=AMOUNTS, wait=st.sampled_from([0, 0, 40]), priority=st.integers(0, 2))
    def apply(self, tags: dict[str, str], resource: dict[str, int], wait: int, priority: int) -> None:
        outcome = self.ledger.apply(resource, wait=wait, priority=priority, **tags)
        if isinstance(outcome, Done) and outcome.application and outcome.application.state is State.LOCKED:
            for account in self.ledger.view.accounts_of(outcome.application.label_ids):
                asked = account.charge(resource)
                left = account.left()
                assert all(left.get(name, 0) >= 0 for name, amount in asked.items() if amount > 0)

    @rule(
        resource=AMOUNTS,
        wait=st.sampled_from([0, 40]),
        selector=st.sampled_from(["", "node in (n1,n2)", "gpu"]),
        strategy=st.sampled_from(["first_fit", "best_fit", "spread"]),
        tags=TAGS,
    )
    def apply_for_a_node(
        self, resource: dict[str, int], wait: int, selector: str, strategy: str, tags: dict[str, str]
    ) -> None:
        placement = op.Placement(selector, strategy)
        tags = {key: value for key, value in tags.items() if key != "node"}
        self.ledger.do(
            op.Apply(f"placed-{self.ledger.view.seq}", tags, resource, wait_seconds=wait, placement=placement)
        )

    @rule(data=st.data(), resource=st.none() | AMOUNTS)
    def use(self, data: st.DataObject, resource: dict[str, int] | None) -> None:
        self.ledger.do(op.Use(self.known(data), resource))

    @rule(data=st.data(), kind=st.sampled_from([op.Renew, op.Release, op.Reclaim]))
    def end(self, data: st.DataObject, kind: Any) -> None:
        self.ledger.do(kind(self.known(data)))

    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        self.ledger.do(op.Lose(self.known(data), "lost"))

    @rule(node=NODES, total=AMOUNTS, data=st.data())
    def register(self, node: str, total: dict[str, int], data: st.DataObject) -> None:
        self.ledger.do(op.RegisterNode(node, "LoadInstance", total, applications=(self.known(data),)))

    @rule(node=NODES, kind=st.sampled_from([op.DrainNode, op.UndrainNode, op.RemoveNode]))
    def change_node(self, node: str, kind: Any) -> None:
        self.ledger.do(kind(node))

    @rule(node=NODES)
    def lose_node(self, node: str) -> None:
        self.ledger.do(op.LoseNode(node, "gone"))

    @rule(data=st.data(), engine=st.sampled_from(["e1", "e2"]), resource=st.none() | AMOUNTS)
    def engine(self, data: st.DataObject, engine: str, resource: dict[str, int] | None) -> None:
        self.ledger.do(op.RegisterEngine(engine, self.known(data), resource=resource))

    @rule(engine=st.sampled_from(["e1", "e2"]))
    def end_engine(self, engine: str) -> None:
        self.ledger.do(op.RemoveEngine(engine))

    @rule(data=st.data(), resource=AMOUNTS)
    def group(self, data: st.DataObject, resource: dict[str, int]) -> None:
        before = self.snapshot()
        asked = op.Apply(f"group-{self.ledger.view.seq}", {"user": "bob", "node": "n1"}, resource)
        outcomes = self.ledger.together([op.Release(self.known(data)), asked, op.Use(asked.id)])
        if not all(isinstance(outcome, Done) for outcome in outcomes):
            assert self.snapshot() == before

    @rule(data=st.data(), count=st.integers(2, 8))
    def several_in_one_batch(self, data: st.DataObject, count: int) -> None:
        made = [f"batch-{self.ledger.view.seq}-{number}" for number in range(count)]
        known = st.sampled_from([*made, *sorted(self.ledger.view.applications)])
        placements = st.none() | st.builds(op.Placement, st.sampled_from(["", "node in (n1,n2)"]))
        applies = st.builds(
            op.Apply,
            st.sampled_from(made),
            TAGS,
            AMOUNTS,
            wait_seconds=st.sampled_from([0, 40]),
            priority=st.integers(0, 1),
            placement=placements,
        )
        others = st.one_of(
            st.builds(op.Use, known, st.none() | AMOUNTS),
            st.builds(op.Release, known),
            st.builds(op.Lose, known, st.just("lost")),
            st.builds(op.UndrainNode, NODES),
            st.builds(op.RegisterNode, NODES, st.just("LoadInstance"), AMOUNTS),
        )
        drawn = data.draw(st.lists(st.one_of(applies, applies, others), min_size=count, max_size=count))
        operations = [without_both_node_and_placement(operation) for operation in drawn]
        if data.draw(st.booleans()):
            self.ledger.in_one_batch(operations)
        else:
            lives = [each for each in operations if isinstance(each, op.Apply | op.Use | op.Release)]
            before = self.snapshot()
            outcomes = self.ledger.together(lives)
            if not all(isinstance(outcome, Done) for outcome in outcomes):
                assert self.snapshot() == before

    @rule(seconds=st.integers(1, 70))
    def pass_time(self, seconds: int) -> None:
        self.ledger.pass_time(seconds)

    def snapshot(self) -> tuple[object, object, int]:
        view = self.ledger.view
        states = {
            key: (
                each.state,
                each.resource,
                each.standing and replace(each.standing, registration=0, adopted=False),
            )
            for key, each in view.applications.items()
        }
        balances = {
            key: (
                {name: amount for name, amount in account.balance.locked.items() if amount},
                {name: amount for name, amount in account.balance.used.items() if amount},
                account.balance.applications,
            )
            for key, account in view.accounts.items()
            if account.balance.locked or account.balance.used or account.balance.applications
        }
        return states, {key: value for key, value in balances.items() if any(value)}, view.seq

    @invariant()
    def balances_are_the_sums_of_what_is_held(self) -> None:
        locked: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        used: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        holders: dict[int, int] = defaultdict(int)
        for application in self.ledger.holding():
            for label_id in application.label_ids:
                holders[label_id] += 1
                for name, amount in application.locked_now.items():
                    locked[label_id][name] += amount
                for name, amount in application.used_now.items():
                    used[label_id][name] += amount
        for label_id, account in self.ledger.view.accounts.items():
            balance = account.balance
            for found, expected in ((balance.locked, locked[label_id]), (balance.used, used[label_id])):
                assert {name: amount for name, amount in found.items() if amount} == {
                    name: amount for name, amount in expected.items() if amount
                }
                assert all(amount >= 0 for amount in found.values())
            assert balance.applications == holders[label_id]

    @invariant()
    def what_is_final_holds_nothing_and_has_an_end(self) -> None:
        for application in self.ledger.view.applications.values():
            assert (application.state in LIVE) == (application.finished_at is None)
            assert (application.state is State.WAITING) == bool(application.waits_on)
            if application.state not in HOLDING:
                assert application.engine is None

    @invariant()
    def folding_the_events_gives_the_balances(self) -> None:
        sums: dict[tuple[int, str, str], int] = defaultdict(int)
        for event in self.ledger.events:
            for label_id in event.label_ids:
                for name, amount in event.locked.items():
                    sums[label_id, "locked", name] += amount
                for name, amount in event.used.items():
                    sums[label_id, "used", name] += amount
        for label_id, account in self.ledger.view.accounts.items():
            for name, amount in account.balance.locked.items():
                assert sums[label_id, "locked", name] == amount
            for name, amount in account.balance.used.items():
                assert sums[label_id, "used", name] == amount

    @invariant()
    def events_are_numbered_without_gaps(self) -> None:
        assert [event.seq for event in self.ledger.events] == list(range(1, self.ledger.view.seq + 1))

    @invariant()
    def nobody_waits_who_would_be_granted(self) -> None:
        view = self.ledger.view
        for application in view.applications.values():
            if application.state is State.WAITING:
                rank = (application.priority, application.wait_seq or 0)
                placement = None if application.placement is None else read_placement(application.placement)
                found = find_room(view, application.tags, placement, application.requested, rank)
                if found.refusal is None:
                    bar_at_gate(view, parent_of(view, application), found.judgement)
                assert found.refusal or found.judgement.blocked, f"{application.id} could have been granted"

    @invariant()
    def what_is_held_on_a_registered_node_is_what_its_applications_hold(self) -> None:
        for node in self.ledger.view.nodes.values():
            tags = node_tags(node.instance, node.partition)
            here = [each for each in self.ledger.holding() if tags.items() <= each.tags.items()]
            here = here if node.partition else [each for each in here if "partition" not in each.tags]
            assert self.ledger.account(**tags).balance.applications == len(here)


TestInvariants = Invariants.TestCase
