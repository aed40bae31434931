"""Nodes: registered, alive, drained, taken away with what ran there."""

from dataclasses import dataclass

from rm_service.domain import operations as op
from rm_service.domain.outcomes import Done, Outcome, Refused
from rm_service.domain.selectors import Selector
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.assignments import Assignments, read_assignments
from rm_service.ledger.queries.holders import holder_ids
from rm_service.ledger.queries.nodes import NodeRecord, list_nodes, read_node
from rm_service.ledger.queries.paging import Page

CHUNK = 500
"""How many applications are given back in one go when their node is taken away."""
REMOVED = "the node was removed"


@dataclass(frozen=True, slots=True)
class Nodes:
    """The life of nodes. Each change is answered with the ledger's outcome.

    The empty partition has the ledger's own nodes; the others those of resource managers.
    """

    ledger: Ledger
    silence_seconds: int
    """How long a node that has sent a heartbeat may be silent."""

    def register(self, operation: op.RegisterNode) -> Outcome:
        """Register a node, or what changed of it."""
        return self._submit(operation)

    def heartbeat(self, instance: str, partition: str = "") -> Outcome:
        """Note a sign of life."""
        return self._submit(op.HeartbeatNode(instance, self.silence_seconds, partition))

    def drain(self, instance: str, reason: str | None, partition: str = "") -> Outcome:
        """Take nothing new from now on."""
        return self._submit(op.DrainNode(instance, reason, partition))

    def undrain(self, instance: str, partition: str = "") -> Outcome:
        """Take new work again."""
        return self._submit(op.UndrainNode(instance, partition))

    def remove(self, instance: str, partition: str = "") -> Outcome:
        """Take a node away: it is closed, what it holds is given back as lost, its registration goes.

        Resumable: if the process ends in between, the sweeper goes on giving back, and asking again finishes.
        """
        outcome = self._submit(op.LoseNode(instance, REMOVED, partition=partition))
        while not isinstance(outcome, Refused):
            held = self._held(instance, partition)
            if held and self._give_back(held):
                continue
            return self._submit(op.RemoveNode(instance, partition))
        return outcome

    def read(self, instance: str, partition: str = "") -> NodeRecord | None:
        """One registered node, None if there is none of this name."""
        book = self.ledger.book()
        with self.ledger.readers.connect() as connection:
            return read_node(connection, book, instance, partition)

    def page(self, selector: Selector, limit: int, cursor: str | None) -> Page[NodeRecord]:
        """A page of nodes, by name. Raises CursorError."""
        book = self.ledger.book()
        with self.ledger.readers.connect() as connection:
            return list_nodes(connection, book, selector=selector, limit=limit, cursor=cursor)

    def assignments(self, instance: str, partition: str = "") -> Assignments | None:
        """Who holds which of its devices; None without such a node."""
        record = self.read(instance, partition)
        if record is None:
            return None
        label_id = record.node.label_id
        with self.ledger.readers.connect() as connection:
            found = read_assignments(connection, [label_id])[label_id]
        return None if found.removed else found

    def _give_back(self, held: list[str]) -> bool:
        """Whether any of them was given back; none is when the node has registered again meanwhile."""
        outcomes = self.ledger.submit(
            [op.Lose(application_id, REMOVED, only_if_node_lost=True) for application_id in held]
        )
        return any(isinstance(outcome, Done) and not outcome.repeated for outcome in outcomes)

    def _held(self, instance: str, partition: str) -> list[str]:
        record = self.read(instance, partition)
        if record is None:
            return []
        with self.ledger.readers.connect() as connection:
            return holder_ids(connection, self.ledger.book().rules, record.account.label, CHUNK)

    def _submit(self, operation: op.NodeOperation) -> Outcome:
        return self.ledger.submit([operation])[0]
