"""The placement index: what it offers, in which order, why it offers nothing, and what that costs."""

import random
from statistics import mean

import pytest

from rm_service.domain.lookup import Room
from rm_service.domain.operations import Placement
from rm_service.domain.placement import STRATEGIES
from tests.domain.stated_nodes import FIRST, Stated, filled, index_of, names, offered, put

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
