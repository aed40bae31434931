import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.device_selection import (
    MAX_UNITS,
    ClassesError,
    Device,
    Held,
    Wish,
    check_wishes,
    choose,
    free_units,
    give_back,
    largest_fraction,
    take,
)
from rm_service.domain.device_strategies import STRATEGIES

SIGNATURES = ("p4", "t4", "v100")
HALF = 500


def device(name: str, count: int = 4, taken: dict[int, int] | None = None, signature: str = "t4") -> Device:
    return Device(name, signature, count, taken or {})


def wish(milli: int, *signatures: str, name: str = "") -> Wish:
    """A class that selects these signatures (none said: t4), named after them."""
    selected = signatures or ("t4",)
    return Wish(name or "|".join(selected), milli, frozenset(selected))


def units(held: tuple[Held, ...] | None) -> list[tuple[str, list[int]]] | None:
    """Which units of which device, in the order of the answer."""
    return None if held is None else [(each.device, [unit for unit, _ in each.units]) for each in held]


# ---- what is compared with: all ways are tried -------------------------------------------------------------


def ways_to_take(devices: Sequence[Device], asked: Wish) -> Iterator[list[tuple[int, int]]]:
    """Every set of (device, unit) that meets one wish."""
    selected = [(at, each) for at, each in enumerate(devices) if each.signature in asked.signatures]
    if asked.milli < 1000:
        for at, each in selected:
            for unit in range(each.count):
                if each.taken.get(unit, 0) + asked.milli <= 1000:
                    yield [(at, unit)]
        return
    free = [(at, unit) for at, each in selected for unit in range(each.count) if not each.taken.get(unit)]
    yield from map(list, combinations(free, asked.milli // 1000))


def with_taken(devices: Sequence[Device], places: list[tuple[int, int]], milli: int) -> list[Device]:
    after = list(devices)
    for at, unit in places:
        after[at] = take(after[at], [(unit, milli)])
    return after


def is_possible(devices: Sequence[Device], wishes: Sequence[Wish]) -> bool:
    if not wishes:
        return True
    first, *rest = wishes
    return any(
        is_possible(with_taken(devices, places, min(first.milli, 1000)), rest)
        for places in ways_to_take(devices, first)
    )


def first_possible(devices: Sequence[Device], wishes: Sequence[Wish]) -> dict[str, set[tuple[int, int]]]:
    """What first fit gives, one unit at a time: the first that leaves the rest possible."""
    given: dict[str, set[tuple[int, int]]] = {each.resource_class: set() for each in wishes}
    whole = [each for each in wishes if each.milli >= 1000]
    left = [each for each in wishes if each.milli < 1000] + whole
    while left:
        asked, *rest = left
        contested = any(
            each.signature in asked.signatures and each.signature in other.signatures
            for each in devices
            for other in whole
        )
        piece = min(asked.milli, 1000)
        if asked.milli > 1000:
            rest = [replace(asked, milli=asked.milli - 1000), *rest]
        places = sorted(
            (piece < 1000 and contested and not devices[at].taken.get(unit), at, unit)
            for [(at, unit)] in ways_to_take(devices, replace(asked, milli=piece))
        )
        for _, at, unit in places:
            after = with_taken(devices, [(at, unit)], piece)
            if is_possible(after, rest):
                break
        else:
            raise AssertionError("asked for where nothing is possible")
        given[asked.resource_class].add((at, unit))
        devices, left = after, rest
    return given


def check(held: tuple[Held, ...], devices: Sequence[Device], wishes: Sequence[Wish]) -> None:
    """Each wish has exactly what it asks for, of devices that its class selects; no unit is given twice."""
    now = {each.name: each for each in devices}
    asked = {each.resource_class: each for each in wishes}
    assert {name: sum(h.milli for h in held if h.resource_class == name) for name in asked} == {
        name: each.milli for name, each in asked.items()
    }
    for each in held:
        of, by = now[each.device], asked[each.resource_class]
        assert each.signature == of.signature
        assert each.signature in by.signatures
        assert [unit for unit, _ in each.units] == sorted({unit for unit, _ in each.units})
        for unit, milli in each.units:
            assert 0 <= unit < of.count
            assert milli == min(by.milli, 1000)
            assert of.taken.get(unit, 0) + milli <= 1000
        now[of.name] = take(of, each.units)
    assert [each.resource_class for each in held] == sorted(each.resource_class for each in held)
    pairs = [(each.resource_class, each.device) for each in held]
    assert len(set(pairs)) == len(pairs)


some_devices = st.lists(
    st.builds(
        Device,
        name=st.just(""),
        signature=st.sampled_from(SIGNATURES),
        count=st.integers(0, 3),
        taken=st.dictionaries(
            st.integers(0, 3), st.sampled_from((0, 100, 300, 400, 500, 600, 900, 1000, 1700)), max_size=2
        ),
    ),
    min_size=1,
    max_size=4,
).map(lambda devices: [replace(each, name=f"d{at}") for at, each in enumerate(devices)])
some_wishes = st.lists(
    st.builds(
        Wish,
        resource_class=st.just(""),
        milli=st.sampled_from((1000, 2000, 3000, 300, 400, 500, 600, 999)),
        signatures=st.sets(st.sampled_from(SIGNATURES), min_size=1).map(frozenset),
    ),
    min_size=2,
    max_size=4,
).map(lambda wishes: [replace(each, resource_class=f"c{at}") for at, each in enumerate(wishes)])


@given(some_devices, some_wishes, st.sampled_from(STRATEGIES))
def test_units_are_found_whenever_there_are_any_and_are_what_was_asked_for(
    devices: list[Device], wishes: list[Wish], strategy: str
) -> None:
    held = choose(devices, wishes, strategy)
    assert (held is not None) == is_possible(devices, wishes)
    if held is None:
        return
    check(held, devices, wishes)


@given(st.lists(st.integers(0, 9), max_size=9), st.integers(1, 40), st.sampled_from(STRATEGIES))
def test_whole_units_of_one_class_are_found_however_they_are_scattered(
    free: list[int], asked: int, strategy: str
) -> None:
    devices = [device(f"d{at}", 10, dict.fromkeys(range(10 - each), 1)) for at, each in enumerate(free)]
    wishes = [wish(asked * 1000)]
    held = choose(devices, wishes, strategy)
    assert (held is not None) == (sum(free) >= asked)
    if held is not None:
        check(held, devices, wishes)


@given(some_devices, some_wishes)
def test_first_fit_gives_the_first_units_that_leave_the_rest_possible(
    devices: list[Device], wishes: list[Wish]
) -> None:
    held = choose(devices, wishes, "first_fit")
    if held is None:
        return
    places = {each.name: at for at, each in enumerate(devices)}
    found: dict[str, set[tuple[int, int]]] = {each.resource_class: set() for each in wishes}
    for each in held:
        found[each.resource_class] |= {(places[each.device], unit) for unit, _ in each.units}
    expected = first_possible(devices, wishes)
    assert found == expected


# ---- whole units and fractions -----------------------------------------------------------------------------


def test_six_tenths_free_on_each_of_four_cards_fit_no_whole_card() -> None:
    card = device("gpu", taken=dict.fromkeys(range(4), 400))
    assert choose([card], [wish(1000)], "first_fit") is None
    assert units(choose([card], [wish(600)], "first_fit")) == [("gpu", [0])]
    assert choose([card], [wish(601)], "first_fit") is None


def test_whole_units_may_be_of_several_devices_and_a_fraction_is_on_one_unit() -> None:
    cards = [device("a", 1), device("b", 3)]
    assert units(choose(cards, [wish(3000)], "first_fit")) == [("a", [0]), ("b", [0, 1])]
    halves = [device("a", 1, {0: HALF}), device("b", 1, {0: HALF})]
    assert choose(halves, [wish(700)], "first_fit") is None


def test_several_fractions_share_a_unit_as_far_as_it_reaches() -> None:
    wishes = [wish(HALF, name="a"), wish(HALF, name="b")]
    assert units(choose([device("gpu", 1)], wishes, "first_fit")) == [("gpu", [0]), ("gpu", [0])]
    assert choose([device("gpu", 1)], [*wishes, wish(1, name="c")], "first_fit") is None


def test_fractions_are_put_together_so_that_all_find_room() -> None:
    cards = [device("gpu", 2, {0: 300, 1: 400})]
    wishes = [wish(300, name="a"), wish(200, name="b"), wish(300, name="c"), wish(HALF, name="d")]
    held = choose(cards, wishes, "first_fit")
    assert units(held) == [("gpu", [1]), ("gpu", [0]), ("gpu", [1]), ("gpu", [0])]


def test_nothing_is_given_where_nothing_is_asked_for_and_none_where_nothing_is_selected() -> None:
    assert choose([], [], "spread") == ()
    assert choose([], [wish(1000)], "spread") is None
    assert choose([device("a")], [wish(1000, "p4"), wish(1000)], "spread") is None


# ---- classes that overlap ----------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_any_card_leaves_the_only_big_one_to_who_needs_it(strategy: str) -> None:
    cards = [device("big", 1, signature="v100"), device("small", 1, signature="t4")]
    wishes = [wish(1000, "v100", "t4", name="any"), wish(1000, "v100", name="big")]
    assert units(choose(cards, wishes, strategy)) == [("small", [0]), ("big", [0])]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_chain_of_overlapping_classes_is_solved(strategy: str) -> None:
    names = [f"s{at}" for at in range(8)]
    cards = [device(name, 1, signature=name) for name in names]
    wishes = [wish(1000, *names[at : at + 2]) for at in range(8)]
    held = choose(cards, wishes, strategy)
    assert units(held) == [(name, [0]) for name in names]
    assert choose(cards[1:], wishes, strategy) is None


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_was_left_to_another_is_left_at_each_device_that_is_taken_from(strategy: str) -> None:
    cards = [device("a", 1, signature="v100"), device("b", 1, signature="v100"), device("c", 1)]
    wishes = [wish(2000, "v100", "t4", name="any"), wish(1000, "v100", name="big")]
    held = choose(cards, wishes, strategy)
    assert held is not None
    check(held, cards, wishes)


def test_best_fit_goes_by_what_a_device_can_still_give() -> None:
    cards = [device("a", 3, signature="v100"), device("b", 3, signature="v100"), device("c", 2)]
    wishes = [wish(5000, "v100", "t4", name="any"), wish(2000, "v100", name="big")]
    assert units(choose(cards, wishes, "best_fit")) == [("a", [0, 1, 2]), ("c", [0, 1]), ("b", [0, 1])]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_classes_do_not_count_the_same_unit_twice(strategy: str) -> None:
    wishes = [wish(3000, "t4", "v100"), wish(2000, "t4")]
    assert choose([device("gpu", 4)], wishes, strategy) is None
    held = choose([device("gpu", 4), device("other", 1, signature="v100")], wishes, strategy)
    assert held is not None
    assert sum(each.milli for each in held if each.device == "gpu") == 4000


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_fraction_goes_on_a_card_in_use_where_the_free_ones_are_needed_whole(strategy: str) -> None:
    cards = [device("gpu", 4, {3: 200})]
    wishes = [wish(3000, name="whole"), wish(300, name="part")]
    assert units(choose(cards, wishes, strategy)) == [("gpu", [0, 1, 2]), ("gpu", [3])]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_fraction_prefers_a_card_in_use_beside_whole_wishes_even_if_all_would_fit(strategy: str) -> None:
    cards = [device("gpu", 4, {3: 200})]
    wishes = [wish(300, name="part"), wish(1000, name="whole")]
    assert units(choose(cards, wishes, strategy)) == [("gpu", [3]), ("gpu", [0])]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_fraction_leaves_the_card_in_use_to_another_that_fits_nowhere_else(strategy: str) -> None:
    cards = [device("used", 1, {0: HALF}, "p4"), device("free", 2, signature="t4")]
    wishes = [wish(400, "p4", "t4", name="any"), wish(HALF, "p4", name="old"), wish(1000, "t4", name="whole")]
    assert units(choose(cards, wishes, strategy)) == [("free", [0]), ("used", [0]), ("free", [1])]


# ---- strategies --------------------------------------------------------------------------------------------

LIST = [device("a", 4, {0: 1000}), device("b", 4, {0: 1000, 1: 1000}), device("c", 4)]


@pytest.mark.parametrize(
    ("strategy", "asked", "expected"),
    [
        ("first_fit", 1, [("a", [1])]),
        ("first_fit", 5, [("a", [1, 2, 3]), ("b", [2, 3])]),
        ("best_fit", 1, [("b", [2])]),
        ("best_fit", 3, [("a", [1, 2, 3])]),
        ("best_fit", 5, [("c", [0, 1, 2, 3]), ("b", [2])]),
        ("best_fit", 9, [("c", [0, 1, 2, 3]), ("a", [1, 2, 3]), ("b", [2, 3])]),
        ("spread", 1, [("c", [0])]),
        ("spread", 5, [("c", [0, 1, 2, 3]), ("a", [1])]),
    ],
)
def test_where_whole_units_are_taken(
    strategy: str, asked: int, expected: list[tuple[str, list[int]]]
) -> None:
    assert units(choose(LIST, [wish(asked * 1000)], strategy)) == expected


@pytest.mark.parametrize(
    ("strategy", "milli", "expected"),
    [
        ("first_fit", 300, ("a", [0])),
        ("first_fit", 700, ("a", [1])),
        ("best_fit", 300, ("b", [1])),
        ("best_fit", 450, ("a", [0])),
        ("best_fit", 700, ("c", [0])),
        ("spread", 300, ("a", [1])),
    ],
)
def test_where_a_fraction_is_placed(strategy: str, milli: int, expected: tuple[str, list[int]]) -> None:
    cards = [device("a", 4, {0: HALF}), device("b", 3, {1: 600}), device("c", 1)]
    assert units(choose(cards, [wish(milli)], strategy)) == [expected]


def test_what_a_request_has_taken_counts_for_its_next_wish() -> None:
    cards = [device("a", 2), device("b", 2)]
    wishes = [wish(300, name="x"), wish(300, name="y")]
    assert units(choose(cards, wishes, "spread")) == [("a", [0]), ("b", [0])]
    assert units(choose(cards, wishes, "best_fit")) == [("a", [0]), ("a", [0])]
    whole = [wish(1000, name="x"), wish(1000, name="y")]
    assert units(choose(cards, whole, "spread")) == [("a", [0]), ("b", [0])]
    assert units(choose(cards, whole, "best_fit")) == [("a", [0]), ("a", [1])]


def test_a_strategy_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="known are first_fit, best_fit, spread"):
        choose([], [], "fastest")


# ---- bounds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wishes", "field"),
    [
        ([wish(1000)] * 9, "classes"),
        ([wish(1)] * 5, "classes"),
        ([wish(MAX_UNITS * 1000), wish(1000)], "classes"),
        ([wish(0)], "classes.t4"),
        ([wish(-1000)], "classes.t4"),
        ([wish(1500)], "classes.t4"),
    ],
)
def test_too_many_classes_or_no_such_amount_are_refused_by_field(wishes: list[Wish], field: str) -> None:
    with pytest.raises(ClassesError) as refused:
        check_wishes(wishes)
    assert refused.value.field == field
    with pytest.raises(ClassesError):
        choose([device("gpu")], wishes, "first_fit")


def test_the_most_that_may_be_asked_for_is_answered() -> None:
    names = [f"s{at}" for at in range(8)]
    cards = [device(f"d{at}", 1000, {0: at}, names[at % 8]) for at in range(64)]
    wishes = [wish(400 + at, *names[at : at + 3]) for at in range(4)]
    wishes += [wish(2_500_000, *names[at : at + 3], name=str(at)) for at in range(2, 6)]
    held = choose(cards, wishes, "best_fit")
    assert held is not None
    assert sum(each.milli for each in held) == 4 * 2_500_000 + 1606


def test_units_that_nobody_asks_for_are_not_looked_at() -> None:
    cards = [device("gpu", 10**15, {0: HALF, 10**15 - 1: 1000})]
    wishes = [wish(2000, name="whole"), wish(600, name="part")]
    assert units(choose(cards, wishes, "first_fit")) == [("gpu", [2, 3]), ("gpu", [1])]
    assert free_units(cards[0]) == 10**15 - 2


# ---- what is taken of a device -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "free", "fraction"),
    [
        (device("d", 2), 2, 1000),
        (device("d", 2, {0: 400, 1: 700}), 0, 600),
        (device("d", 2, {0: 0, 1: 1000}), 1, 1000),
        (device("d", 1, {0: 1700}), 0, 0),
        (device("d", 0), 0, 0),
        (device("d", 0, {0: HALF}), 0, 0),
        (device("d", 1, {0: 900, 5: HALF}), 0, 100),
    ],
)
def test_how_much_a_device_can_give(of: Device, free: int, fraction: int) -> None:
    assert free_units(of) == free
    assert largest_fraction(of) == fraction


some_units = st.dictionaries(st.integers(0, 5), st.integers(1, 2000), max_size=4).map(
    lambda each: tuple(sorted(each.items()))
)


@given(some_units, some_units)
def test_what_is_taken_and_given_back_was_never_taken(
    before: tuple[tuple[int, int], ...], more: object
) -> None:
    of = device("d", 3, dict(before))
    pairs = json.loads(json.dumps(more))
    after = take(of, pairs)
    assert sum(after.taken.values()) == sum(of.taken.values()) + sum(milli for _, milli in pairs)
    assert give_back(after, pairs) == of


def test_more_than_is_taken_cannot_be_given_back() -> None:
    with pytest.raises(ValueError, match="600 of unit 0 of d are given back, 500 are taken"):
        give_back(device("d", 1, {0: HALF}), [(0, 600)])


def test_what_is_held_in_all() -> None:
    held = choose([device("gpu", 4)], [wish(3000)], "first_fit")
    assert held is not None
    assert [each.milli for each in held] == [3000]
