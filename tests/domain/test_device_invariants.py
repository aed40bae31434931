"""What is true of devices after any sequence of operations (the domain alone, no database)."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rm_service.domain import operations as op
from rm_service.domain.application import HOLDING, LIVE, State
from rm_service.domain.device_selection import UNIT, choose
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.domain.placing import find_room, read_placement
from rm_service.domain.resource_classes import ResourceClassSpec, read_spec
from tests.domain.device_ledger import ANY, BIG, FAST, SMALL, DeviceLedger, cards, check_devices, ports

BIG_OR_FAST = read_spec(
    {
        "resourceSelector": [
            {"matchExpressions": [{"key": "memory", "operator": "GtEq", "values": ["30G"]}]},
            {"matchExpressions": [{"key": "speed", "operator": "Exists"}]},
        ]
    }
)
SPECS: dict[str, ResourceClassSpec] = {
    "any": ANY,
    "big": BIG,
    "small": SMALL,
    "fast": FAST,
    "mixed": BIG_OR_FAST,
}
NODES = st.sampled_from(["n1", "n2", "n3"])
MADE = {
    "g": st.builds(cards, st.just("g"), st.integers(1, 3), st.sampled_from(["16G", "40G"])),
    "h": st.builds(cards, st.just("h"), st.integers(1, 2), st.sampled_from(["16G", "40G", "80G"])),
    "p": st.builds(ports, st.just("p"), st.integers(1, 2), st.sampled_from(["10GBPS", "40GBPS"])),
}
DEVICES = st.fixed_dictionaries({}, optional=MADE).map(lambda made: tuple(made.values()))
AMOUNT = st.sampled_from([100, 400, 500, 600, 999, UNIT, UNIT, 2 * UNIT, 3 * UNIT])
CLASSES = st.dictionaries(st.sampled_from(sorted(SPECS)), AMOUNT, min_size=1, max_size=3)
STRATEGIES = st.sampled_from(["first_fit", "best_fit", "spread"])


class DeviceMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.ledger = DeviceLedger({"user=bob": {"memory": 20}}, wait_age=50)
        self.ledger.create_class("mixed", BIG_OR_FAST)

    def known(self, data: st.DataObject) -> str:
        live = [each.id for each in self.ledger.view.applications.values() if each.state in LIVE]
        return data.draw(st.sampled_from(live or ["nobody"]))

    def lost(self) -> list[str]:
        applications = self.ledger.view.applications.values()
        return [each.id for each in applications if each.state is State.LOST]

    @rule(
        classes=CLASSES,
        memory=st.integers(0, 12),
        wait=st.sampled_from([0, 40, 400]),
        priority=st.integers(0, 1),
        devices=STRATEGIES,
        user=st.sampled_from(["alice", "bob"]),
        node=st.none() | NODES,
    )
    def ask(
        self,
        classes: dict[str, int],
        memory: int,
        wait: int,
        priority: int,
        devices: str,
        user: str,
        node: str | None,
    ) -> None:
        tags = {"user": user} if node is None else {"user": user, "node": node}
        asked = self.ledger.asking(
            classes, memory=memory, tags=tags, devices=devices, wait_seconds=wait, priority=priority
        )
        self._exactly(asked, self.ledger.do(asked))

    @rule(classes=CLASSES, other=CLASSES, data=st.data())
    def ask_together(self, classes: dict[str, int], other: dict[str, int], data: st.DataObject) -> None:
        before = self._held()
        given_back = op.Release(self.known(data))
        outcomes = self.ledger.together([given_back, self.ledger.asking(classes), self.ledger.asking(other)])
        if not all(isinstance(outcome, Done) for outcome in outcomes):
            assert self._held() == before

    @rule(memory=st.integers(0, 30), wait=st.sampled_from([0, 40]))
    def ask_for_no_devices(self, memory: int, wait: int) -> None:
        asked = op.Apply(
            f"plain-{self.ledger.view.seq}",
            {},
            {"memory": memory},
            wait_seconds=wait,
            placement=op.Placement(),
        )
        self.ledger.do(asked)

    @rule(data=st.data(), memory=st.none() | st.integers(0, 12))
    def use(self, data: st.DataObject, memory: int | None) -> None:
        self.ledger.do(op.Use(self.known(data), None if memory is None else {"memory": memory}))

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        self.ledger.do(op.Release(self.known(data)))

    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        self.ledger.do(op.Lose(self.known(data), "lost"))

    @rule(seconds=st.integers(1, 70))
    def let_time_pass(self, seconds: int) -> None:
        self.ledger.pass_time(seconds)
        for application in list(self.ledger.view.applications.values()):
            self.ledger.do(op.Reclaim(application.id))

    @rule(node=NODES, devices=DEVICES, memory=st.integers(0, 40), comes_back=st.booleans())
    def register(self, node: str, devices: Any, memory: int, *, comes_back: bool) -> None:
        reported = tuple(self.lost()) if comes_back else ()
        self.ledger.register(node, *devices, memory=memory, applications=reported)

    @rule(data=st.data(), engine=st.sampled_from(["e1", "e2"]), ends=st.booleans())
    def run_an_engine(self, data: st.DataObject, engine: str, *, ends: bool) -> None:
        some = data.draw(st.sampled_from([self.known(data), *self.lost()]))
        self.ledger.do(op.RegisterEngine(engine, some))
        if ends:
            self.ledger.do(op.RemoveEngine(engine))

    @rule(node=NODES, whole=st.booleans())
    def lose_node(self, node: str, *, whole: bool) -> None:
        if whole:
            self.ledger.lose_node(node)
        else:
            self.ledger.do(op.LoseNode(node, "gone"))

    @rule(node=NODES, kind=st.sampled_from([op.DrainNode, op.UndrainNode, op.RemoveNode]))
    def change_node(self, node: str, kind: Any) -> None:
        self.ledger.do(kind(node))

    @rule(name=st.sampled_from(sorted(SPECS)), spec=st.sampled_from(sorted(SPECS)))
    def create_or_remove_class(self, name: str, spec: str) -> None:
        if name in self.ledger.book.classes:
            self.ledger.remove_class(name)
        else:
            self.ledger.create_class(name, SPECS[spec])

    @invariant()
    def units_sums_and_classes_are_what_a_recomputation_says(self) -> None:
        check_devices(self.ledger)

    @invariant()
    def no_unit_is_given_twice_except_by_a_report(self) -> None:
        reported = {each.subject for each in self.ledger.events if each.kind == "application.rebooked"}
        holders: dict[tuple[str, str, int], list[str]] = {}
        for application in self.ledger.holding():
            for held in application.devices:
                for unit, _ in held.units:
                    holders.setdefault((application.tags["node"], held.device, unit), []).append(
                        application.id
                    )
        for node in self.ledger.view.nodes.values():
            for device in self.ledger.devices(node.instance).values():
                for unit, milli in device.taken.items():
                    assert milli > 0
                    if milli > UNIT:
                        assert reported & set(holders[node.instance, device.name, unit])

    @invariant()
    def nobody_waits_who_would_be_granted(self) -> None:
        view = self.ledger.view
        for application in list(view.applications.values()):
            if application.state is State.WAITING:
                rank = (application.priority, application.wait_seq or 0)
                placement = None if application.placement is None else read_placement(application.placement)
                found = find_room(view, application.tags, placement, application.requested, rank)
                assert found.refusal or found.judgement.blocked, f"{application.id} could have been granted"

    def _held(self) -> dict[str, object]:
        """Who holds what, which units are taken of what, and what the classes say."""
        nodes = self.ledger.view.nodes.values()
        return {
            "holding": {each.id: (each.state, each.devices) for each in self.ledger.holding()},
            "devices": {each.instance: self.ledger.devices(each.instance) for each in nodes},
            "classes": {name: self.ledger.standing(name) for name in self.ledger.book.classes},
            "seq": self.ledger.view.seq,
        }

    def _exactly(self, asked: op.Apply, outcome: Outcome) -> None:
        """Granted is exactly what was asked for; refused is what no node could give."""
        assert asked.placement is not None
        classes = dict(asked.placement.classes)
        if isinstance(outcome, Refused):
            if outcome.code is Code.UNKNOWN_CLASS:
                assert classes.keys() - self.ledger.book.classes.keys()
            if outcome.code is Code.INSUFFICIENT_RESOURCES and not self._is_held_up(outcome):
                assert not [node for node in self._open_nodes(asked) if self._has_room(node, asked)]
            return
        assert outcome.application is not None
        if outcome.application.state not in HOLDING:
            return
        given = dict.fromkeys(classes, 0)
        for held in outcome.application.devices:
            given[held.resource_class] += held.milli
            assert self.ledger.book.selects(held.resource_class, held.signature)
        assert given == classes

    def _is_held_up(self, refused: Refused) -> bool:
        return any(each.reason == "waiters_ahead" or "user" in each.label for each in refused.shortfalls)

    def _open_nodes(self, asked: op.Apply) -> list[str]:
        named = asked.tags.get("node")
        nodes = [each for each in self.ledger.view.nodes.values() if not each.removed]
        return [
            each.instance
            for each in nodes
            if named in {None, each.instance}
            and self.ledger.account(node=each.instance).balance.closed is None
        ]

    def _has_room(self, node: str, asked: op.Apply) -> bool:
        assert asked.placement is not None
        account, wishes = self.ledger.account(node=node), self.ledger.book.wishes(asked.placement.classes)
        given = choose(account.balance.devices or (), wishes, "first_fit")
        return given is not None and not account.shortfalls(asked.resource)


TestDeviceInvariants = DeviceMachine.TestCase
