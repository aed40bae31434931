"""Whatever a client says and in whatever mixture, the books balance after every batch."""

import shutil
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from rm_service.domain import operations as op
from rm_service.domain.clients import Client, Termination
from rm_service.domain.outcomes import Done, Refused
from rm_service.ledger.ledger import Ledger, LedgerSettings
from tests.client_words import (
    RM,
    adding,
    asking,
    booking,
    creating_node,
    decommissioning,
    partition_of,
    releasing,
    removing,
)
from tests.ledger.telling import check_books, register, rows, say

KEYS = st.sampled_from(["k", "l", "m"])
APPS = st.sampled_from(["one", "two", "three"])
NODES = st.sampled_from(["n1", "n2"])
MEMORY = st.integers(1, 8)


class ClientMachine(RuleBasedStateMachine):
    """Batches of whatever a client may say, on SQLite: a real batch reads and writes only some rows."""

    template: ClassVar[Path]

    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        path = shutil.copy(self.template, self.folder / "rm.db")
        self.ledger = Ledger(LedgerSettings(f"sqlite:///{path}"))
        self.ledger.open()
        self.client = register(self.ledger)
        tags = {"partition": partition_of(RM), "queue": "root.a"}
        assert isinstance(self.ledger.submit_whole(op.SetLimit(tags, {"apps": 2, "memory": 12})), Done)
        self.ids: list[str] = []
        say(self.ledger, creating_node("n1"))

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.ledger.close()
            shutil.rmtree(self.folder)

    def said(self, client: Client) -> st.SearchStrategy[op.DecidedOperation]:
        known = st.sampled_from([None, *self.ids])
        more = {"client": st.just(client)}
        return st.one_of(
            st.builds(adding, APPS, **more),
            st.builds(
                asking,
                KEYS,
                st.none() | APPS,
                memory=MEMORY,
                count=st.integers(1, 3),
                priority=st.integers(0, 1),
                node=st.none() | NODES,
                **more,
            ),
            st.builds(booking, KEYS, NODES, st.none() | APPS, memory=MEMORY, anonymous=st.booleans(), **more),
            st.builds(
                releasing,
                st.none() | KEYS,
                st.none() | APPS,
                id=known,
                termination=st.sampled_from(list(Termination)),
                only_ask=st.booleans(),
                **more,
            ),
            st.builds(removing, APPS, **more),
            st.builds(creating_node, NODES, st.integers(1, 20), **more),
            st.builds(decommissioning, NODES, **more),
        )

    @rule(data=st.data(), size=st.integers(1, 8))
    def one_message(self, data: st.DataObject, size: int) -> None:
        operations = data.draw(st.lists(self.said(self.client), min_size=size, max_size=size))
        say(self.ledger, *operations)
        self.ids = [row.id for row in rows(self.ledger)]

    @rule(node=NODES, apps=st.lists(st.none() | APPS, min_size=1, max_size=3))
    def a_node_with_what_runs_there_or_nothing(self, node: str, apps: list[str | None]) -> None:
        before = [self.without_registration(row) for row in rows(self.ledger)]
        reports = [
            booking(f"r{at}", node, app, uuid=f"{node}-{app}-r{at}", client=self.client)
            for at, app in enumerate(apps)
        ]
        outcomes = say(self.ledger, creating_node(node, client=self.client), *reports, atomic=True)
        if any(isinstance(outcome, Refused) for outcome in outcomes):
            assert [self.without_registration(row) for row in rows(self.ledger)] == before

    @rule()
    def register_again(self) -> None:
        self.client = register(self.ledger)

    @invariant()
    def the_books_balance(self) -> None:
        check_books(self.ledger)

    @staticmethod
    def without_registration(row: Any) -> tuple[Any, ...]:
        return (row.id, row.state, row.used, row.waits_on, row.reason)


@pytest.mark.timeout(300)
def test_whatever_a_client_says_the_books_balance(sqlite_template: Path) -> None:
    ClientMachine.template = sqlite_template
    explores = settings.default is not None and settings.default.max_examples > 100
    chosen = settings(max_examples=300 if explores else 25, stateful_step_count=15, deadline=None)
    run_state_machine_as_test(ClientMachine, settings=chosen)
