"""The placement index offers the same whatever has happened before."""

import random
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rm_service.domain import node_order, node_ranking, placement
from rm_service.domain.amounts import Amounts, plus
from rm_service.domain.lookup import Room
from rm_service.domain.node_order import NodeOrder
from rm_service.domain.operations import Placement
from rm_service.domain.placement import STRATEGIES
from rm_service.domain.tags import Tags
from tests.domain.stated_nodes import FIRST, Stated, account_of, index_of, names, put

NAMES = [f"n{number}" for number in range(40)]
DIMENSIONS = ("memory", "vcore", "gpu")
SELECTORS = (
    "",
    "zone=x",
    "zone in (x,y)",
    "!zone",
    "zone!=x",
    "node in (n1,n7,n23)",
    "rank>1",
    "zone=nowhere",
)
WEIGHTS: Sequence[tuple[tuple[str, float], ...]] = ((), (("memory", 2.0), ("gpu", 0.5)), (("vcore", 0.0),))

amounts = st.dictionaries(st.sampled_from(DIMENSIONS), st.integers(0, 8))
tags = st.fixed_dictionaries(
    {}, optional={"zone": st.sampled_from(["x", "y", "z"]), "rank": st.sampled_from(["1", "2", "q"])}
)
partitions = st.sampled_from(["", "", "[rm]default"])
stated = st.builds(
    Stated,
    total=amounts,
    used=amounts,
    tags=tags,
    partition=partitions,
    closed=st.sampled_from([None, None, None, "draining"]),
    removed=st.sampled_from([False, False, False, True]),
    protected=st.dictionaries(st.sampled_from(DIMENSIONS), st.integers(0, 2), max_size=1),
)
placements = st.builds(
    Placement,
    st.sampled_from(SELECTORS),
    st.sampled_from(STRATEGIES),
    partitions,
    st.sampled_from(WEIGHTS),
)
requests = st.dictionaries(st.sampled_from([*DIMENSIONS, "fpga"]), st.integers(0, 6), max_size=3)

MATCHES: Mapping[str, Callable[[str, Tags], bool]] = {
    "": lambda _, _tags: True,
    "zone=x": lambda _, tags: tags.get("zone") == "x",
    "zone in (x,y)": lambda _, tags: tags.get("zone") in {"x", "y"},
    "!zone": lambda _, tags: "zone" not in tags,
    "zone!=x": lambda _, tags: tags.get("zone") != "x",
    "node in (n1,n7,n23)": lambda name, _: name in {"n1", "n7", "n23"},
    "rank>1": lambda _, tags: tags.get("rank") == "2",
    "zone=nowhere": lambda _, _tags: False,
}


def matching(nodes: Mapping[str, Stated], asked: Placement) -> dict[str, Stated]:
    return {
        name: node
        for name, node in nodes.items()
        if node.is_open and node.partition == asked.partition and MATCHES[asked.selector](name, node.tags)
    }


def by_sorting(nodes: Mapping[str, Stated], asked: Placement, request: Amounts) -> list[str]:
    """What the index is to offer, found by looking at everything."""
    wanted = {dimension: amount for dimension, amount in request.items() if amount > 0}
    found = {
        name: node
        for name, node in matching(nodes, asked).items()
        if all(node.left(dimension) >= amount for dimension, amount in wanted.items())
    }
    return sorted(found, key=lambda name: (rank(found[name], asked, wanted), name))


def rank(node: Stated, asked: Placement, wanted: Amounts) -> float:
    share = min((node.left(each) / node.total[each] for each in wanted if node.total.get(each)), default=1.0)
    weighed = load = 0.0
    for dimension, weight in asked.weights or (("memory", 1.0), ("vcore", 1.0)):
        if node.total.get(dimension):
            weighed += weight
            load += weight * (1 - node.left(dimension) / node.total[dimension])
    load = load / weighed if weighed else 0.0
    ranks = {"first_fit": 0.0, "best_fit": share, "spread": -share, "fair": load, "binpacking": -load}
    return ranks[asked.strategy]


def rooms_by_looking(
    nodes: Mapping[str, Stated], asked: Placement, request: Amounts
) -> tuple[int, tuple[Room, ...]]:
    found = matching(nodes, asked).values()
    return len(found), tuple(
        Room(
            each,
            max((node.left(each) for node in found), default=0),
            max((node.total.get(each, 0) for node in found), default=0),
        )
        for each in request
    )


def test_after_thousands_that_came_and_went_the_rest_is_known() -> None:
    gone = Stated({"memory": 1}, removed=True)
    index = index_of({"n0": Stated({"memory": 1}), "n1": Stated({"memory": 1})})
    assert names(index, FIRST, {"memory": 1}) == ["n0", "n1"]
    put(index, "n0", gone)
    for number in range(2, 1_010):  # of the first thousand it is forgotten that they changed
        put(index, f"n{number}", Stated({"memory": 1}))
        put(index, f"n{number}", gone)
    assert names(index, FIRST, {"memory": 1}) == ["n1"]


def test_orders_that_nobody_asks_for_any_more_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "MAX_PLACES", 1_000)
    index = index_of({f"n{number}": Stated({"memory": 1}) for number in range(4)})
    for number in range(100):
        put(index, "n0", Stated({"memory": 1}, removed=number % 2 == 1))
        assert ("n0" in names(index, FIRST, {"memory": 1})) == (number % 2 == 0)
        assert names(index, Placement(f"node!=n0,rank!={number}"), {"memory": 1}) == ["n1", "n2", "n3"]
    kept = [ranking.size() for ranking in index._rankings.values()]
    assert sum(kept) == index._places <= 1_000
    assert len(kept) > 10


class AnyHistory(RuleBasedStateMachine):
    """Nodes come, go, change and fill up in any order, between questions of every kind."""

    width, kept = 8, 2
    """So narrow blocks that few nodes make a deep tree."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(node_order, "WIDTH", self.width)
        self.patch.setattr(node_order, "MAX_REFUSED", self.kept)
        self.patch.setattr(node_ranking, "ALWAYS_FOLLOWED", 6)
        self.patch.setattr(placement, "MAX_PLACES", 400)
        self.nodes = {name: Stated({"memory": 8, "vcore": 8}) for name in NAMES[:20]}
        self.index = index_of(self.nodes)
        self.asked: list[tuple[Placement, Amounts]] = []

    def teardown(self) -> None:
        self.patch.undo()

    @rule(nodes=st.dictionaries(st.sampled_from(NAMES), stated, min_size=1, max_size=12))
    def nodes_change(self, nodes: dict[str, Stated]) -> None:
        for name, node in nodes.items():
            self.nodes[name] = node
            put(self.index, name, node)

    @rule(
        more=st.dictionaries(st.sampled_from(NAMES), amounts, min_size=1, max_size=12), in_use=st.booleans()
    )
    def nodes_grow(self, more: dict[str, dict[str, int]], *, in_use: bool) -> None:
        for name, amounts in more.items():
            if name in self.nodes:
                node = self.nodes[name]
                node.total = plus(node.total, amounts)
                node.used = plus(node.used, amounts) if in_use else node.used
                put(self.index, name, node)

    @rule(used=st.dictionaries(st.sampled_from(NAMES), amounts, min_size=1, max_size=12))
    def balances_change(self, used: dict[str, dict[str, int]]) -> None:
        known = {name: amounts for name, amounts in used.items() if name in self.nodes}
        for name, amounts in known.items():
            self.nodes[name].used = amounts
        self.index.follow([account_of(name, self.nodes[name]) for name in known])

    @rule(asked=placements, request=requests)
    def somebody_asks(self, asked: Placement, request: Amounts) -> None:
        expected = by_sorting(self.nodes, asked, request)
        assert names(self.index, asked, request) == expected
        assert names(index_of(self.nodes), asked, request) == expected
        assert self.index.rooms(asked, request) == rooms_by_looking(self.nodes, asked, request)
        self.asked = [*self.asked[-5:], (asked, request)]

    @rule(asked=placements, request=requests)
    def somebody_takes_the_first(self, asked: Placement, request: Amounts) -> None:
        first = next(self.index.fitting(asked, request), None)
        found = [] if first is None else [first.instance]
        assert found == by_sorting(self.nodes, asked, request)[:1]
        if first is not None:
            node = self.nodes[first.instance]
            wanted = {each: amount for each, amount in request.items() if amount > 0}
            node.used = plus(node.used, wanted)
            self.index.follow([account_of(first.instance, node)])

    @invariant()
    def what_was_asked_before_is_still_answered_rightly(self) -> None:
        for asked, request in self.asked:
            assert names(self.index, asked, request) == by_sorting(self.nodes, asked, request)


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


@settings(max_examples=30, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from([8, 12, 32]), st.sampled_from([9, 10**6]))
def test_an_order_of_many_nodes_stays_an_order(chance: random.Random, width: int, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_order, "WIDTH", width)
        known: dict[int, tuple[float, tuple[int, int]]] = {}
        order = NodeOrder([])
        for _ in range(600):
            label_id = chance.randrange(150)
            if label_id in known and chance.random() < 0.4:
                order.remove(label_id)
                del known[label_id]
            else:
                known[label_id] = (
                    chance.choice([0.0, 0.25, 0.5]),
                    (chance.randrange(most), chance.randrange(most)),
                )
                order.put((known[label_id][0], f"n{label_id}", label_id), known[label_id][1])
            wanted = chance.randrange(most), chance.randrange(most)
            ranked = sorted(known, key=lambda each: (known[each][0], f"n{each}"))
            fitting = [each for each in ranked if all(map(int.__ge__, known[each][1], wanted))]
            assert list(order.fitting(wanted)) == fitting
            assert len(order) == len(known)
            if chance.random() < 0.3:
                vectors = [vector for _, vector in known.values()]
                assert order.most() == tuple(max(column) for column in zip(*vectors, strict=True))
