"""Slots: who asks for nothing but to be one application more, and waits for another one to end."""

from collections.abc import Iterator

import pytest

from rm_service.domain import operations as op
from rm_service.domain.application import State
from tests.client_words import RM, adding, asking, creating_node, partition_of, releasing, removing
from tests.domain.client_ledger import ClientLedger, check_balances, check_members
from tests.domain.pure_ledger import PureLedger, application_of

ONE = f"partition={partition_of(RM)},queue=root.one"


@pytest.fixture
def ledger() -> Iterator[ClientLedger]:
    """One node of 10; root.one takes one application at a time, and alice may have two at once anywhere."""
    ledger = ClientLedger({ONE: {"apps": 1, "memory": 8}, "user=alice": {"apps": 2}})
    ledger.do(creating_node())
    yield ledger
    check_members(ledger)
    check_balances(ledger)


def crowd(ledger: ClientLedger, count: int) -> list[str]:
    """So many applications of as many users in root.one: the first runs, the others wait."""
    names = [f"app-{at}" for at in range(count)]
    for at, name in enumerate(names):
        ledger.do(adding(name, user=f"user-{at}", queue="root.one"))
    return names


def states(ledger: ClientLedger, names: list[str]) -> list[State]:
    return [ledger.parent(name).state for name in names]


def used_and_waiting(used: int, waiting: int) -> list[State]:
    return [State.USED] * used + [State.WAITING] * waiting


def test_those_who_wait_for_a_slot_do_not_hold_up_the_one_that_runs(ledger: ClientLedger) -> None:
    names = crowd(ledger, 21)
    assert states(ledger, names) == used_and_waiting(1, 20)
    ledger.do(asking("k", "app-0", memory=8, queue="root.one"))
    assert ledger.states("k", "app-0") == [State.USED]


def test_nor_do_the_asks_that_wait_with_them(ledger: ClientLedger) -> None:
    for name in crowd(ledger, 21)[1:]:
        ledger.do(asking("k", name, memory=8, queue="root.one"))
    ledger.do(asking("k", "app-0", memory=8, queue="root.one"))
    assert ledger.states("k", "app-0") == [State.USED]


def test_the_one_that_runs_is_let_in_when_its_own_room_comes_free(ledger: ClientLedger) -> None:
    crowd(ledger, 21)
    ledger.do(asking("large", "app-0", memory=8, queue="root.one"))
    ledger.do(asking("next", "app-0", memory=8, queue="root.one"))
    assert ledger.states("next", "app-0") == [State.WAITING]
    ledger.do(releasing("large", "app-0"))
    assert ledger.states("next", "app-0") == [State.USED]


def test_each_that_ends_lets_the_next_in_as_they_came(ledger: ClientLedger) -> None:
    names = crowd(ledger, 30)
    for ended, name in enumerate(names[:-1], start=1):
        ledger.do(removing(name))
        assert states(ledger, names[ended:]) == used_and_waiting(1, 29 - ended)


def test_it_comes_in_with_its_asks(ledger: ClientLedger) -> None:
    crowd(ledger, 2)
    ledger.do(asking("k", "app-1", memory=4, queue="root.one"))
    assert ledger.states("k", "app-1") == [State.WAITING]
    ledger.do(removing("app-0"))
    assert ledger.states("k", "app-1") == [State.USED]


def test_one_that_completes_by_itself_gives_its_slot_back(ledger: ClientLedger) -> None:
    names = crowd(ledger, 2)
    ledger.in_one_batch([asking("k", "app-0", queue="root.one"), releasing("k", "app-0")])
    assert states(ledger, names[1:]) == [State.WAITING], "it is open for new asks yet"
    ledger.pass_time(30)
    ledger.sweep()
    assert states(ledger, names[1:]) == [State.USED]


def test_one_that_gives_up_waiting_lets_nobody_in(ledger: ClientLedger) -> None:
    names = crowd(ledger, 3)
    ledger.do(removing("app-1"))
    assert states(ledger, [names[0], names[2]]) == [State.USED, State.WAITING]
    ledger.do(removing("app-0"))
    assert states(ledger, names[2:]) == [State.USED]


def test_one_that_needs_two_slots_waits_for_the_second_when_it_could_have_the_first(
    ledger: ClientLedger,
) -> None:
    ledger.do(adding("a"))
    ledger.do(adding("b"))
    ledger.do(adding("one", user="bob", queue="root.one"))
    ledger.do(adding("both", queue="root.one"))
    ledger.do(removing("one"))
    assert states(ledger, ["both"]) == [State.WAITING], "alice has two already"
    ledger.do(removing("a"))
    assert states(ledger, ["both"]) == [State.USED]


def test_a_slot_that_another_door_gives_back_lets_one_in(ledger: ClientLedger) -> None:
    held = [ledger.granted({"apps": 1, "memory": 2}, user="alice") for _ in range(2)]
    ledger.do(adding("a"))
    assert states(ledger, ["a"]) == [State.WAITING]
    ledger.do(op.Release(held[0].id))
    assert states(ledger, ["a"]) == [State.USED]


def test_the_ledgers_own_applications_wait_for_slots_in_the_same_way() -> None:
    ledger = PureLedger({"user=alice": {"apps": 1, "memory": 10}})
    holder = ledger.granted({"apps": 1}, user="alice")
    waiting = [application_of(ledger.apply({"apps": 1}, wait=60, user="alice")) for _ in range(20)]
    ledger.granted({"memory": 10}, user="alice")
    ledger.do(op.Release(holder.id))
    assert [ledger.application(each.id).state for each in waiting] == [State.LOCKED] + [State.WAITING] * 19


def test_who_uses_fewer_slots_than_it_was_granted_lets_others_in() -> None:
    ledger = PureLedger({"user=alice": {"apps": 2}})
    holder = ledger.granted({"apps": 2}, user="alice")
    waiting = application_of(ledger.apply({"apps": 1}, wait=60, user="alice"))
    ledger.do(op.Use(holder.id, {"apps": 1}))
    assert ledger.application(waiting.id).state is State.LOCKED


def test_who_asks_for_more_than_a_slot_stands_in_the_labels_own_queue() -> None:
    ledger = PureLedger({"user=alice": {"apps": 1, "memory": 10}})
    holder = ledger.granted({"apps": 1}, user="alice")
    waiting = application_of(ledger.apply({"apps": 1, "memory": 1}, wait=60, user="alice"))
    assert application_of(ledger.apply({"memory": 1}, wait=60, user="alice")).state is State.WAITING
    ledger.do(op.Release(holder.id))
    assert ledger.application(waiting.id).state is State.LOCKED
