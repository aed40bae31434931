"""Whatever is asked of a real ledger about devices, its books and its classes are right after every step."""

import shutil
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.device_selection import UNIT
from rm_service.domain.outcomes import Done
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.queries.applications import list_applications
from rm_service.services.resource_classes import ResourceClasses
from tests.domain.device_ledger import cards, ports
from tests.ledger.device_asking import SPECS, check, create_classes, devices_of, for_classes
from tests.ledger.telling import settle

NODES = st.sampled_from(["n1", "n2"])
MADE = {
    "g": st.builds(cards, st.just("g"), st.integers(1, 3), st.sampled_from(["16G", "40G"])),
    "p": st.builds(ports, st.just("p"), st.integers(1, 2), st.sampled_from(["10GBPS", "40GBPS"])),
}
DEVICES = st.fixed_dictionaries({}, optional=MADE).map(lambda made: tuple(made.values()))
AMOUNT = st.sampled_from([300, 500, 600, UNIT, UNIT, 2 * UNIT])
CLASSES = st.dictionaries(st.sampled_from(sorted(SPECS)), AMOUNT, min_size=1, max_size=3)
STRATEGIES = st.sampled_from(["first_fit", "best_fit", "spread"])


class DeviceLedgerMachine(RuleBasedStateMachine):
    """Random operations on one ledger in an SQLite file, that is opened anew now and then."""

    template: ClassVar[Path]
    applications: Bundle[str] = Bundle("applications")

    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.url = f"sqlite:///{shutil.copy(self.template, self.folder / 'rm.db')}"
        self.ledger = self._opened()
        create_classes(self.ledger)
        self._register("n1", (cards("g", 2), cards("h", 2, "40G")), ())
        self._register("n2", (ports("p", 2),), ())
        self.rebooked: set[str] = set()

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.ledger.close()
            shutil.rmtree(self.folder)

    @rule(
        target=applications,
        classes=CLASSES,
        memory=st.integers(0, 30),
        wait=st.sampled_from([0, 600]),
        devices=STRATEGIES,
        node=st.none() | NODES,
    )
    def ask(self, classes: dict[str, int], memory: int, wait: int, devices: str, node: str | None) -> Any:
        tags = {} if node is None else {"node": node}
        asked = for_classes(classes, tags, memory, devices=devices, wait_seconds=wait)
        (outcome,) = self.ledger.submit([asked])
        return asked.id if isinstance(outcome, Done) else multiple()

    @rule(target=applications, several=st.lists(CLASSES, min_size=2, max_size=4), atomic=st.booleans())
    def ask_in_one_batch(self, several: list[dict[str, int]], *, atomic: bool) -> Any:
        asked = [for_classes(classes) for classes in several]
        outcomes = self.ledger.submit(asked, atomic=atomic)
        assert not atomic or len({type(outcome) for outcome in outcomes}) == 1, "all or none"
        done = zip(asked, outcomes, strict=True)
        return multiple(*[each.id for each, outcome in done if isinstance(outcome, Done)])

    @rule(application_id=applications, memory=st.none() | st.integers(0, 30))
    def use(self, application_id: str, memory: int | None) -> None:
        self.ledger.submit([op.Use(application_id, None if memory is None else {"memory": memory})])

    @rule(application_id=applications)
    def release(self, application_id: str) -> None:
        self.ledger.submit([op.Release(application_id)])

    @rule(node=NODES, devices=DEVICES, comes_back=st.booleans())
    def register(self, node: str, devices: Any, *, comes_back: bool) -> None:
        self._register(node, devices, self._lost() if comes_back else ())

    @rule(application_id=applications)
    def run_an_engine(self, application_id: str) -> None:
        lost = self._lost()
        (outcome,) = self.ledger.submit([op.RegisterEngine("e1", application_id)])
        if isinstance(outcome, Done) and application_id in lost:
            self.rebooked.add(application_id)

    @rule(ends=st.booleans())
    def end_the_engine(self, *, ends: bool) -> None:
        self.ledger.submit([op.RemoveEngine("e1")] if ends else [op.LoseEngine("e1", "silent")])

    @rule(node=NODES)
    def lose_node(self, node: str) -> None:
        self.ledger.submit([op.LoseNode(node, "gone")])
        with self.ledger.readers.connect() as connection:
            items = list_applications(connection, states=[State.LOCKED, State.USED], limit=500).items
        here = [each.id for each in items if each.tags.get("node") == node]
        self.ledger.submit([op.Lose(each, "gone", only_if_node_lost=True) for each in here])

    @rule(node=NODES, kind=st.sampled_from([op.DrainNode, op.UndrainNode, op.RemoveNode]))
    def change_node(self, node: str, kind: Any) -> None:
        self.ledger.submit([kind(node)])

    @rule(name=st.sampled_from(sorted(SPECS)))
    def create_or_remove_class(self, name: str) -> None:
        classes = ResourceClasses(self.ledger)
        if name in self.ledger.book(fresh=True).classes.classes:
            classes.remove(name)
        else:
            classes.create(name, SPECS[name])

    @rule()
    def open_anew(self) -> None:
        self.ledger.close()
        self.ledger = self._opened()

    @invariant()
    def the_books_balance_and_every_class_says_what_a_recomputation_says(self) -> None:
        settle(self.ledger)
        check(self.ledger)

    @invariant()
    def no_unit_is_given_twice_except_by_a_report(self) -> None:
        taken = [
            milli
            for node in ("n1", "n2")
            for device in devices_of(self.ledger, node).values()
            for milli in device.taken.values()
        ]
        assert self.rebooked or all(0 < milli <= UNIT for milli in taken)

    def _opened(self) -> Ledger:
        ledger = Ledger(LedgerSettings(self.url))
        ledger.open()
        return ledger

    def _lost(self) -> tuple[str, ...]:
        with self.ledger.readers.connect() as connection:
            found = list_applications(connection, states=[State.LOST], limit=500).items
        return tuple(each.id for each in found)

    def _register(self, node: str, devices: Any, reported: tuple[str, ...]) -> None:
        total = {"memory": 100}
        (outcome,) = self.ledger.submit(
            [op.RegisterNode(node, "Special", total, devices=devices, applications=reported)]
        )
        assert isinstance(outcome, Done), outcome
        if reported:
            self.rebooked.update(reported)


@pytest.mark.timeout(600)
def test_devices_are_exact_after_every_step(sqlite_template: Path) -> None:
    DeviceLedgerMachine.template = sqlite_template
    explores = settings.default is not None and settings.default.max_examples > 100
    chosen = settings(max_examples=300 if explores else 15, stateful_step_count=25, deadline=None)
    run_state_machine_as_test(DeviceLedgerMachine, settings=chosen)
