"""Nodes that register more, fewer or other devices, go, come back, and leave: what is held stays held."""

import pytest

from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.devices import dimension_of
from rm_service.domain.outcomes import Code, Done
from tests.client_words import (
    AGAIN,
    RM,
    creating_node,
    decommissioning,
    partition_of,
    updating_node,
)
from tests.domain.device_ledger import DeviceLedger, cards, check_devices, ports, units
from tests.domain.pure_ledger import application_of, refusal

WHOLE = 1000
PARTITION = partition_of(RM)
HERE = {"partition": PARTITION}


@pytest.fixture
def ledger() -> DeviceLedger:
    """n1 has two small cards."""
    ledger = DeviceLedger()
    ledger.register("n1", cards("g", 2))
    return ledger


def over_limit(ledger: DeviceLedger, instance: str = "n1") -> bool:
    return ledger.account(node=instance).over_limit()


def test_a_node_without_devices_has_none_to_give() -> None:
    ledger = DeviceLedger()
    ledger.register("n1")
    assert ledger.account(node="n1").balance.devices is None
    refused = refusal(ledger.ask({"any": WHOLE}, tags={"node": "n1"}))
    assert refused.code is Code.INSUFFICIENT_RESOURCES
    assert ledger.standing("any") == (0, 0)


def test_the_same_registration_again_changes_nothing(ledger: DeviceLedger) -> None:
    ledger.given({"any": WHOLE})
    before = len(ledger.events)
    ledger.register("n1", cards("g", 2))
    assert len(ledger.events) == before
    assert ledger.devices("n1")["g"].taken == {0: WHOLE}
    check_devices(ledger)


def test_more_units_and_more_devices_are_there_at_once(ledger: DeviceLedger) -> None:
    ledger.given({"any": WHOLE})
    ledger.register("n1", cards("g", 3), cards("h", 1, "40G"), ports("p"))
    assert ledger.standing("any") == (4 * WHOLE, WHOLE)
    assert ledger.standing("big") == (WHOLE, 0)
    assert ledger.standing("fast") == (WHOLE, 0)
    assert ledger.given({"any": 3 * WHOLE}).state is State.LOCKED
    check_devices(ledger)


def test_fewer_units_than_are_held_are_over_the_limit_until_they_come_back(ledger: DeviceLedger) -> None:
    given = ledger.given({"any": 2 * WHOLE})
    ledger.register("n1", cards("g", 1))
    assert ledger.standing("any") == (WHOLE, 2 * WHOLE)
    assert over_limit(ledger)
    check_devices(ledger)
    ledger.do(op.Release(given.id))
    assert ledger.standing("any") == (WHOLE, 0)
    assert not over_limit(ledger)
    assert ledger.devices("n1")["g"].taken == {}
    check_devices(ledger)


def test_a_device_that_is_gone_while_it_is_held_is_given_back_at_last(ledger: DeviceLedger) -> None:
    given = ledger.given({"any": WHOLE})
    ledger.register("n1", ports("p"))
    assert ledger.standing("any") == (0, WHOLE)
    assert over_limit(ledger)
    assert (ledger.devices("n1")["g"].count, ledger.devices("n1")["g"].taken) == (0, {0: WHOLE})
    assert refusal(ledger.ask({"any": 100})).code is Code.INSUFFICIENT_RESOURCES
    check_devices(ledger)
    ledger.do(op.Release(given.id))
    assert ledger.standing("any") == (0, 0)
    assert list(ledger.devices("n1")) == ["p"]
    assert not over_limit(ledger)
    check_devices(ledger)


def test_the_last_device_that_is_gone_leaves_a_node_without_devices(ledger: DeviceLedger) -> None:
    given = ledger.given({"any": WHOLE})
    ledger.register("n1")
    check_devices(ledger)
    ledger.do(op.Release(given.id))
    assert ledger.devices("n1") == {}
    check_devices(ledger)
    ledger.register("n1", cards("g"))
    assert ledger.given({"any": WHOLE}).state is State.LOCKED
    check_devices(ledger)


def test_a_device_that_comes_back_has_what_was_held_of_it(ledger: DeviceLedger) -> None:
    given = ledger.given({"any": WHOLE})
    ledger.register("n1")
    ledger.register("n1", cards("g", 2))
    assert ledger.devices("n1")["g"].taken == {0: WHOLE}
    assert ledger.standing("any") == (2 * WHOLE, WHOLE)
    assert not over_limit(ledger)
    ledger.do(op.Release(given.id))
    check_devices(ledger)


@pytest.mark.parametrize("use", [False, True])
def test_under_other_attributes_what_is_held_moves_to_them_on_every_label(
    ledger: DeviceLedger, *, use: bool
) -> None:
    given = ledger.given({"small": WHOLE}, tags={"user": "alice"})
    if use:
        ledger.do(op.Use(given.id))
    (before,) = given.device_amounts
    ledger.register("n1", cards("g", 2, "40G"))
    moved = ledger.application(given.id)
    (after,) = moved.device_amounts
    assert after != before
    assert units(moved) == [("small", "g", ((0, WHOLE),))]
    assert ledger.standing("small") == (0, 0)
    assert ledger.standing("big") == (2 * WHOLE, WHOLE)
    assert ledger.standing("any") == (2 * WHOLE, WHOLE)
    for account in (ledger.account(user="alice"), ledger.account(node="n1")):
        held = account.balance.used if use else account.balance.locked
        assert (held[before], held[after]) == (0, WHOLE)
        assert account.balance.applications == 1
    check_devices(ledger)
    ledger.do(op.Release(given.id))
    assert ledger.standing("big") == (2 * WHOLE, 0)
    check_devices(ledger)


def test_only_what_holds_the_changed_device_moves(ledger: DeviceLedger) -> None:
    ledger.register("n1", cards("g", 2), cards("h", 2))
    first = ledger.given({"any": 2 * WHOLE})
    second = ledger.given({"any": 2 * WHOLE})
    both = {each.device for each in (*first.devices, *second.devices)}
    assert both == {"g", "h"}
    ledger.register("n1", cards("g", 2), cards("h", 2, "40G"))
    kinds = [event.kind for event in ledger.events if event.subject == first.id]
    assert "application.adjusted" not in kinds
    assert ledger.standing("big") == (2 * WHOLE, 2 * WHOLE)
    assert ledger.standing("small") == (2 * WHOLE, 2 * WHOLE)
    check_devices(ledger)


def test_attributes_that_mean_the_same_move_nothing(ledger: DeviceLedger) -> None:
    given = ledger.given({"any": WHOLE})
    ledger.register("n1", cards("g", 2, "16000M"))
    assert ledger.application(given.id).devices == given.devices
    check_devices(ledger)


def test_two_devices_may_change_places(ledger: DeviceLedger) -> None:
    ledger.register("n1", cards("g"), cards("h", 1, "40G"))
    given = ledger.given({"small": WHOLE, "big": WHOLE})
    ledger.register("n1", cards("g", 1, "40G"), cards("h"))
    assert ledger.standing("small") == (WHOLE, WHOLE)
    assert ledger.standing("big") == (WHOLE, WHOLE)
    check_devices(ledger)
    ledger.do(op.Release(given.id))
    check_devices(ledger)


def test_a_lost_node_has_nothing_to_give_and_what_it_held_is_given_back(ledger: DeviceLedger) -> None:
    given = ledger.given({"any": WHOLE})
    ledger.do(op.LoseNode("n1", "silent"))
    assert ledger.standing("any") == (0, WHOLE), "who held it has not ended yet"
    check_devices(ledger)
    ledger.do(op.Lose(given.id, "silent"))
    assert ledger.standing("any") == (0, 0)
    check_devices(ledger)
    ledger.register("n1", cards("g", 2))
    assert ledger.standing("any") == (2 * WHOLE, 0)
    check_devices(ledger)


def test_what_was_lost_and_runs_still_has_its_units_again(ledger: DeviceLedger) -> None:
    given = ledger.given({"any": WHOLE})
    ledger.lose_node("n1")
    ledger.register("n1", cards("g", 2), applications=(given.id,))
    back = ledger.application(given.id)
    assert (back.state, back.over_limit, units(back)) == (State.USED, False, units(given))
    assert ledger.standing("any") == (2 * WHOLE, WHOLE)
    check_devices(ledger)


def test_units_that_somebody_else_holds_meanwhile_are_booked_twice_and_given_back_once_each(
    ledger: DeviceLedger,
) -> None:
    given = ledger.given({"any": 2 * WHOLE})
    ledger.lose_node("n1")
    ledger.register("n1", cards("g", 2))
    other = ledger.given({"any": 2 * WHOLE})
    ledger.register("n1", cards("g", 2), applications=(given.id,))
    back = ledger.application(given.id)
    assert (back.state, back.over_limit) == (State.USED, True)
    assert ledger.devices("n1")["g"].taken == {0: 2 * WHOLE, 1: 2 * WHOLE}
    assert ledger.standing("any") == (2 * WHOLE, 4 * WHOLE)
    check_devices(ledger)
    ledger.do(op.Release(given.id))
    assert ledger.devices("n1")["g"].taken == {0: WHOLE, 1: WHOLE}
    assert refusal(ledger.ask({"any": 1})).code is Code.INSUFFICIENT_RESOURCES
    ledger.do(op.Release(other.id))
    assert ledger.devices("n1")["g"].taken == {}
    check_devices(ledger)


@pytest.mark.parametrize("by_engine", [False, True])
def test_a_report_that_gives_a_unit_twice_is_over_the_limit_though_other_units_are_free(
    ledger: DeviceLedger, *, by_engine: bool
) -> None:
    given = ledger.given({"any": WHOLE})
    ledger.lose_node("n1")
    ledger.register("n1", cards("g", 2))
    other = ledger.given({"any": 500})
    if by_engine:
        ledger.do(op.RegisterEngine("e1", given.id))
    else:
        ledger.register("n1", cards("g", 2), applications=(given.id,))
    assert ledger.devices("n1")["g"].taken == {0: WHOLE + 500}
    assert ledger.application(given.id).over_limit
    assert not ledger.application(other.id).over_limit, "it was granted, not reported"
    check_devices(ledger)
    ledger.do(op.Release(other.id))
    ledger.do(op.Use(given.id, {"memory": 2}))
    assert not ledger.application(given.id).over_limit
    check_devices(ledger)


def test_a_report_that_shares_a_unit_with_others_is_within_the_limit(ledger: DeviceLedger) -> None:
    given = ledger.given({"any": 500})
    ledger.lose_node("n1")
    ledger.register("n1", cards("g", 1))
    ledger.given({"any": 500})
    ledger.register("n1", cards("g", 1), applications=(given.id,))
    assert ledger.devices("n1")["g"].taken == {0: WHOLE}
    assert not ledger.application(given.id).over_limit
    check_devices(ledger)


def test_what_comes_back_to_a_device_of_other_attributes_counts_under_them(ledger: DeviceLedger) -> None:
    given = ledger.given({"small": WHOLE})
    ledger.lose_node("n1")
    ledger.register("n1", cards("g", 2, "40G"), applications=(given.id,))
    assert ledger.application(given.id).state is State.USED
    assert ledger.standing("big") == (2 * WHOLE, WHOLE)
    assert ledger.standing("small") == (0, 0)
    check_devices(ledger)
    ledger.do(op.Release(given.id))
    check_devices(ledger)


@pytest.mark.parametrize("left", [(), (ports("p"),)])
def test_what_comes_back_to_a_node_without_its_device_is_booked_over_the_limit(
    ledger: DeviceLedger, left: tuple[dict[str, object], ...]
) -> None:
    given = ledger.given({"any": WHOLE})
    ledger.lose_node("n1")
    ledger.register("n1", *left, applications=(given.id,))
    back = ledger.application(given.id)
    assert (back.state, back.over_limit) == (State.USED, True)
    assert over_limit(ledger)
    assert ledger.standing("any") == (0, WHOLE)
    check_devices(ledger)
    ledger.register("n1", cards("g", 2))
    assert ledger.standing("any") == (2 * WHOLE, WHOLE)
    check_devices(ledger)
    ledger.do(op.Release(given.id))
    assert ledger.devices("n1")["g"].taken == {}
    check_devices(ledger)


def test_an_engine_that_reports_itself_brings_the_devices_back_too(ledger: DeviceLedger) -> None:
    given = ledger.given({"small": WHOLE})
    ledger.lose_node("n1")
    ledger.register("n1", cards("g", 2, "40G"))
    ledger.do(op.RegisterEngine("e1", given.id))
    assert ledger.application(given.id).state is State.USED
    assert ledger.standing("big") == (2 * WHOLE, WHOLE)
    check_devices(ledger)


def test_an_engine_brings_back_a_device_that_its_node_does_not_have_any_more(ledger: DeviceLedger) -> None:
    given = ledger.given({"small": WHOLE})
    ledger.lose_node("n1")
    ledger.register("n1")
    ledger.do(op.RegisterEngine("e1", given.id))
    assert ledger.standing("any") == (0, WHOLE)
    check_devices(ledger)
    ledger.do(op.RemoveEngine("e1"))
    assert ledger.standing("any") == (0, 0)
    check_devices(ledger)


def test_a_node_is_removed_only_when_nothing_of_it_is_held(ledger: DeviceLedger) -> None:
    given = ledger.given({"any": WHOLE})
    assert refusal(ledger.do(op.RemoveNode("n1"))).code is Code.NODE_IN_USE
    ledger.do(op.Release(given.id))
    assert isinstance(ledger.do(op.RemoveNode("n1")), Done)
    assert ledger.standing("any") == (0, 0)
    assert ledger.devices("n1") == {}
    check_devices(ledger)
    ledger.register("n1", cards("g", 2))
    assert ledger.standing("any") == (2 * WHOLE, 0)
    check_devices(ledger)


@pytest.mark.parametrize("registered_again", [False, True])
def test_a_resource_managers_word_about_its_node_leaves_the_devices_as_they_are(
    *, registered_again: bool
) -> None:
    ledger = clients_ledger()
    given = ledger.given({"any": WHOLE}, partition=PARTITION, tags=HERE)
    if registered_again:
        told = ledger.do(creating_node("n1", 50, client=AGAIN))
    else:
        told = ledger.do(updating_node("n1", total={"memory": 50}))
    assert isinstance(told, Done)
    assert told.node is not None
    assert told.node.devices == (cards("g", 4),)
    (dimension,) = given.device_amounts
    assert ledger.account(node="n1", partition=PARTITION).total == {"memory": 50, dimension: 4 * WHOLE}
    assert ledger.standing("any") == (4 * WHOLE, WHOLE)
    check_devices(ledger)
    assert units(ledger.given({"any": WHOLE}, partition=PARTITION, tags=HERE)) == [
        ("any", "g", ((1, WHOLE),))
    ]
    check_devices(ledger)


def test_a_resource_managers_word_keeps_what_is_held_of_a_device_that_is_gone() -> None:
    ledger = clients_ledger()
    given = ledger.given({"any": WHOLE}, partition=PARTITION, tags=HERE)
    ledger.register("n1", partition=PARTITION)
    ledger.do(updating_node("n1", total={"memory": 50}))
    assert ledger.standing("any") == (0, WHOLE)
    check_devices(ledger)
    ledger.do(op.Release(given.id))
    ledger.do(updating_node("n1", ready=False))
    assert ledger.standing("any") == (0, 0)
    check_devices(ledger)


def test_a_node_that_its_resource_manager_takes_away_leaves_no_device_behind() -> None:
    ledger = clients_ledger()
    given = ledger.given({"any": WHOLE}, partition=PARTITION, tags=HERE)
    gone = ledger.do(decommissioning("n1"))
    assert isinstance(gone, Done)
    assert gone.node is not None
    assert gone.node.devices == ()
    assert ledger.application(given.id).state is State.LOST
    account = ledger.account(node="n1", partition=PARTITION)
    assert account.balance.devices is None
    assert ledger.standing("any") == (0, 0)
    check_devices(ledger)
    ledger.do(creating_node("n1", 50))
    assert account.total == {"memory": 50}
    assert ledger.standing("any") == (0, 0)
    check_devices(ledger)
    ledger.register("n1", cards("g", 4), partition=PARTITION)
    assert ledger.given({"any": 4 * WHOLE}, partition=PARTITION, tags=HERE).state is State.LOCKED
    check_devices(ledger)


def clients_ledger() -> DeviceLedger:
    """n1 is a resource manager's node; its agent has registered four small cards."""
    ledger = DeviceLedger()
    ledger.do(creating_node("n1", 100))
    ledger.register("n1", cards("g", 4), partition=PARTITION)
    return ledger


def test_a_lost_node_that_is_removed_is_counted_off_only_once(ledger: DeviceLedger) -> None:
    ledger.register("n2", cards("g"))
    ledger.lose_node("n1")
    ledger.do(op.RemoveNode("n1"))
    assert ledger.standing("any") == (WHOLE, 0)
    ledger.register("n1", cards("g", 2))
    assert ledger.standing("any") == (3 * WHOLE, 0)
    check_devices(ledger)


def test_a_node_that_drains_and_changes_its_devices_stays_closed(ledger: DeviceLedger) -> None:
    ledger.do(op.DrainNode("n1"))
    ledger.register("n1", cards("g", 3))
    assert ledger.standing("any") == (3 * WHOLE, 0)
    assert refusal(ledger.ask({"any": WHOLE}, tags={"node": "n1"})).code is Code.NODE_NOT_SCHEDULABLE
    check_devices(ledger)


def test_a_group_that_is_refused_leaves_no_trace_of_its_devices(ledger: DeviceLedger) -> None:
    ledger.given({"any": WHOLE}, memory=10)
    before = ledger.devices("n1"), ledger.standing("any"), ledger.view.seq
    outcomes = ledger.together(
        [
            ledger.asking({"any": 500}),
            ledger.asking({"any": 400}),
            ledger.asking({"any": WHOLE}),
        ]
    )
    assert not any(isinstance(outcome, Done) for outcome in outcomes)
    assert (ledger.devices("n1"), ledger.standing("any"), ledger.view.seq) == before
    check_devices(ledger)
    assert units(ledger.given({"any": WHOLE})) == [("any", "g", ((1, WHOLE),))]


def test_a_group_may_give_back_and_take_the_same_units_or_neither(ledger: DeviceLedger) -> None:
    given = ledger.given({"any": 2 * WHOLE})
    asked = ledger.asking({"any": 2 * WHOLE})
    assert all(isinstance(outcome, Done) for outcome in ledger.together([op.Release(given.id), asked]))
    check_devices(ledger)
    outcomes = ledger.together([op.Release(asked.id), ledger.asking({"any": 3 * WHOLE})])
    assert not any(isinstance(outcome, Done) for outcome in outcomes)
    assert ledger.application(asked.id).state is State.LOCKED
    assert ledger.standing("any") == (2 * WHOLE, 2 * WHOLE)
    check_devices(ledger)


def test_a_registration_in_a_group_that_is_refused_did_not_take_place(ledger: DeviceLedger) -> None:
    given = ledger.given({"small": WHOLE})
    before = ledger.devices("n1")
    change = op.RegisterNode("n1", "Special", {"memory": 100}, devices=(cards("g", 2, "40G"),))
    new = op.RegisterNode("n2", "Special", {"memory": 100}, devices=(ports("p"),))
    ledger.together([change, new, op.Release("nobody")])
    assert ledger.devices("n1") == before
    assert ledger.application(given.id).device_amounts == given.device_amounts
    assert ledger.standing("small") == (2 * WHOLE, WHOLE)
    assert ledger.standing("big") == ledger.standing("fast") == (0, 0)
    check_devices(ledger)
    assert isinstance(ledger.register("n2", ports("p")), Done)
    assert ledger.standing("fast") == (WHOLE, 0)
    check_devices(ledger)


def test_what_is_held_of_a_signature_is_charged_to_the_user_as_well(ledger: DeviceLedger) -> None:
    given = ledger.given({"any": 500}, tags={"user": "alice"})
    (held,) = given.devices
    assert ledger.account(user="alice").balance.locked[dimension_of(held.signature)] == 500
    ended = application_of(ledger.do(op.Release(given.id)))
    assert ended.locked_now == {}
    assert ledger.account(user="alice").balance.locked[dimension_of(held.signature)] == 0
