"""The placement index and how far in the outbox it has followed the ledger."""

from collections.abc import Collection, Iterable

from sqlalchemy import Connection, select

from rm_service.domain.accounts import Balance
from rm_service.domain.amounts import Amounts
from rm_service.domain.events import Kind
from rm_service.domain.operations import Placement
from rm_service.domain.placement import NodeIndex
from rm_service.domain.view import View
from rm_service.ledger import tables
from rm_service.ledger.class_rows import learn_signatures
from rm_service.ledger.queries.events import last_seq
from rm_service.ledger.rulebook import Labels, RuleBook
from rm_service.ledger.turn import Turn, Wanted

MAX_BEHIND = 5_000
"""More events than this are not followed one by one: all nodes are read again."""


CHUNK = 1_000
"""Nodes are read so many at a time: PostgreSQL takes the turn from who is silent for long."""


class NodeWatch:
    """Keeps one process' placement index exact: brought up to the head within a turn, before it is asked."""

    def __init__(self) -> None:
        self.index = NodeIndex()
        self._seq: int | None = None
        self._spoilt: set[int] = set()

    def prepare(
        self,
        connection: Connection,
        book: RuleBook,
        labels: Labels,
        wanted: Iterable[tuple[Placement, Amounts]],
    ) -> None:
        """Before a turn: read all nodes if they are not known, and put them in the orders that are asked for.

        It takes long where nodes are many, and nobody waits for it who has the turn.
        """
        wanted = list(wanted)
        if not wanted:
            return
        if self._seq is None:
            with connection.begin():
                seq = last_seq(connection)
                self.index = NodeIndex()
                self._read(Turn(connection), None, book, labels)
                self._seq = seq
        self.index.classes = book.classes
        orders = {(placement, tuple(sorted(resource))): resource for placement, resource in wanted}
        for (placement, _), resource in orders.items():
            next(self.index.fitting(placement, resource), None)

    def catch_up(self, turn: Turn, seq: int, book: RuleBook, labels: Labels) -> None:
        """Follow the events up to `seq`, the head of this turn."""
        self.index.classes = book.classes
        if self._seq == seq and not self._spoilt:
            return
        known = self._seq
        touched = None if known is None or seq - known > MAX_BEHIND else self._touched(turn, known)
        if touched is None:
            self.index = NodeIndex()
            self.index.classes = book.classes
        self._read(turn, None if touched is None else touched | self._spoilt, book, labels)
        self._seq = seq
        self._spoilt = set()

    def sync(self, view: View) -> None:
        """Follow what the batch itself has changed so far."""
        for label_id in view.unsynced & view.nodes.keys():
            self.index.put(view.nodes[label_id], view.accounts[label_id])
        self.index.follow(view.accounts[label_id] for label_id in view.unsynced - view.nodes.keys())
        view.unsynced.clear()

    def spoil(self, label_ids: Collection[int]) -> None:
        """What was followed on these labels did not come true: they are read again."""
        self._spoilt.update(label_ids)

    def committed(self, view: View, seq_before: int) -> None:
        """Take over what this process has just committed itself, if nothing is missing before it."""
        if self._seq != seq_before:
            return
        self.index.follow(view.accounts[label_id] for label_id in view.changed_accounts)
        for label_id in view.changed_nodes:
            self.index.put(view.nodes[label_id], view.accounts[label_id])
        self._seq = view.seq

    def forget(self) -> None:
        """Start anew: nobody knows how much of what was followed came true."""
        self._seq = None

    def _touched(self, turn: Turn, seq: int) -> set[int] | None:
        """The labels whose balances moved since event `seq`; None when other rules moved them all."""
        columns = (tables.event.c.kind, tables.event.c.label_ids)
        rows = turn.connection.execute(select(*columns).where(tables.event.c.seq > seq)).all()
        if any(row.kind == Kind.RULES_CHANGED for row in rows):
            return None
        return {label_id for row in rows for label_id in row.label_ids}

    def _read(self, turn: Turn, touched: set[int] | None, book: RuleBook, labels: Labels) -> None:
        ids = select(tables.node.c.label_id).where(~tables.node.c.removed)
        if touched is not None:
            ids = select(tables.node.c.label_id).where(tables.node.c.label_id.in_(touched))
        found = sorted(turn.connection.execute(ids).scalars())
        for first in range(0, len(found), CHUNK):
            label_ids = set(found[first : first + CHUNK])
            rows = turn.read_rows(Wanted(label_ids=label_ids, node_label_ids=label_ids))
            for label_id, (key, tags) in labels.of_ids(turn.connection, book.not_met(label_ids)).items():
                book.learn(label_id, key, tags)
            accounts = {balance.label_id: book.account(balance) for balance in rows.balances}
            know_devices(turn, book, rows.balances)
            for node in rows.nodes:
                self.index.put(node, accounts[node.label_id])


def know_devices(turn: Turn, book: RuleBook, balances: Iterable[Balance]) -> None:
    """Make sure that the attributes of all devices in these balances are known."""
    names = {device.signature for balance in balances for device in balance.devices or ()}
    if not names <= book.signatures.keys():
        learn_signatures(turn.connection, book.signatures, names)
