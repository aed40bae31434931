"""Whatever tree a scheduler has, reading what it writes gives the same tree."""

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from external_providers.base import Place
from tests.external_providers.yarn.documents import amount, capacity, fair, fair_queue, resource
from tests.external_providers.yarn.reading import mb, places

CLUSTER = {"clusterMetrics": {"totalMB": 2**30, "totalVirtualCores": 2**20}}
ROOM = (2**30, 2**20)

Pair = tuple[int, int]


@dataclass(frozen=True)
class Node:
    """A queue: its own maximum, and what its leaves use."""

    most: Pair
    used: Pair
    apps: int
    children: tuple["Node", ...] = ()


pairs = st.tuples(st.integers(0, 2**31), st.integers(0, 2**21))
leaves = st.builds(Node, pairs, pairs, st.integers(0, 10_000))
trees = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda most, children: Node(most, (0, 0), 0, tuple(children)),
        pairs,
        st.lists(inner, min_size=1, max_size=4),
    ),
    max_leaves=25,
)


def capacity_queue(node: Node, path: str) -> dict[str, Any]:
    children = [capacity_queue(child, f"{path}.q{at}") for at, child in enumerate(node.children)]
    queue = amount(path, resource(*node.used), resource(*node.most), *children)
    if node.children:
        del queue["resourcesUsed"], queue["numApplications"]
        return queue
    return queue | {"resourcesUsed": resource(*node.used), "numApplications": node.apps}


def fair_node(node: Node, path: str) -> dict[str, Any]:
    children = [fair_node(child, f"{path}.q{at}") for at, child in enumerate(node.children)]
    queue = fair_queue(path, resource(*node.most), *children)
    if node.children:
        del queue["usedResources"]
        return queue
    return queue | {"usedResources": resource(*node.used), "numActiveApps": node.apps}


def expected(node: Node, path: str, above: Pair) -> dict[str, tuple[Pair, Pair, int]]:
    """Each queue's total, what it uses, and how many applications are in it."""
    most = (min(node.most[0], above[0]), min(node.most[1], above[1]))
    found: dict[str, tuple[Pair, Pair, int]] = {}
    used, apps = node.used, node.apps
    for at, child in enumerate(node.children):
        beneath = expected(child, f"{path}.q{at}", most)
        found |= beneath
        _, child_used, child_apps = beneath[f"{path}.q{at}"]
        used = (used[0] + child_used[0], used[1] + child_used[1])
        apps += child_apps
    return found | {path: (most, used, apps)}


def seen(found: dict[str, Place]) -> dict[str, tuple[Pair, Pair, int]]:
    return {
        name: (mb(place.total), mb(place.used), place.used["yarn.apps"])
        for name, place in found.items()
        if name != "root"
    }


@given(trees)
def test_a_capacity_tree_is_read_as_it_is(tree: Node) -> None:
    found = places(capacity(capacity_queue(tree, "root.top")), CLUSTER)
    assert seen(found) == expected(tree, "root.top", ROOM)


@given(trees)
def test_a_fair_tree_is_read_as_it_is(tree: Node) -> None:
    document = fair(fair_node(tree, "root.top"), maxResources=resource(*ROOM))
    assert seen(places(document, CLUSTER)) == expected(tree, "root.top", ROOM)


@given(trees)
def test_no_queue_has_more_than_its_parent_or_less_guaranteed_than_nothing(tree: Node) -> None:
    found = places(capacity(capacity_queue(tree, "root.top")), CLUSTER)
    for name, place in found.items():
        parent = found[name.rpartition(".")[0] or "root"]
        for dimension in ("yarn.memory", "yarn.vcore"):
            assert place.total[dimension] <= parent.total[dimension]
            assert 0 <= place.guaranteed[dimension] <= place.total[dimension]
