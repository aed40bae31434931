"""A ranking: the nodes that match a selector in the order of a strategy, kept from one question to the next.

One ranking serves all resource classes: each distinct selection of devices has a column of its own, so that a
device that is taken moves one node in one order, however many classes select it.
"""

from collections.abc import Callable, Sequence

from rm_service.domain.amounts import Amounts
from rm_service.domain.class_book import Need
from rm_service.domain.device_selection import UNIT
from rm_service.domain.lookup import Room
from rm_service.domain.node_order import NodeOrder, Place, Vector
from rm_service.domain.node_partition import Candidate, NodePartition
from rm_service.domain.operations import Placement
from rm_service.domain.selectors import parse_selector

DEFAULT_WEIGHTS = (("memory", 1.0), ("vcore", 1.0))

ORDER_OVERHEAD = 50
"""An order counts as so many places more than it has nodes."""

ALWAYS_FOLLOWED = 64
"""An order does not start anew for so few changes."""

MAX_COLUMNS = 128
"""So many different needs share an order; one more starts it anew with what is asked for."""

Key = tuple[bool, frozenset[str]]


class NodeRanking:
    """As of some moment of the partition; `catch_up` follows what changed since."""

    def __init__(
        self,
        partition: NodePartition,
        placement: Placement,
        dimensions: tuple[str, ...],
        needs: Sequence[Need],
    ) -> None:
        self._partition = partition
        self._selector = parse_selector(placement.selector)
        self._dimensions = dimensions
        self._needs = {need.key: need for need in needs}
        self._columns = {key: column for column, key in enumerate(self._needs)}
        self._whole, self._parts = _columns_by_signature(self._columns)
        self._rank = _rank_by(placement, dimensions, with_devices=bool(needs))
        self.order: NodeOrder
        self._clock: int
        self._start()

    def size(self) -> int:
        """How much of what may be kept this takes."""
        return len(self.order) + ORDER_OVERHEAD

    def answers(self, needs: Sequence[Need]) -> bool:
        """Whether it has a column for each of these."""
        return all(need.key in self._columns for need in needs)

    def with_needs(self, needs: Sequence[Need]) -> Sequence[Need]:
        """These and those that it has columns for, unless they are too many."""
        both = {**self._needs, **{need.key: need for need in needs}}
        return list(both.values()) if len(both) <= MAX_COLUMNS else needs

    def wanted(self, request: Amounts, needs: Sequence[Need]) -> Vector:
        """What `order.fitting` is asked for; nothing of what others need."""
        asked = [0] * len(self._columns)
        for need in needs:
            column = self._columns[need.key]
            asked[column] = max(asked[column], need.amount)
        return (*[request[dimension] for dimension in self._dimensions], *asked)

    def rooms(self, needs: Sequence[Need]) -> dict[str, Room]:
        """The most that any node has left, and in all, of each dimension and each class."""
        first, width = len(self._dimensions), len(self._dimensions) + len(self._columns)
        most = self.order.most() or (0,) * (2 * width)
        at = {dimension: place for place, dimension in enumerate(self._dimensions)}
        at |= {need.name: first + self._columns[need.key] for need in needs}
        return {name: Room(name, most[place], most[width + place]) for name, place in at.items()}

    def catch_up(self) -> None:
        """Follow what changed since, or start anew where that is cheaper."""
        changed = self._partition.changed_since(self._clock)
        if changed is None or len(changed) > max(self._looked_at, ALWAYS_FOLLOWED):
            self._start()
            return
        for label_id in changed:
            self._follow(label_id)
        self._clock = self._partition.clock

    def _start(self) -> None:
        self._looked_at, nodes = self._partition.perhaps_matching(self._selector)
        matching = [node for node in nodes if self._selector.matches(node.tags)]
        self.order = NodeOrder([(self._place(node), self._vector(node)) for node in matching])
        self._clock = self._partition.clock

    def _follow(self, label_id: int) -> None:
        node = self._partition.nodes.get(label_id)
        if node is None:
            matches = False
        elif node.since > self._clock:
            matches = self._selector.matches(node.tags)
        else:
            matches = label_id in self.order
        if node is not None and matches:
            self.order.put(self._place(node), self._vector(node))
        elif label_id in self.order:
            self.order.remove(label_id)

    def _place(self, node: Candidate) -> Place:
        return self._rank(node), node.instance, node.label_id

    def _vector(self, node: Candidate) -> Vector:
        """What is left in each requested dimension and each column, then the totals of these."""
        left, total = node.left, node.total
        lefts = [left.get(each, 0) for each in self._dimensions]
        totals = [total.get(each, 0) for each in self._dimensions]
        if not self._columns:
            return (*lefts, *totals)
        free, there_is = self._devices(node)
        return (*lefts, *free, *totals, *there_is)

    def _devices(self, node: Candidate) -> tuple[list[int], list[int]]:
        """By column what devices could still give, and what they could if nothing were taken."""
        free, there_is = [0] * len(self._columns), [0] * len(self._columns)
        for signature, (count, units, largest) in node.supply.by_signature.items():
            for column in self._whole.get(signature, ()):
                free[column] += units * UNIT
                there_is[column] += count * UNIT
            for column in self._parts.get(signature, ()):
                free[column] = max(free[column], largest)
                there_is[column] = max(there_is[column], UNIT if count else 0)
        return free, there_is


def _columns_by_signature(columns: dict[Key, int]) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """The columns in which each signature counts: those of whole units, and those of parts of one."""
    whole: dict[str, list[int]] = {}
    parts: dict[str, list[int]] = {}
    for (is_whole, signatures), column in columns.items():
        for signature in signatures:
            (whole if is_whole else parts).setdefault(signature, []).append(column)
    return whole, parts


def _rank_by(
    placement: Placement, dimensions: tuple[str, ...], *, with_devices: bool
) -> Callable[[Candidate], float]:
    """What the nodes are sorted by, smallest first. `with_devices`: all devices of a node count alike."""
    weights = placement.weights or DEFAULT_WEIGHTS

    def share_left(node: Candidate) -> float:
        share = node.share_left(dimensions)
        return min(share, node.supply.share_left) if with_devices else share

    match placement.strategy:
        case "best_fit":
            return share_left
        case "spread":
            return lambda node: -share_left(node)
        case "fair":
            return lambda node: node.load(weights)
        case "binpacking":
            return lambda node: -node.load(weights)
        case _:
            return lambda _: 0.0
