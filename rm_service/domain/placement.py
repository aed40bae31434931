"""Placement: which node takes an application that names none.

The index knows each node's tags and what it has left. It follows the ledger's events, so that within a turn
it is exact; what it chooses is verified on the node's own row all the same.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rm_service.domain.accounts import Account
from rm_service.domain.amounts import Amounts
from rm_service.domain.operations import Placement
from rm_service.domain.registrations import Node
from rm_service.domain.selectors import Selector, parse_selector
from rm_service.domain.tags import Tags
from rm_service.domain.view import Room

MAX_SELECTORS = 1024


@dataclass(slots=True)
class Candidate:
    """A node as the chooser sees it."""

    label_id: int
    instance: str
    tags: Tags
    """Tags and attributes together, attributes as text: what a selector is matched with."""
    total: Amounts
    left: dict[str, int] = field(default_factory=dict)
    is_open: bool = True

    def fits(self, request: Amounts) -> bool:
        left = self.left
        return all(left.get(dimension, 0) >= amount for dimension, amount in request.items() if amount > 0)

    def share_left(self, request: Amounts) -> float:
        """The smallest part of any requested dimension that would stay free: only to compare nodes."""
        shares = [
            (self.left.get(dimension, 0) - amount) / self.total[dimension]
            for dimension, amount in request.items()
            if amount > 0 and self.total.get(dimension)
        ]
        return min(shares, default=1.0)


STRATEGIES = ("first_fit", "best_fit", "spread")


class NodeIndex:
    """All schedulable nodes with what they have left, in ascending order of their names."""

    def __init__(self) -> None:
        self._nodes: dict[int, Candidate] = {}
        self._matching: dict[str, list[Candidate]] = {}

    def put(self, node: Node, account: Account) -> None:
        """Take in a node as it is now, or drop it when it takes nothing any more."""
        known = self._nodes.get(node.label_id)
        is_open = not node.removed and account.balance.closed is None and account.balance.total is not None
        tags = selectable(node)
        if known is not None and known.tags == tags and known.is_open == is_open:
            known.total, known.left = account.total or {}, account.left()
            return
        self._matching.clear()
        self._nodes[node.label_id] = Candidate(
            node.label_id, node.instance, tags, account.total or {}, account.left(), is_open
        )

    def follow(self, accounts: Iterable[Account]) -> None:
        """Take over what is left on these labels, as far as they are nodes."""
        for account in accounts:
            candidate = self._nodes.get(account.label.id)
            if candidate is not None:
                candidate.left = account.left()

    def fitting(self, placement: Placement, request: Amounts) -> Iterator[Candidate]:
        """The nodes that have room, in the order of the strategy; equal nodes by ascending name."""
        found = (node for node in self._match(placement.selector) if node.fits(request))
        if placement.strategy == "best_fit":
            return iter(sorted(found, key=lambda node: node.share_left(request)))
        if placement.strategy == "spread":
            return iter(sorted(found, key=lambda node: -node.share_left(request)))
        return found

    def rooms(self, placement: Placement, request: Amounts) -> tuple[int, tuple[Room, ...]]:
        """How many nodes match, and the most that any of them has left in each requested dimension."""
        matching = self._match(placement.selector)
        rooms = tuple(
            Room(
                dimension,
                max((node.left.get(dimension, 0) for node in matching), default=0),
                max((node.total.get(dimension, 0) for node in matching), default=0),
            )
            for dimension in request
        )
        return len(matching), rooms

    def _match(self, text: str) -> list[Candidate]:
        if text not in self._matching:
            if len(self._matching) >= MAX_SELECTORS:
                self._matching.clear()
            selector: Selector = parse_selector(text)
            found = [node for node in self._nodes.values() if node.is_open and selector.matches(node.tags)]
            self._matching[text] = sorted(found, key=lambda node: node.instance)
        return self._matching[text]


def selectable(node: Node) -> dict[str, str]:
    """What a selector of nodes is matched with: attributes as text, tags, and the node's name as `node`."""
    attributes = {
        key: value if isinstance(value, str) else str(value) for key, value in node.attributes.items()
    }
    return {**attributes, **node.tags, "node": node.instance}
