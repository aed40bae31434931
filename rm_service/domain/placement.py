"""Placement: which node takes an application that names none.

The index knows each node's tags and what it has left. It follows the ledger's events, so that within a turn
it is exact; what it chooses is verified on the node's own row all the same.

Each question that is asked again and again (which nodes, in which order) has an order of its own, kept from
one ask to the next: what an ask costs hardly depends on how many nodes there are.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from rm_service.domain.accounts import Account
from rm_service.domain.amounts import NOTHING, Amounts
from rm_service.domain.class_book import CLASS, NO_CLASSES, Need
from rm_service.domain.node_order import NodeOrder
from rm_service.domain.node_partition import Candidate, NodePartition
from rm_service.domain.operations import Placement
from rm_service.domain.registrations import Node
from rm_service.domain.selectors import parse_selector
from rm_service.domain.view import Room

STRATEGIES = ("first_fit", "best_fit", "spread", "fair", "binpacking")
"""Which of the nodes with room is taken; of equal nodes always the first by name.

- `first_fit`: the first by name.
- `best_fit`: the fullest: the smallest share left, before the request, in any of the requested dimensions.
- `spread`: the emptiest, measured in the same way.
- `fair`: the emptiest by the weighted mean of the used shares of the dimensions in the weights.
- `binpacking`: the fullest, measured in the same way.
"""

LOCAL_IMAGES = "si/local-images"
"""The attribute in which a node lists the container images that it has, separated by commas or blanks."""
PREFERRED_AMONG = 64

DEFAULT_WEIGHTS = (("memory", 1.0), ("vcore", 1.0))

MAX_PLACES = 500_000
"""So many places are kept in all orders together; the orders that were not asked for longest go first."""

ORDER_OVERHEAD = 50
"""An order counts as so many places more than it has nodes."""

ALWAYS_FOLLOWED = 64
"""An order does not start anew for so few changes."""


class NodeIndex:
    """All schedulable nodes with what they have left."""

    def __init__(self) -> None:
        self.classes = NO_CLASSES
        """The resource classes of the present epoch."""
        self._nodes: dict[int, Candidate] = {}
        self._partitions: dict[str, NodePartition] = {}
        self._rankings: OrderedDict[tuple[object, ...], _Ranking] = OrderedDict()
        self._places = 0

    def put(self, node: Node, account: Account) -> None:
        """Take in a node as it is now, or drop it when it takes nothing any more."""
        known = self._nodes.get(node.label_id)
        is_open = not node.removed and account.balance.closed is None and account.balance.total is not None
        tags = selectable(node)
        if known is not None and is_open and known.partition == node.partition and known.tags == tags:
            self._move(known, account)
            return
        if known is not None:
            self._partitions[known.partition].remove(self._nodes.pop(node.label_id))
        if is_open:
            found = Candidate(
                node.label_id,
                node.partition,
                node.instance,
                tags,
                account.total or NOTHING,
                account.left(),
                account.balance.devices,
            )
            self._nodes[node.label_id] = found
            self._partitions.setdefault(node.partition, NodePartition()).add(found)

    def follow(self, accounts: Iterable[Account]) -> None:
        """Take over what is left on these labels, as far as they are nodes."""
        for account in accounts:
            known = self._nodes.get(account.label.id)
            if known is not None:
                self._move(known, account)

    def _move(self, known: Candidate, account: Account) -> None:
        partition = self._partitions[known.partition]
        partition.move(known, account.total or NOTHING, account.left(), account.balance.devices)

    def fitting(self, placement: Placement, request: Amounts) -> Iterator[Candidate]:
        """The nodes of the partition that have room, in the order of the strategy (`STRATEGIES`).

        Only positive amounts need room. Nothing may be put or followed while the iterator is in use.
        """
        partition = self._partitions.get(placement.partition)
        dimensions = tuple(sorted([dimension for dimension, amount in request.items() if amount > 0]))
        if partition is None or not all(map(partition.has, dimensions)):
            return iter(())
        needs = self.classes.needs(placement.classes)
        wanted = (*[request[dimension] for dimension in dimensions], *[need.amount for need in needs])
        order = self._order(partition, placement, dimensions, needs)
        return map(self._nodes.__getitem__, order.fitting(wanted))

    def rooms(self, placement: Placement, request: Amounts) -> tuple[int, tuple[Room, ...]]:
        """How many nodes match, and the most that any of them has left in each requested dimension."""
        partition = self._partitions.get(placement.partition)
        if partition is None:
            return 0, tuple(Room(dimension, 0, 0) for dimension in request)
        dimensions = tuple(sorted(filter(partition.has, request)))
        needs = self.classes.needs(placement.classes)
        order = self._order(partition, placement, dimensions, needs)
        names = (*dimensions, *[need.name for need in needs])
        most = order.most() or (0,) * (2 * len(names))
        lefts = dict(zip(names, most[: len(names)], strict=True))
        totals = dict(zip(names, most[len(names) :], strict=True))
        wanted = (*request, *[f"{CLASS}{name}" for name, _ in placement.classes])
        return len(order), tuple(
            Room(dimension, lefts.get(dimension, 0), totals.get(dimension, 0)) for dimension in wanted
        )

    def _order(
        self,
        partition: NodePartition,
        placement: Placement,
        dimensions: tuple[str, ...],
        needs: Sequence[Need],
    ) -> NodeOrder:
        """The order that this question has had before, brought up to date."""
        key = (
            placement.partition,
            placement.selector,
            placement.strategy,
            placement.weights,
            dimensions,
            tuple([need.key for need in needs]),
        )
        ranking = self._rankings.get(key)
        if ranking is None:
            ranking = self._rankings[key] = _Ranking(partition, placement, dimensions, needs)
            self._places += ranking.size()
        else:
            self._rankings.move_to_end(key)
            before = ranking.size()
            ranking.catch_up()
            self._places += ranking.size() - before
        while self._places > MAX_PLACES and len(self._rankings) > 1:
            self._places -= self._rankings.popitem(last=False)[1].size()
        return ranking.order


class _Ranking:
    """The nodes that match a selector, in the order of a strategy, as of some moment of their partition."""

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
        self._needs = needs
        self._rank = _rank_by(placement, dimensions, needs)
        self._clock: int
        self._start()

    def size(self) -> int:
        """How much of what may be kept this takes."""
        return len(self.order) + ORDER_OVERHEAD

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

    def _place(self, node: Candidate) -> tuple[float, str, int]:
        return self._rank(node), node.instance, node.label_id

    def _vector(self, node: Candidate) -> tuple[int, ...]:
        """What is left in each requested dimension and for each need, then the totals of these."""
        left, total, devices = node.left, node.total, node.devices or ()
        return (
            *[left.get(each, 0) for each in self._dimensions],
            *[need.left(devices) for need in self._needs],
            *[total.get(each, 0) for each in self._dimensions],
            *[need.total(devices) for need in self._needs],
        )


def _rank_by(
    placement: Placement, dimensions: tuple[str, ...], needs: Sequence[Need]
) -> Callable[[Candidate], float]:
    """What the nodes are sorted by, smallest first."""
    weights = placement.weights or DEFAULT_WEIGHTS

    def share_left(node: Candidate) -> float:
        devices = node.devices or ()
        of_devices = [need.left(devices) / total for need in needs if (total := need.total(devices))]
        return min([node.share_left(dimensions), *of_devices])

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


def prefer_image(fitting: Iterator[Candidate], image: str) -> Iterator[Candidate]:
    """The nodes in their order, but of the first 64 those come first that have the container image."""
    first = list(islice(fitting, PREFERRED_AMONG))
    have = [image in node.tags.get(LOCAL_IMAGES, "").replace(",", " ").split() for node in first]
    yield from (node for node, has in zip(first, have, strict=True) if has)
    yield from (node for node, has in zip(first, have, strict=True) if not has)
    yield from fitting


def selectable(node: Node) -> dict[str, str]:
    """What a selector of nodes is matched with: attributes as text, tags, and the node's name as `node`."""
    attributes = {
        key: value if isinstance(value, str) else str(value) for key, value in node.attributes.items()
    }
    return {**attributes, **node.tags, "node": node.instance}
