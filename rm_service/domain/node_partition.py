"""The schedulable nodes of one partition: found by their tags, and which of them changed since when."""

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain

from rm_service.domain.amounts import Amounts
from rm_service.domain.class_book import NO_SUPPLY, Supply
from rm_service.domain.device_selection import Device
from rm_service.domain.selectors import Operator, Requirement, Selector
from rm_service.domain.tags import Tags

_FULFILLED_WITHOUT = (Operator.NOT_IN, Operator.MISSING)
"""A node without the key fulfils these, so the nodes with the key do not tell who matches."""


@dataclass(slots=True, eq=False)
class Candidate:
    """A node as the chooser sees it."""

    label_id: int
    partition: str
    instance: str
    tags: Tags
    """Tags and attributes together, attributes as text: what a selector is matched with."""
    total: Amounts
    left: Amounts
    devices: tuple[Device, ...] | None = None
    supply: Supply = NO_SUPPLY
    """The same, summed up."""
    since: int = 0
    """The partition's clock when it came in with these tags."""

    def share_left(self, dimensions: Collection[str]) -> float:
        """The smallest part that is free of any of these dimensions; 1 where it has none of them."""
        total, left = self.total, self.left
        return min([left[each] / total[each] for each in dimensions if total.get(each)], default=1.0)

    def load(self, weights: Collection[tuple[str, float]]) -> float:
        """The weighted mean of the used shares of the dimensions that it has; 0 where it has none."""
        total, left = self.total, self.left
        load = weighed = 0.0
        for dimension, weight in weights:
            amount = total.get(dimension)
            if amount:
                load += weight * (1 - left[dimension] / amount)
                weighed += weight
        return load / weighed if weighed else 0.0


class NodePartition:
    """Nodes by label id. `clock` counts the changes: whoever has followed them may go on from there."""

    def __init__(self) -> None:
        self.nodes: dict[int, Candidate] = {}
        self.clock = 0
        self._by_tag: dict[str, dict[str, set[int]]] = {}
        self._dimensions: Counter[str] = Counter()
        self._changed: OrderedDict[int, int] = OrderedDict()
        """Label id to the clock at its last change, the latest change last."""
        self._forgotten = 0
        """Of changes up to this clock not all are known any more."""

    def add(self, node: Candidate) -> None:
        """Take in a node that is not there."""
        self.nodes[node.label_id] = node
        for key, value in node.tags.items():
            self._by_tag.setdefault(key, {}).setdefault(value, set()).add(node.label_id)
        self._dimensions.update(node.total.keys())
        self._note(node.label_id)
        node.since = self.clock

    def remove(self, node: Candidate) -> None:
        """Drop a node that is there."""
        del self.nodes[node.label_id]
        for key, value in node.tags.items():
            self._by_tag[key][value].discard(node.label_id)
            if not self._by_tag[key][value]:
                del self._by_tag[key][value]
        self._dimensions.subtract(node.total.keys())
        self._note(node.label_id)
        if len(self._changed) > 2 * len(self.nodes) + 1_000:  # mostly nodes that are gone
            self._changed.clear()
            self._forgotten = self.clock

    def move(
        self, node: Candidate, total: Amounts, left: Amounts, devices: tuple[Device, ...] | None
    ) -> None:
        """Take over what a node has now."""
        if total.keys() != node.total.keys():
            self._dimensions.update(total.keys())
            self._dimensions.subtract(node.total.keys())
        elif left == node.left and total == node.total and devices is node.devices:
            return
        node.total, node.left = total, left
        if devices is not node.devices:
            node.devices, node.supply = devices, Supply(devices or ())
        self._note(node.label_id)

    def has(self, dimension: str) -> bool:
        """Whether any node has an amount of this dimension, be it 0."""
        return self._dimensions[dimension] > 0

    def changed_since(self, clock: int) -> list[int] | None:
        """The label ids of what came, went or moved after `clock`; None when that is no longer known."""
        if clock < self._forgotten:
            return None
        changed: list[int] = []
        for label_id, moment in reversed(self._changed.items()):
            if moment <= clock:
                break
            changed.append(label_id)
        return changed

    def perhaps_matching(self, selector: Selector) -> tuple[int, Iterator[Candidate]]:
        """The nodes that fulfil the requirement that fewest nodes can fulfil, and how many they are."""
        count, label_ids = len(self.nodes), iter(self.nodes)
        for requirement in selector.requirements:
            sets = self._with_key(requirement)
            if sets is not None and (fewer := sum(map(len, sets))) < count:
                count, label_ids = fewer, chain.from_iterable(sets)
        return count, map(self.nodes.__getitem__, label_ids)

    def _with_key(self, requirement: Requirement) -> Collection[set[int]] | None:
        """The nodes with one of the values, or at least with the key; None when that does not bound them."""
        by_value = self._by_tag.get(requirement.key, {})
        if requirement.operator is Operator.IN:
            return [by_value[value] for value in requirement.values if value in by_value]
        return None if requirement.operator in _FULFILLED_WITHOUT else by_value.values()

    def _note(self, label_id: int) -> None:
        self.clock += 1
        self._changed[label_id] = self.clock
        self._changed.move_to_end(label_id)
