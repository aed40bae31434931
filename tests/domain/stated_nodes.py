"""Nodes as a test states them, in a placement index."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rm_service.domain.accounts import Account, Balance, Label
from rm_service.domain.amounts import Amounts
from rm_service.domain.label_rules import Kind, LabelRule
from rm_service.domain.operations import Placement
from rm_service.domain.placement import NodeIndex
from rm_service.domain.registrations import Node

RULE = LabelRule("node", frozenset({"node"}), Kind.CAPACITY)
FIRST = Placement()


@dataclass
class Stated:
    """A node as a test states it."""

    total: dict[str, int]
    used: dict[str, int] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    partition: str = ""
    closed: str | None = None
    removed: bool = False
    protected: dict[str, int] = field(default_factory=dict)

    def left(self, dimension: str) -> int:
        if dimension not in self.total:
            return 0
        held = self.used.get(dimension, 0) + self.protected.get(dimension, 0)
        return self.total[dimension] - held

    @property
    def is_open(self) -> bool:
        return not self.removed and self.closed is None


def label_id_of(name: str) -> int:
    """Numbers that do not follow the names."""
    return 100 + sum(name.encode()[::-1]) * 31 % 97 + 100 * int("".join(filter(str.isdigit, name)) or 0)


def account_of(name: str, node: Stated) -> Account:
    label = Label(label_id_of(name), f"node={name}", {"node": name}, RULE)
    balance = Balance(label.id, {}, dict(node.used), total=dict(node.total), protected=dict(node.protected))
    balance.closed = node.closed
    return Account(label, None, balance)


def put(index: NodeIndex, name: str, node: Stated) -> None:
    label_id = label_id_of(name)
    index.put(
        Node(
            label_id,
            name,
            label_id,
            "LoadInstance",
            node.tags,
            {},
            (),
            0,
            removed=node.removed,
            partition=node.partition,
        ),
        account_of(name, node),
    )


def index_of(nodes: Mapping[str, Stated]) -> NodeIndex:
    index = NodeIndex()
    for name, node in nodes.items():
        put(index, name, node)
    return index


def offered(nodes: Mapping[str, Stated], asked: Placement, request: Amounts) -> list[str]:
    return names(index_of(nodes), asked, request)


def names(index: NodeIndex, asked: Placement, request: Amounts) -> list[str]:
    return [candidate.instance for candidate in index.fitting(asked, request)]


def filled(memory: int, vcore: int, **more: str) -> Stated:
    """A node of 100 each, with so much used."""
    return Stated({"memory": 100, "vcore": 100}, {"memory": memory, "vcore": vcore}, dict(more))
