"""Whatever is asked of the ledger and in whatever order, the books balance after every step."""

import copy
import shutil
import tempfile
import uuid
from collections.abc import Mapping
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
from sqlalchemy import Table, select, update

from rm_service.domain import operations as op
from rm_service.domain.amounts import Amounts
from rm_service.domain.application import HOLDING, LIVE, Application, State
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.ledger import tables
from rm_service.ledger.audit import audit
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.queries.applications import list_applications, read_application
from rm_service.ledger.queries.holders import holder_ids
from rm_service.ledger.queries.labels import read_label
from rm_service.ledger.queries.usage import usage, usage_of_applications
from rm_service.ledger.rulebook import read_rule_book

NODES = ["h1", "h2"]
KEY_SETS = [
    ("user",),
    ("job",),
    ("user", "job"),
    ("queue",),
    ("partition", "queue"),
    ("creator",),
    ("queue", "user"),
]

small = st.integers(0, 12)
amounts = st.fixed_dictionaries({"memory": small}, optional={"vcore": small, "yarn.memory": small})
rooms = st.fixed_dictionaries({"memory": st.integers(0, 60)}, optional={"vcore": st.integers(0, 60)})
user_tags = st.fixed_dictionaries(
    {"user": st.sampled_from(["alice", "bob"])},
    optional={
        "creator": st.sampled_from(["IDE", "ML"]),
        "engineType": st.just("spark"),
        "queue": st.sampled_from(["root", "root.a", "root.a.b", "root.c"]),
        "partition": st.just("p1"),
        "job": st.sampled_from(["1", "2"]),
    },
)
node_names = st.sampled_from(NODES)
engine_names = st.sampled_from(["e1", "e2"])
limits = st.sampled_from(KEY_SETS).flatmap(
    lambda keys: st.fixed_dictionaries(
        {key: st.sampled_from(["*", {"user": "alice", "queue": "root.a"}.get(key, "1")]) for key in keys}
    )
)


class LedgerMachine(RuleBasedStateMachine):
    """Random operations on one ledger in an SQLite file."""

    template: ClassVar[Path]
    rules_document: ClassVar[Mapping[str, Any]]
    applications: Bundle[str] = Bundle("applications")

    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        path = shutil.copy(self.template, self.folder / "rm.db")
        self.ledger = Ledger(LedgerSettings(f"sqlite:///{path}", rules=self.rules_document))
        self.ledger.open()
        self.history: dict[int, dict[str, list[object]]] = {}
        self.rules_changed = False
        for instance in NODES:
            self._register(instance, {"memory": 30, "vcore": 30}, 0)
        self.ledger.submit_whole(op.SetLimit({"user": "*"}, {"memory": 40}))

    def teardown(self) -> None:
        if not hasattr(self, "ledger"):
            return
        try:
            self.the_past_is_what_it_was()
        finally:
            self.ledger.close()
            shutil.rmtree(self.folder)

    # What can be asked

    @rule(
        target=applications,
        tags=user_tags,
        node=st.none() | node_names,
        resource=amounts,
        wait=st.sampled_from([0, 600]),
        priority=st.integers(0, 2),
    )
    def apply(
        self, tags: Mapping[str, str], node: str | None, resource: Amounts, wait: int, priority: int
    ) -> Any:
        tags = tags if node is None else {**tags, "node": node}
        return self._apply(tags, resource, wait_seconds=wait, priority=priority)

    @rule(
        target=applications,
        tags=user_tags,
        resource=amounts,
        selector=st.sampled_from(["", "node=h1", "zone=a"]),
        strategy=st.sampled_from(["first_fit", "best_fit", "spread"]),
        wait=st.sampled_from([0, 600]),
    )
    def apply_for_a_node(
        self, tags: Mapping[str, str], resource: Amounts, selector: str, strategy: str, wait: int
    ) -> Any:
        return self._apply(tags, resource, wait_seconds=wait, placement=op.Placement(selector, strategy))

    @rule(target=applications, several=st.lists(st.tuples(user_tags, amounts), min_size=1, max_size=3))
    def apply_together(self, several: list[tuple[Mapping[str, str], Amounts]]) -> Any:
        asked = [self._asking(tags, resource) for tags, resource in several]
        outcomes = self.ledger.submit(asked, atomic=True)
        assert len({type(outcome) for outcome in outcomes}) == 1, "all or none"
        return multiple(*[operation.id for operation in asked])

    @rule(application_id=applications, amount=st.none() | amounts)
    def use(self, application_id: str, amount: Amounts | None) -> None:
        before = self._read(application_id)
        outcome = self._submit(op.Use(application_id, amount))
        if isinstance(outcome, Done) and before is not None and outcome.application is not None:
            held, holds = before.resource, outcome.application.resource
            more = {name: 1 for name, value in holds.items() if value > held.get(name, 0)}
            self._has_room(outcome.application, more)

    @rule(application_id=applications)
    def renew(self, application_id: str) -> None:
        self._submit(op.Renew(application_id))

    @rule(application_id=applications)
    def release(self, application_id: str) -> None:
        outcome = self._submit(op.Release(application_id))
        if isinstance(outcome, Done):
            again = self._submit(op.Release(application_id))
            assert isinstance(again, Done)
            assert again.repeated

    @rule(application_id=applications)
    def reclaim_what_is_due(self, application_id: str) -> None:
        before = self._read(application_id)
        due = self._make_due(tables.application, "id", application_id)
        outcome = self._submit(op.Reclaim(application_id))
        if due and before is not None and before.state in LIVE:
            assert isinstance(outcome, Done)
            assert outcome.application is not None
            assert outcome.application.state in {State.EXPIRED, State.RECLAIMED}

    @rule(instance=node_names, total=rooms, kept=st.integers(0, 2), comes_back=st.booleans())
    def register_node(self, instance: str, total: Amounts, kept: int, *, comes_back: bool) -> None:
        with self.ledger.readers.connect() as connection:
            lost = [found.id for found in list_applications(connection, states=[State.LOST]).items]
        self._register(instance, total, kept, tuple(lost) if comes_back else ())

    @rule(instance=node_names, draining=st.booleans())
    def drain_or_undrain(self, instance: str, draining: bool) -> None:
        self._submit(op.DrainNode(instance) if draining else op.UndrainNode(instance))

    @rule(instance=node_names)
    def lose_node(self, instance: str) -> None:
        if isinstance(self._submit(op.LoseNode(instance, "gone")), Done):
            self.ledger.submit([op.Lose(found, "gone") for found in self._on_node(instance)])

    @rule(instance=node_names, tags=limits, total=rooms)
    def change_limits_while_a_node_is_away(
        self, instance: str, tags: Mapping[str, str], total: Amounts
    ) -> None:
        self._apply({"user": "alice", "job": "1", "queue": "root.a", "node": instance}, {"memory": 1})
        self.lose_node(instance)
        self.set_limit(tags, total, 0)
        self.register_node(instance, total, 0, comes_back=True)

    @rule(instance=node_names)
    def remove_node(self, instance: str) -> None:
        held = self._on_node(instance)
        outcome = self._submit(op.RemoveNode(instance))
        if isinstance(outcome, Done):
            assert not held

    @rule(instance=engine_names, application_id=applications, resource=st.none() | amounts)
    def register_engine(self, instance: str, application_id: str, resource: Amounts | None) -> None:
        self._submit(op.RegisterEngine(instance, application_id, resource=resource))

    @rule(instance=engine_names, resource=st.none() | amounts)
    def heartbeat_engine(self, instance: str, resource: Amounts | None) -> None:
        self._submit(op.HeartbeatEngine(instance, 60, resource))

    @rule(instance=engine_names, silent=st.booleans())
    def end_engine(self, instance: str, silent: bool) -> None:
        if silent:
            self._make_due(tables.engine, "instance", instance)
        self._submit(op.LoseEngine(instance, "silent") if silent else op.RemoveEngine(instance))

    @rule(tags=limits, total=rooms, kept=st.integers(0, 3))
    def set_limit(self, tags: Mapping[str, str], total: Amounts, kept: int) -> None:
        protected = {"memory": min(kept, total["memory"])}
        outcome = self.ledger.submit_whole(op.SetLimit(tags, total, protected))
        assert isinstance(outcome, Done), outcome

    @rule(limit_id=st.integers(1, 3))
    def remove_limit(self, limit_id: int) -> None:
        self.ledger.submit_whole(op.RemoveLimit(limit_id))

    @rule()
    def change_rules(self) -> None:
        self.rules_changed = not self.rules_changed
        document: dict[str, Any] = copy.deepcopy(dict(self.rules_document))
        if self.rules_changed:
            kept = [found for found in document["label_rules"] if found["name"] != "creator"]
            document["label_rules"] = [*kept, {"name": "job", "keys": ["job"], "kind": "rollup"}]
        assert isinstance(self.ledger.submit_whole(op.ChangeRules(document)), Done)

    @rule()
    def write_checkpoint(self) -> None:
        self.ledger.submit_whole(op.WriteCheckpoint())

    # What must be true after each step

    @invariant()
    def the_books_balance(self) -> None:
        result = audit(self.ledger.readers)
        assert result.differences == []

    @invariant()
    def roll_ups_are_the_sums_of_the_applications(self) -> None:
        with self.ledger.readers.connect() as connection:
            book = read_rule_book(connection)
            now = connection.execute(select(tables.ledger_head.c.time)).scalar_one()
            sums = {
                key: usage_of_applications(connection, book, [key]).rows for key in ("user", "queue", "job")
            }
            for key in ("user", "queue"):
                assert usage(connection, book, [key]).rows == sums[key]
        self.history[now] = {key: held(rows) for key, rows in sums.items()}

    def the_past_is_what_it_was(self) -> None:
        with self.ledger.readers.connect() as connection:
            book = read_rule_book(connection)
            for moment, answers in self.history.items():
                for key, rows in answers.items():
                    assert held(usage(connection, book, [key], at=moment).rows) == rows

    # How it is asked

    def _register(self, instance: str, total: Amounts, kept: int, reported: tuple[str, ...] = ()) -> None:
        protected = {"memory": min(kept, total["memory"])}
        tags = {"zone": "a" if instance == "h1" else "b"}
        self._submit(op.RegisterNode(instance, "Load", total, protected, tags, applications=reported))

    def _asking(self, tags: Mapping[str, str], resource: Amounts, **more: Any) -> op.Apply:
        request = {"resource": dict(resource)}
        return op.Apply(str(uuid.uuid4()), tags, resource, request=request, **more)

    def _apply(self, tags: Mapping[str, str], resource: Amounts, **more: Any) -> Any:
        operation = self._asking(tags, resource, **more)
        outcome = self._submit(operation)
        if isinstance(outcome, Refused):
            assert outcome.code in {
                Code.INSUFFICIENT_RESOURCES,
                Code.UNKNOWN_NODE,
                Code.NODE_NOT_SCHEDULABLE,
            }
            assert self._read(operation.id) is None
            return multiple()
        assert outcome.application is not None
        if outcome.application.state is State.LOCKED:
            self._has_room(outcome.application, outcome.application.requested)
        again = self._submit(operation)
        assert isinstance(again, Done)
        assert again.repeated
        return operation.id

    def _has_room(self, application: Application, asked: Amounts) -> None:
        """What was granted fits: nothing that was asked for is held beyond total - protected."""
        with self.ledger.readers.connect() as connection:
            book = read_rule_book(connection)
            for tags in self.ledger.label_tags(application.label_ids):
                account = read_label(connection, book, tags)
                assert account is not None
                left = account.left()
                for dimension, amount in account.charge(asked).items():
                    assert amount <= 0 or left.get(dimension, 0) >= 0

    def _submit(self, operation: op.DecidedOperation) -> Outcome:
        return self.ledger.submit([operation])[0]

    def _read(self, application_id: str) -> Application | None:
        with self.ledger.readers.connect() as connection:
            found = read_application(connection, application_id)
        assert found is None or (found.state in LIVE) is (found.finished_at is None)
        assert found is None or found.state in HOLDING or not (found.locked_now or found.used_now)
        return found

    def _on_node(self, instance: str) -> list[str]:
        with self.ledger.readers.connect() as connection:
            book = read_rule_book(connection)
            account = read_label(connection, book, {"node": instance})
            return [] if account is None else holder_ids(connection, book.rules, account.label, 1000)

    def _make_due(self, table: Table, key: str, value: str) -> bool:
        """Move a deadline into the past, as if the time had gone by."""
        due = update(table).where(table.c[key] == value, table.c.deadline.is_not(None)).values(deadline=1)
        with self.ledger.readers.begin() as connection:
            return connection.execute(due).rowcount > 0


def held(rows: Any) -> list[object]:
    return [(dict(row.tags), row.locked, row.used, row.applications) for row in rows if row.applications]


@pytest.mark.timeout(300)
def test_the_books_balance_after_every_step(sqlite_template: Path, default_rules: Mapping[str, Any]) -> None:
    LedgerMachine.template, LedgerMachine.rules_document = sqlite_template, default_rules
    explores = settings.default is not None and settings.default.max_examples > 100
    chosen = settings(max_examples=500 if explores else 30, stateful_step_count=40, deadline=None)
    run_state_machine_as_test(LedgerMachine, settings=chosen)
