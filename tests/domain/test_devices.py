"""Devices by resource class: given with a grant, kept with the use, back with the end."""

import pytest

from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.outcomes import Code
from tests.domain.device_ledger import (
    ANY,
    BIG,
    DeviceLedger,
    cards,
    check_devices,
    ports,
    selecting,
    units,
)
from tests.domain.pure_ledger import application_of, refusal

WHOLE = 1000


@pytest.fixture
def ledger() -> DeviceLedger:
    """n1 has four small cards, n2 two big ones."""
    ledger = DeviceLedger()
    ledger.register("n1", cards("g", 4))
    ledger.register("n2", cards("g", 2, "40G"))
    return ledger


def test_a_grant_names_the_node_the_device_and_its_units(ledger: DeviceLedger) -> None:
    application = ledger.given({"any": 2 * WHOLE})
    assert application.state is State.LOCKED
    assert application.tags["node"] == "n1"
    assert units(application) == [("any", "g", ((0, WHOLE), (1, WHOLE)))]
    check_devices(ledger)


def test_what_is_held_counts_in_every_class_that_selects_the_device(ledger: DeviceLedger) -> None:
    ledger.given({"big": WHOLE})
    assert ledger.standing("big") == (2 * WHOLE, WHOLE)
    assert ledger.standing("any") == (6 * WHOLE, WHOLE)
    assert ledger.standing("small") == (4 * WHOLE, 0)
    assert ledger.standing("fast") == (0, 0)


def test_use_keeps_the_devices_and_release_gives_them_back(ledger: DeviceLedger) -> None:
    given = ledger.given({"any": WHOLE}, memory=10)
    used = application_of(ledger.do(op.Use(given.id, {"memory": 4})))
    assert units(used) == units(given)
    assert ledger.account(node="n1").balance.locked == {"memory": 0, **dict.fromkeys(given.device_amounts, 0)}
    assert ledger.account(node="n1").balance.used == {"memory": 4, **given.device_amounts}
    check_devices(ledger)
    ended = application_of(ledger.do(op.Release(given.id)))
    assert ended.devices_now == ()
    assert units(ended) == units(given), "the row still says what it had"
    assert ledger.standing("any") == (6 * WHOLE, 0)
    check_devices(ledger)


def test_who_is_released_twice_gives_nothing_back_twice(ledger: DeviceLedger) -> None:
    first, second = ledger.given({"any": WHOLE}), ledger.given({"any": WHOLE})
    ledger.do(op.Release(first.id))
    ledger.do(op.Release(first.id))
    assert ledger.standing("any") == (6 * WHOLE, WHOLE)
    assert ledger.devices("n1")["g"].taken == {1: WHOLE}
    assert ledger.application(second.id).state is State.LOCKED


def test_a_lock_that_is_not_used_within_its_lease_gives_its_devices_back(ledger: DeviceLedger) -> None:
    given = ledger.given({"any": WHOLE})
    ledger.pass_time(61)
    assert application_of(ledger.do(op.Reclaim(given.id))).state is State.RECLAIMED
    assert ledger.devices("n1")["g"].taken == {}
    check_devices(ledger)


def test_a_report_of_an_engine_changes_amounts_and_not_devices(ledger: DeviceLedger) -> None:
    given = ledger.given({"any": WHOLE}, memory=10)
    ledger.do(op.RegisterEngine("e1", given.id, resource={"memory": 300}))
    assert ledger.application(given.id).over_limit
    check_devices(ledger)
    ledger.do(op.RemoveEngine("e1"))
    assert ledger.standing("any") == (6 * WHOLE, 0)
    check_devices(ledger)


def test_devices_by_themselves_may_be_asked_for(ledger: DeviceLedger) -> None:
    given = ledger.given({"big": WHOLE}, memory=0)
    assert given.requested == {}
    assert given.locked_now == given.device_amounts != {}
    check_devices(ledger)


def test_a_fraction_is_of_one_unit_and_fractions_share_it(ledger: DeviceLedger) -> None:
    for _ in range(2):
        assert units(ledger.given({"big": 500})) == [("big", "g", ((0, 500),))]
    assert ledger.devices("n2")["g"].taken == {0: WHOLE}
    assert units(ledger.given({"big": 600})) == [("big", "g", ((1, 600),))]
    assert refusal(ledger.ask({"big": 500})).code is Code.INSUFFICIENT_RESOURCES
    assert units(ledger.given({"big": 400})) == [("big", "g", ((1, 400),))]
    check_devices(ledger)


def test_six_tenths_free_on_each_of_four_cards_fit_no_whole_card() -> None:
    ledger = DeviceLedger()
    ledger.register("n1", *[cards(f"g{number}") for number in range(4)])
    for _ in range(4):
        ledger.given({"any": 400}, devices="spread")
    assert ledger.standing("any") == (4 * WHOLE, 1600)
    refused = refusal(ledger.ask({"any": WHOLE}))
    assert [(each.dimension, each.requested, each.left, each.total) for each in refused.shortfalls] == [
        ("class/any", WHOLE, 0, 4 * WHOLE)
    ]
    assert ledger.given({"any": 600}).state is State.LOCKED
    check_devices(ledger)


@pytest.mark.parametrize(("strategy", "device"), [("first_fit", "a"), ("best_fit", "c"), ("spread", "b")])
def test_the_strategy_says_which_device_is_taken(strategy: str, device: str) -> None:
    ledger = DeviceLedger()
    ledger.register("n1", cards("a", 3), cards("b", 4), cards("c", 2))
    assert units(ledger.given({"any": WHOLE}, devices=strategy)) == [("any", device, ((0, WHOLE),))]


def test_overlapping_classes_in_one_request_are_solved_where_the_greedy_choice_fails() -> None:
    ledger = DeviceLedger()
    ledger.register("n1", cards("large", memory="40G"), cards("little"))
    application = ledger.given({"any": WHOLE, "big": WHOLE})
    assert units(application) == [("any", "little", ((0, WHOLE),)), ("big", "large", ((0, WHOLE),))]
    assert ledger.standing("any") == (2 * WHOLE, 2 * WHOLE)
    assert ledger.standing("big") == (WHOLE, WHOLE)
    check_devices(ledger)


def test_classes_that_only_fit_one_by_one_are_refused_as_overlapping() -> None:
    ledger = DeviceLedger()
    ledger.register("n1", cards("large", memory="40G"))
    refused = refusal(ledger.ask({"any": WHOLE, "big": WHOLE}, tags={"node": "n1"}))
    assert {(each.dimension, each.left, each.reason) for each in refused.shortfalls} == {
        ("class/any", WHOLE, "classes_overlap"),
        ("class/big", WHOLE, "classes_overlap"),
    }
    assert refusal(ledger.ask({"any": WHOLE, "big": WHOLE})).code is Code.INSUFFICIENT_RESOURCES


def test_devices_of_different_kinds_come_from_the_same_node() -> None:
    ledger = DeviceLedger()
    ledger.register("n1", cards("g"))
    ledger.register("n2", ports("p"))
    ledger.register("n3", cards("g"), ports("p", 2))
    application = ledger.given({"any": WHOLE, "fast": 2 * WHOLE})
    assert application.tags["node"] == "n3"
    assert refusal(ledger.ask({"any": WHOLE, "fast": WHOLE})).code is Code.INSUFFICIENT_RESOURCES
    check_devices(ledger)


def test_a_named_node_gives_its_own_devices_or_says_what_it_lacks(ledger: DeviceLedger) -> None:
    assert ledger.given({"any": WHOLE}, tags={"node": "n2"}).tags["node"] == "n2"
    refused = refusal(ledger.ask({"any": 2 * WHOLE}, tags={"node": "n2"}))
    (short,) = refused.shortfalls
    assert (short.label, short.dimension, short.requested, short.left) == (
        {"node": "n2"},
        "class/any",
        2 * WHOLE,
        WHOLE,
    )
    assert refusal(ledger.ask({"any": WHOLE}, tags={"node": "n9"})).code is Code.UNKNOWN_NODE


def test_a_node_with_the_devices_but_not_the_memory_is_passed_by(ledger: DeviceLedger) -> None:
    ledger.given({"any": WHOLE}, memory=100, tags={"node": "n1"})
    assert ledger.given({"any": WHOLE}, memory=1).tags["node"] == "n2"


def test_a_selector_of_nodes_counts_too(ledger: DeviceLedger) -> None:
    assert ledger.given({"any": WHOLE}, selector="node=n2").tags["node"] == "n2"
    assert refusal(ledger.ask({"big": WHOLE}, selector="node=n1")).code is Code.INSUFFICIENT_RESOURCES


def test_a_draining_or_lost_node_gives_no_devices(ledger: DeviceLedger) -> None:
    ledger.do(op.DrainNode("n1"))
    assert ledger.given({"any": WHOLE}).tags["node"] == "n2"
    assert refusal(ledger.ask({"any": WHOLE}, tags={"node": "n1"})).code is Code.NODE_NOT_SCHEDULABLE
    assert ledger.standing("any") == (6 * WHOLE, WHOLE), "what drains is there still"
    ledger.lose_node("n1")
    assert ledger.standing("any") == (2 * WHOLE, WHOLE), "what is lost is not"
    check_devices(ledger)


def test_a_class_that_nobody_has_created_is_refused_by_its_name(ledger: DeviceLedger) -> None:
    refused = refusal(ledger.ask({"any": WHOLE, "none": WHOLE}))
    assert (refused.code, refused.field) == (Code.UNKNOWN_CLASS, "classes.none")
    check_devices(ledger)


def test_a_class_without_a_selector_selects_nothing(ledger: DeviceLedger) -> None:
    ledger.create_class("empty", selecting())
    assert ledger.standing("empty") == (0, 0)
    refused = refusal(ledger.ask({"empty": WHOLE}))
    assert [(each.dimension, each.left, each.total) for each in refused.shortfalls] == [("class/empty", 0, 0)]


def test_of_a_class_that_is_removed_the_devices_stay_with_who_holds_them(ledger: DeviceLedger) -> None:
    given = ledger.given({"big": WHOLE})
    ledger.remove_class("big")
    assert refusal(ledger.ask({"big": WHOLE})).code is Code.UNKNOWN_CLASS
    assert ledger.standing("any") == (6 * WHOLE, WHOLE)
    check_devices(ledger)
    ledger.create_class("big", BIG)
    assert ledger.standing("big") == (2 * WHOLE, WHOLE), "a class of that name counts them at once"
    ledger.remove_class("big")
    ledger.do(op.Use(given.id))
    ledger.do(op.Release(given.id))
    ledger.create_class("big", ANY)
    assert ledger.standing("big") == (6 * WHOLE, 0)
    check_devices(ledger)


def test_the_same_request_again_is_given_nothing_twice(ledger: DeviceLedger) -> None:
    asked = ledger.asking({"any": WHOLE})
    first, again = ledger.do(asked), ledger.do(asked)
    assert application_of(again) == application_of(first)
    assert ledger.standing("any") == (6 * WHOLE, WHOLE)


def test_of_alternatives_the_first_node_that_has_the_devices_is_taken(ledger: DeviceLedger) -> None:
    asked = ledger.asking({"big": WHOLE}, tags={"node": "n1"}, alternatives=({"node": "n2"},))
    granted = application_of(ledger.do(asked))
    assert granted.tags == {"node": "n2"}
    assert units(granted) == [("big", "g", ((0, WHOLE),))]
    check_devices(ledger)


def test_a_quota_may_name_devices_by_their_signature() -> None:
    ledger = DeviceLedger()
    ledger.register("n1", cards("g", 4))
    (dimension,) = ledger.given({"any": WHOLE}).device_amounts
    limited = DeviceLedger({"user=*": {dimension: 2 * WHOLE}})
    limited.register("n1", cards("g", 4), ports("p"))
    limited.given({"any": 2 * WHOLE}, tags={"user": "alice"})
    refused = refusal(limited.ask({"any": WHOLE}, tags={"user": "alice"}))
    assert [(each.label, each.dimension, each.left) for each in refused.shortfalls] == [
        ({"user": "alice"}, dimension, 0)
    ]
    assert limited.given({"fast": WHOLE}, tags={"user": "alice"}).state is State.LOCKED
    assert limited.given({"any": WHOLE}, tags={"user": "bob"}).state is State.LOCKED
    check_devices(limited)
