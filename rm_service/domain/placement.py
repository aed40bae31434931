"""Placement: which node takes an application that names none.

The index knows each node's tags and what it has left. It follows the ledger's events, so that within a turn
it is exact; what it chooses is verified on the node's own row all the same.

Each question that is asked again and again (which nodes, in which order) has an order of its own, kept from
one ask to the next: what an ask costs hardly depends on how many nodes there are.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from rm_service.domain.accounts import Account
from rm_service.domain.amounts import NOTHING, Amounts
from rm_service.domain.class_book import CLASS, NO_CLASSES, Need, Supply
from rm_service.domain.lookup import Room
from rm_service.domain.node_partition import Candidate, NodePartition
from rm_service.domain.node_ranking import NodeRanking
from rm_service.domain.operations import Placement
from rm_service.domain.registrations import Node

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


MAX_PLACES = 500_000
"""So many places are kept in all orders together; the orders that were not asked for longest go first."""


class NodeIndex:
    """All schedulable nodes with what they have left."""

    def __init__(self) -> None:
        self.classes = NO_CLASSES
        """The resource classes of the present epoch."""
        self._nodes: dict[int, Candidate] = {}
        self._partitions: dict[str, NodePartition] = {}
        self._rankings: OrderedDict[tuple[object, ...], NodeRanking] = OrderedDict()
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
                Supply(account.balance.devices or ()),
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

        Only positive amounts need room. Of several classes that are asked for together a node may have each
        and still not all: its devices are chosen later. Nothing may be put or followed while the iterator is
        in use.
        """
        partition = self._partitions.get(placement.partition)
        dimensions = tuple(sorted([dimension for dimension, amount in request.items() if amount > 0]))
        if partition is None or not all(map(partition.has, dimensions)):
            return iter(())
        needs = self.classes.needs(placement.classes)
        ranking = self._ranking(partition, placement, dimensions, needs)
        return map(self._nodes.__getitem__, ranking.order.fitting(ranking.wanted(request, needs)))

    def rooms(self, placement: Placement, request: Amounts) -> tuple[int, tuple[Room, ...]]:
        """How many nodes match, and the most that any of them has left in each requested dimension."""
        wanted = (*request, *[f"{CLASS}{name}" for name, _ in placement.classes])
        partition = self._partitions.get(placement.partition)
        if partition is None:
            return 0, tuple(Room(dimension, 0, 0) for dimension in wanted)
        dimensions = tuple(sorted(filter(partition.has, request)))
        needs = self.classes.needs(placement.classes)
        ranking = self._ranking(partition, placement, dimensions, needs)
        rooms = ranking.rooms(needs)
        return len(ranking.order), tuple(rooms.get(each) or Room(each, 0, 0) for each in wanted)

    def _ranking(
        self,
        partition: NodePartition,
        placement: Placement,
        dimensions: tuple[str, ...],
        needs: Sequence[Need],
    ) -> NodeRanking:
        """The order that this question has had before, brought up to date."""
        key = (
            placement.partition,
            placement.selector,
            placement.strategy,
            placement.weights,
            dimensions,
            bool(needs),
        )
        ranking = self._rankings.get(key)
        if ranking is not None and not ranking.answers(needs):
            self._places -= ranking.size()
            del self._rankings[key]
            needs, ranking = ranking.with_needs(needs), None
        if ranking is None:
            if needs:
                needs = self.classes.with_all_needs(needs)
            ranking = self._rankings[key] = NodeRanking(partition, placement, dimensions, needs)
            self._places += ranking.size()
        else:
            self._rankings.move_to_end(key)
            before = ranking.size()
            ranking.catch_up()
            self._places += ranking.size() - before
        while self._places > MAX_PLACES and len(self._rankings) > 1:
            self._places -= self._rankings.popitem(last=False)[1].size()
        return ranking


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
