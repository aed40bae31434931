"""Nodes: what they can give to pods, and which of them take any."""

from collections.abc import Collection
from dataclasses import dataclass

from external_providers.kubernetes.documents import Document, mapping, name_of, objects, text
from external_providers.kubernetes.identity import ALLOCATABLE
from external_providers.kubernetes.quantities import amounts
from rm_service.domain.amounts import Amounts

KEEPS_AWAY = frozenset({"NoSchedule", "NoExecute"})

CONDITION = "node.kubernetes.io/"
"""Taints of this kind say that a node is not well at the moment, not whom it is for."""


@dataclass(frozen=True, slots=True)
class Node:
    """What is kept of a node."""

    name: str
    open: bool
    """It is ready and takes pods."""
    apart: bool
    """It is tainted for others, e.g. the control plane: neither it nor its pods are counted."""
    allocatable: Amounts


def read_node(item: Document, tolerated: Collection[str]) -> Node:
    """What is kept of a node. `tolerated`: keys of taints that keep nobody away. Raises MalformedError."""
    name = name_of(item, "node")
    where = f"node {name}"
    spec = mapping(item, "spec", where)
    status = mapping(item, "status", where)
    ready = any(
        text(condition, "type", where) == "Ready" and text(condition, "status", where) == "True"
        for condition in objects(status, "conditions", where)
    )
    apart = any(_keeps_away(taint, tolerated, where) for taint in objects(spec, "taints", where))
    return Node(
        name=name,
        open=ready and not apart and spec.get("unschedulable") is not True,
        apart=apart,
        allocatable=amounts(
            mapping(status, "allocatable", where), ALLOCATABLE, "down", f"{where}.status.allocatable"
        ),
    )


def _keeps_away(taint: Document, tolerated: Collection[str], where: str) -> bool:
    key = text(taint, "key", where)
    return taint.get("effect") in KEEPS_AWAY and not key.startswith(CONDITION) and key not in tolerated
