"""Who waits for devices is woken by whatever may have brought them, and holds up nobody who needs none."""

import pytest

from rm_service.domain import operations as op
from rm_service.domain.application import State
from tests.domain.device_ledger import BIG, DeviceLedger, cards, check_devices, ports, units
from tests.domain.pure_ledger import application_of, refusal

WHOLE = 1000


@pytest.fixture
def ledger() -> DeviceLedger:
    """n1 has two cards and two fast ports, and room for little else."""
    ledger = DeviceLedger()
    ledger.register("n1", cards("g", 2, "40G"), ports("p", 2))
    return ledger


def test_a_release_wakes_who_waits_for_the_devices(ledger: DeviceLedger) -> None:
    holder = ledger.given({"big": 2 * WHOLE})
    waiter = ledger.given({"any": WHOLE, "big": WHOLE}, wait_seconds=100)
    assert waiter.state is State.WAITING
    assert waiter.devices == ()
    check_devices(ledger)
    ledger.do(op.Release(holder.id))
    granted = ledger.application(waiter.id)
    assert granted.state is State.LOCKED
    assert granted.tags["node"] == "n1"
    assert units(granted) == [("any", "g", ((0, WHOLE),)), ("big", "g", ((1, WHOLE),))]
    check_devices(ledger)


def test_a_fraction_that_becomes_free_wakes_a_fraction_but_no_whole(ledger: DeviceLedger) -> None:
    first, second = ledger.given({"big": 600}), ledger.given({"big": 600})
    whole = ledger.given({"big": WHOLE}, wait_seconds=100)
    part = ledger.given({"big": 500}, wait_seconds=100)
    ledger.do(op.Use(first.id))
    assert {ledger.application(each.id).state for each in (whole, part)} == {State.WAITING}
    small = ledger.given({"big": 400}, priority=1)
    assert small.state is State.LOCKED, "there is room for it, and it comes first"
    ledger.do(op.Release(second.id))
    states = [ledger.application(each.id).state for each in (whole, part)]
    assert states.count(State.LOCKED) == 1
    check_devices(ledger)


def test_a_lock_whose_lease_is_over_wakes_them(ledger: DeviceLedger) -> None:
    holder = ledger.given({"big": 2 * WHOLE})
    waiter = ledger.given({"big": WHOLE}, wait_seconds=100)
    ledger.pass_time(61)
    ledger.do(op.Reclaim(holder.id))
    assert ledger.application(waiter.id).state is State.LOCKED
    check_devices(ledger)


def test_a_node_that_registers_wakes_them(ledger: DeviceLedger) -> None:
    ledger.given({"big": 2 * WHOLE})
    waiter = ledger.given({"big": WHOLE}, wait_seconds=100)
    ledger.register("n2", cards("g"))
    assert ledger.application(waiter.id).state is State.WAITING, "that card is a small one"
    ledger.register("n3", cards("g", memory="80G"))
    assert ledger.application(waiter.id).tags["node"] == "n3"
    check_devices(ledger)


def test_a_device_more_on_a_node_that_is_there_wakes_them(ledger: DeviceLedger) -> None:
    ledger.given({"big": 2 * WHOLE})
    waiter = ledger.given({"big": WHOLE}, wait_seconds=100)
    ledger.register("n1", cards("g", 2, "40G"), cards("h", 1, "30G"), ports("p", 2))
    assert units(ledger.application(waiter.id)) == [("big", "h", ((0, WHOLE),))]
    check_devices(ledger)


def test_a_class_that_is_created_wakes_who_waits_for_its_name(ledger: DeviceLedger) -> None:
    holder = ledger.given({"big": 2 * WHOLE})
    waiter = ledger.given({"big": WHOLE}, wait_seconds=100)
    ledger.remove_class("big")
    ledger.do(op.Release(holder.id))
    assert ledger.application(waiter.id).state is State.WAITING, "nobody knows what it waits for"
    ledger.create_class("big", BIG)
    assert ledger.application(waiter.id).state is State.LOCKED
    check_devices(ledger)


def test_it_wakes_them_wherever_they_stood_when_they_came(ledger: DeviceLedger) -> None:
    holder = ledger.granted({"memory": 95}, node="n1")
    waiter = ledger.given({"big": WHOLE}, memory=50, tags={"node": "n1"}, wait_seconds=100)
    assert waiter.waits_on == (ledger.account(node="n1").label.id,), "it lacks memory and nothing else"
    ledger.remove_class("big")
    ledger.do(op.Release(holder.id))
    assert ledger.application(waiter.id).state is State.WAITING
    ledger.create_class("big", BIG)
    assert ledger.application(waiter.id).state is State.LOCKED
    check_devices(ledger)


def test_who_waits_for_a_class_that_is_gone_holds_up_nobody(ledger: DeviceLedger) -> None:
    holder = ledger.granted({"memory": 95}, node="n1")
    ledger.given({"big": WHOLE}, memory=50, tags={"node": "n1"}, wait_seconds=100)
    ledger.remove_class("big")
    ledger.do(op.Release(holder.id))
    assert ledger.granted({"memory": 95}, node="n1").state is State.LOCKED


def test_a_class_of_that_name_that_selects_something_else_counts(ledger: DeviceLedger) -> None:
    ledger.given({"big": 2 * WHOLE})
    waiter = ledger.given({"big": WHOLE}, wait_seconds=100)
    ledger.register("n2", cards("g"))
    ledger.remove_class("big")
    ledger.create_class("big", ledger.book.classes["any"].spec)
    assert ledger.application(waiter.id).tags["node"] == "n2"
    check_devices(ledger)


def test_who_waits_for_a_class_that_is_gone_expires_as_any_other(ledger: DeviceLedger) -> None:
    ledger.given({"big": 2 * WHOLE})
    waiter = ledger.given({"big": WHOLE}, wait_seconds=100)
    ledger.remove_class("big")
    ledger.pass_time(101)
    assert application_of(ledger.do(op.Reclaim(waiter.id))).state is State.EXPIRED
    check_devices(ledger)


def test_who_waits_for_devices_does_not_hold_up_who_needs_none(ledger: DeviceLedger) -> None:
    ledger.given({"big": 2 * WHOLE})
    ledger.given({"big": WHOLE}, wait_seconds=100, priority=9)
    plain = op.Apply("plain", {}, {"memory": 1}, placement=op.Placement())
    assert application_of(ledger.do(plain)).state is State.LOCKED
    assert ledger.granted({"memory": 1}, node="n1").state is State.LOCKED
    assert ledger.given({"fast": WHOLE}).state is State.LOCKED, "nor who needs others"


def test_who_waits_for_devices_goes_before_who_comes_later(ledger: DeviceLedger) -> None:
    ledger.given({"big": WHOLE})
    ledger.given({"big": 2 * WHOLE}, wait_seconds=100)
    refused = refusal(ledger.ask({"big": WHOLE}))
    assert [each.reason for each in refused.shortfalls] == ["waiters_ahead"]
    assert ledger.given({"big": WHOLE}, priority=1).state is State.LOCKED


def test_who_waits_on_a_named_node_is_woken_by_it(ledger: DeviceLedger) -> None:
    holder = ledger.given({"big": 2 * WHOLE})
    waiter = ledger.given({"big": WHOLE}, tags={"node": "n1"}, wait_seconds=100)
    ledger.register("n2", cards("g", 2, "40G"))
    assert ledger.application(waiter.id).state is State.WAITING
    ledger.do(op.Release(holder.id))
    assert ledger.application(waiter.id).tags == {"node": "n1"}
    check_devices(ledger)


def test_a_node_that_takes_new_work_again_wakes_them(ledger: DeviceLedger) -> None:
    ledger.do(op.DrainNode("n1"))
    waiter = ledger.given({"big": WHOLE}, wait_seconds=100)
    ledger.do(op.UndrainNode("n1"))
    assert ledger.application(waiter.id).state is State.LOCKED


def test_who_asks_for_more_than_there_is_lets_others_pass_however_old_it_is(ledger: DeviceLedger) -> None:
    ledger.given({"big": 2 * WHOLE})
    ledger.given({"big": 3 * WHOLE}, wait_seconds=10_000)
    ledger.pass_time(1_000)
    behind = ledger.given({"big": WHOLE}, wait_seconds=10_000)
    for application in ledger.holding():
        ledger.do(op.Release(application.id))
    assert ledger.application(behind.id).state is State.LOCKED


def test_who_waits_with_alternatives_takes_the_first_that_has_the_devices(ledger: DeviceLedger) -> None:
    ledger.register("n2", cards("g", 1, "40G"))
    on_first = ledger.given({"big": 2 * WHOLE}, tags={"node": "n1"})
    on_second = ledger.given({"big": WHOLE}, tags={"node": "n2"})
    asked = ledger.asking(
        {"big": WHOLE}, tags={"node": "n1"}, alternatives=({"node": "n2"},), wait_seconds=100
    )
    waiter = application_of(ledger.do(asked))
    assert waiter.state is State.WAITING
    ledger.do(op.Release(on_second.id))
    assert ledger.application(waiter.id).tags == {"node": "n2"}
    ledger.do(op.Release(on_first.id))
    check_devices(ledger)


def test_who_lacks_a_quota_on_devices_is_woken_wherever_it_is_given_back(ledger: DeviceLedger) -> None:
    (dimension,) = ledger.given({"big": WHOLE}).device_amounts
    limited = DeviceLedger({"user=*": {dimension: WHOLE}})
    tags = {"user": "alice"}
    for partition in ("p", "q"):
        limited.register("n1", cards("g", 2, "40G"), partition=partition)
    first, second = (
        limited.given({"big": WHOLE}, tags={**tags, "partition": each}, partition=each, wait_seconds=100)
        for each in ("p", "q")
    )
    assert (first.state, second.state) == (State.LOCKED, State.WAITING)
    plain = {**tags, "partition": "q", "node": "n1"}
    assert limited.granted({"memory": 1}, **plain).state is State.LOCKED, "who needs no devices passes"
    limited.do(op.Release(first.id))
    assert limited.application(second.id).state is State.LOCKED


def test_memory_that_is_given_back_wakes_who_has_the_devices_before_it(ledger: DeviceLedger) -> None:
    holder = ledger.granted({"memory": 95}, node="n1")
    waiter = ledger.given({"big": WHOLE}, memory=50, wait_seconds=100)
    assert waiter.state is State.WAITING
    ledger.do(op.Use(holder.id, {"memory": 20}))
    assert ledger.application(waiter.id).state is State.LOCKED
    check_devices(ledger)
