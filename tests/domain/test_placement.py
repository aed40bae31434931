"""The placement index: what it offers, in which order, and that it stays so whatever has happened before."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rm_service.domain import node_order, placement
from rm_service.domain.accounts import Account, Balance, Label
from rm_service.domain.amounts import Amounts, plus
from rm_service.domain.label_rules import Kind, LabelRule
from rm_service.domain.node_order import NodeOrder
from rm_service.domain.operations import Placement
from rm_service.domain.placement import STRATEGIES, NodeIndex
from rm_service.domain.registrations import Node
from rm_service.domain.tags import Tags
from rm_service.domain.view import Room

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


# ---- what is offered -----------------------------------------------------------------------------


def test_only_nodes_of_the_partition_serve() -> None:
    nodes = {
        "n1": Stated({"memory": 1}, partition="[rm-1]default"),
        "n2": Stated({"memory": 1}, partition="[rm-2]default"),
        "n3": Stated({"memory": 1}),
    }
    assert offered(nodes, Placement(partition="[rm-1]default"), {"memory": 1}) == ["n1"]
    assert offered(nodes, Placement(partition="[rm-2]default"), {"memory": 1}) == ["n2"]
    assert offered(nodes, FIRST, {"memory": 1}) == ["n3"]
    assert offered(nodes, Placement(partition="[rm-3]default"), {"memory": 1}) == []


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("gpu=T4", ["a", "c"]),
        ("gpu in (A100,T4)", ["a", "b", "c"]),
        ("gpu", ["a", "b", "c"]),
        ("!gpu", ["d"]),
        ("gpu!=T4", ["b", "d"]),
        ("rank>=2", ["b", "c"]),
        ("gpu=T4,rank<2", ["a"]),
        ("node=d", ["d"]),
        ("gpu=H100", []),
        ("nothing", []),
        ("", ["a", "b", "c", "d"]),
    ],
)
def test_a_selector_says_which_nodes_serve(selector: str, found: list[str]) -> None:
    nodes = {
        "d": Stated({"memory": 1}),
        "c": Stated({"memory": 1}, tags={"gpu": "T4", "rank": "3"}),
        "b": Stated({"memory": 1}, tags={"gpu": "A100", "rank": "2"}),
        "a": Stated({"memory": 1}, tags={"gpu": "T4", "rank": "1"}),
    }
    assert offered(nodes, Placement(selector), {"memory": 1}) == found


def test_room_is_counted_exactly() -> None:
    nodes = {"n1": Stated({"memory": 2**63 - 1}, {"memory": 1})}
    assert offered(nodes, FIRST, {"memory": 2**63 - 2}) == ["n1"]
    assert offered(nodes, FIRST, {"memory": 2**63 - 1}) == []


def test_a_dimension_that_a_node_does_not_have_is_not_there() -> None:
    nodes = {"n1": Stated({"memory": 5}), "n2": Stated({"memory": 5, "gpu": 1})}
    assert offered(nodes, FIRST, {"memory": 1, "gpu": 1}) == ["n2"]
    assert offered(nodes, FIRST, {"memory": 1, "fpga": 1}) == []


def test_only_what_is_asked_for_needs_room() -> None:
    nodes = {"n1": Stated({"memory": 5, "gpu": 1}, {"gpu": 2})}
    assert offered(nodes, FIRST, {"memory": 1, "gpu": 0}) == ["n1"]
    assert offered(nodes, FIRST, {}) == ["n1"]


def test_closed_and_removed_nodes_take_nothing_until_they_are_open_again() -> None:
    node = Stated({"memory": 5})
    index = index_of({"n1": node})
    for closed in (Stated({"memory": 5}, closed="draining"), Stated({"memory": 5}, removed=True)):
        put(index, "n1", closed)
        assert names(index, FIRST, {"memory": 1}) == []
        assert index.rooms(FIRST, {"memory": 1}) == (0, (Room("memory", 0, 0),))
        put(index, "n1", node)
        assert names(index, FIRST, {"memory": 1}) == ["n1"]


# ---- in which order ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "order"),
    [
        ("first_fit", ["a", "b", "c", "d"]),
        ("best_fit", ["c", "d", "b", "a"]),  # smallest share left: a .9, b .5, c .1, d .2
        ("spread", ["a", "b", "d", "c"]),
        ("fair", ["a", "b", "c", "d"]),  # load: a .10, b .45, c .45, d .75
        ("binpacking", ["d", "b", "c", "a"]),
    ],
)
def test_a_strategy_says_in_which_order(strategy: str, order: list[str]) -> None:
    nodes = {"d": filled(80, 70), "c": filled(0, 90), "b": filled(50, 40), "a": filled(10, 10)}
    assert offered(nodes, Placement(strategy=strategy), {"memory": 1, "vcore": 1}) == order


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_of_equal_nodes_the_first_by_name_is_first(strategy: str) -> None:
    nodes = {name: filled(20, 20) for name in ("n3", "n1", "n10", "n2")}
    assert offered(nodes, Placement(strategy=strategy), {"memory": 1}) == ["n1", "n10", "n2", "n3"]


def test_weights_say_what_counts() -> None:
    nodes = {"a": filled(90, 10), "b": filled(10, 80)}
    for weights, first in (((("memory", 1.0),), "b"), ((("vcore", 1.0), ("memory", 0.0)), "a")):
        assert offered(nodes, Placement(strategy="fair", weights=weights), {"memory": 1})[0] == first
        assert offered(nodes, Placement(strategy="binpacking", weights=weights), {"memory": 1})[0] != first


def test_a_dimension_without_total_does_not_weigh() -> None:
    nodes = {
        "a": Stated({"memory": 100}, {"memory": 40}),
        "b": Stated({"memory": 100, "vcore": 100}, {"memory": 40, "vcore": 20}),
    }
    assert offered(nodes, Placement(strategy="fair"), {"memory": 1}) == ["b", "a"]


def test_the_rank_is_by_the_requested_dimensions_alone() -> None:
    nodes = {"a": filled(90, 10), "b": filled(10, 80)}
    assert offered(nodes, Placement(strategy="spread"), {"memory": 1}) == ["b", "a"]
    assert offered(nodes, Placement(strategy="spread"), {"vcore": 1}) == ["a", "b"]


# ---- why nothing is offered ----------------------------------------------------------------------


def test_rooms_say_the_most_that_any_node_has() -> None:
    nodes = {"n1": filled(90, 10), "n2": filled(20, 80), "n3": Stated({"memory": 999}, partition="p")}
    request = {"vcore": 95, "memory": 1, "gpu": 1}
    assert index_of(nodes).rooms(FIRST, request) == (
        2,
        (Room("vcore", 90, 100), Room("memory", 80, 100), Room("gpu", 0, 0)),
    )
    assert index_of(nodes).rooms(Placement("zone=x"), {"memory": 1}) == (0, (Room("memory", 0, 0),))


def test_rooms_tell_of_nodes_that_are_over_their_limit() -> None:
    nodes = {"n1": Stated({"memory": 5}, {"memory": 8}), "n2": Stated({"memory": 5}, {"memory": 6})}
    assert index_of(nodes).rooms(FIRST, {"memory": 0}) == (2, (Room("memory", -1, 5),))


# ---- the same whatever has happened before -------------------------------------------------------

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
        self.patch.setattr(placement, "ALWAYS_FOLLOWED", 6)
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


# ---- what it costs -------------------------------------------------------------------------------


class Counted(int):
    """An amount that counts how often it is compared."""

    compared = 0

    def __le__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) <= int(other)

    def __ge__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) >= int(other)

    def __lt__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) < int(other)

    def __gt__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) > int(other)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_on_nodes_that_are_nearly_full_an_ask_looks_at_few_of_them(strategy: str) -> None:
    chance = random.Random(2)
    nodes = {
        f"n{number}": filled(97, chance.randrange(70)) if number % 2 else filled(chance.randrange(70), 97)
        for number in range(3_000)
    }
    index = index_of(nodes)
    compared = []
    for _ in range(300):
        asked = {"memory": Counted(chance.randrange(4, 60)), "vcore": Counted(chance.randrange(4, 60))}
        Counted.compared = 0
        assert next(index.fitting(Placement(strategy=strategy), asked), None) is None
        compared.append(Counted.compared)
    assert mean(compared[50:]) < 300


def test_an_ask_that_no_node_matches_looks_at_none() -> None:
    index = index_of({f"n{number}": filled(0, 0) for number in range(1_000)})
    Counted.compared = 0
    assert names(index, Placement("gpu=T4"), {"memory": Counted(1), "vcore": Counted(1)}) == []
    assert Counted.compared < 10
