"""Resource managers ask for classes as for any resource; what was asked for as a class stays one."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.clients import Client, Termination
from rm_service.domain.device_annotations import PREFIX
from rm_service.domain.outcomes import Code, Done
from tests.client_words import AGAIN, RM, adding, asking, booking, of_kind, partition_of, releasing
from tests.domain.client_ledger import ClientLedger, check_balances, check_members
from tests.domain.device_ledger import ANY, DeviceLedger, cards, check_devices, units
from tests.domain.pure_ledger import refusal

HERE = {"partition": partition_of(RM)}
TWO = {"memory": 3, "any": 2}
BOTH = (("any", "gpu0", ((0, 1000), (1, 1000))),)


class Ledger(DeviceLedger, ClientLedger):
    """What clients are told, on nodes with cards."""


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """With one node of three cards and one application; at the end everything must add up."""
    ledger = Ledger()
    ledger.register("n1", cards("gpu0", 3), partition=partition_of(RM))
    ledger.do(adding())
    yield ledger
    check_members(ledger)
    check_balances(ledger)
    check_devices(ledger)


def used_of(ledger: Ledger, name: str) -> int:
    """What is used of a dimension by the application's user."""
    return ledger.account(user="alice").balance.used.get(name, 0)


def again(ledger: Ledger, *, client: Client = AGAIN) -> None:
    """The client registers a second time, and names its application."""
    ledger.do(adding(client=client))


def news(answers: Any) -> list[tuple[Mapping[str, int], Mapping[str, str]]]:
    return [(new["resource"], new["tags"]) for new in of_kind(answers, "new")]


class TestAsks:
    def test_a_class_is_granted_as_devices_which_the_answer_names(self, ledger: Ledger) -> None:
        ask = asking("k", resource=TWO, request={"tags": {"a": "b"}})
        told = ledger.told_by(ask)
        assert news(told) == [(TWO, {"a": "b", f"{PREFIX}_any_gpu0": "2"})]
        granted = ledger.application(ask.ids[0])
        assert (granted.state, granted.used, tuple(units(granted))) == (State.USED, {"memory": 3}, BOTH)
        assert ledger.standing("any") == (3000, 2000)

    def test_it_waits_untold_until_there_are_devices(self, ledger: Ledger) -> None:
        ledger.do(asking("first", resource=TWO))
        assert of_kind(ledger.told_by(asking("next", resource=TWO)), "new") == []
        assert ledger.states("next") == [State.WAITING]
        assert news(ledger.told_by(releasing("first"))) == [(TWO, {f"{PREFIX}_any_gpu0": "2"})]

    def test_what_waits_is_replaced_by_another_ask_of_its_name(self, ledger: Ledger) -> None:
        ledger.do(asking("k", resource={"any": 4}))
        assert news(ledger.told_by(asking("k", resource={"any": 3}))) == [
            ({"any": 3}, {f"{PREFIX}_any_gpu0": "3"})
        ]
        assert ledger.states("k") == [State.USED]

    def test_what_waits_keeps_its_place_in_whatever_order_its_classes_are_named(self, ledger: Ledger) -> None:
        classes = {"any": 2, "big": 1, "fast": 1}
        waiting = ledger.of(asking("k", resource=classes))
        for order in permutations(classes.items()):
            assert ledger.of(asking("k", resource=dict(order))).id == waiting.id

    def test_what_could_not_be_started_is_asked_for_by_class_again(self, ledger: Ledger) -> None:
        ledger.do(asking("k", resource=TWO))
        told = ledger.told_by(releasing("k", termination=Termination.SCHEDULING_FAILED_ON_RM))
        assert news(told) == [(TWO, {f"{PREFIX}_any_gpu0": "2"})]
        assert ledger.standing("any") == (3000, 2000)

    @pytest.mark.parametrize("asked", [1, 2, 3])
    def test_another_amount_of_memory_keeps_the_devices(self, ledger: Ledger, asked: int) -> None:
        ledger.do(asking("k", resource=TWO))
        resized = ledger.of(asking("k", resource={"memory": 5, "any": asked}))
        assert (resized.used, tuple(units(resized))) == ({"memory": 5}, BOTH)


class TestReports:
    def test_what_runs_by_a_class_takes_devices_of_its_node(self, ledger: Ledger) -> None:
        booked = ledger.of(booking("k", "n1", resource=TWO))
        assert (booked.used, tuple(units(booked)), booked.over_limit) == ({"memory": 3}, BOTH, False)

    def test_where_there_are_too_few_it_is_over_the_limit(self, ledger: Ledger) -> None:
        ledger.do(booking("k", "n1", resource=TWO))
        booked = ledger.of(booking("other", "n1", resource=TWO))
        assert (booked.state, booked.devices, booked.over_limit) == (State.USED, (), True)

    def test_reported_again_it_keeps_them(self, ledger: Ledger) -> None:
        report = booking("k", "n1", resource=TWO)
        ledger.do(report)
        booked = ledger.of(replace(report, resource={"memory": 4, "any": 2}))
        assert (booked.used, tuple(units(booked))) == ({"memory": 4}, BOTH)


class TestAClassThatIsDeleted:
    """What was asked for as a class stays one, although nobody else can ask for it."""

    def test_an_ask_that_is_stated_again_books_nothing_more(self, ledger: Ledger) -> None:
        before = ledger.of(asking("k", resource=TWO))
        ledger.remove_class("any")
        again(ledger)
        told = ledger.told_by(asking("k", resource=TWO, client=AGAIN))
        assert news(told) == [(TWO, {f"{PREFIX}_any_gpu0": "2"})]
        after = ledger.application(before.id)
        assert (after.used, tuple(units(after))) == ({"memory": 3}, BOTH)
        assert used_of(ledger, "any") == 0

    def test_nor_does_one_that_is_resized(self, ledger: Ledger) -> None:
        ledger.do(asking("k", resource=TWO))
        ledger.remove_class("any")
        resized = ledger.of(asking("k", resource={"memory": 5, "any": 2}))
        assert (resized.used, tuple(units(resized))) == ({"memory": 5}, BOTH)

    def test_nor_does_an_allocation_that_is_reported_again(self, ledger: Ledger) -> None:
        report = booking("k", "n1", resource=TWO)
        ledger.do(report)
        ledger.remove_class("any")
        again(ledger)
        booked = ledger.of(replace(report, client=AGAIN))
        assert (booked.used, tuple(units(booked)), booked.over_limit) == ({"memory": 3}, BOTH, False)

    def test_nor_does_an_ask_that_is_reported_as_running(self, ledger: Ledger) -> None:
        ask = asking("k", resource=TWO)
        ledger.do(ask)
        ledger.remove_class("any")
        again(ledger)
        booked = ledger.of(booking("k", "n1", id=ask.ids[0], resource=TWO, client=AGAIN))
        assert (booked.id, booked.used, tuple(units(booked))) == (ask.ids[0], {"memory": 3}, BOTH)

    def test_a_waiting_ask_that_runs_already_holds_none_and_is_over_the_limit(self, ledger: Ledger) -> None:
        ledger.do(asking("k", resource={"memory": 1, "any": 4}))
        ledger.remove_class("any")
        booked = ledger.of(booking("k", "n1", resource={"memory": 1, "any": 4}))
        assert (booked.used, booked.devices, booked.over_limit) == ({"memory": 1}, (), True)

    def test_who_waits_for_it_keeps_waiting_until_there_is_one_again(self, ledger: Ledger) -> None:
        ledger.do(asking("first", resource=TWO))
        waiting = ledger.of(asking("k", resource=TWO))
        ledger.remove_class("any")
        assert ledger.of(asking("k", resource=TWO)).id == waiting.id
        ledger.do(releasing("first"))
        assert ledger.states("k") == [State.WAITING]
        ledger.create_class("any", ANY)
        assert tuple(units(ledger.application(waiting.id))) == BOTH

    def test_more_of_it_than_runs_is_refused(self, ledger: Ledger) -> None:
        ledger.do(asking("k", resource=TWO))
        ledger.remove_class("any")
        assert refusal(ledger.do(asking("k", resource=TWO, count=2))).code is Code.UNKNOWN_CLASS
        assert ledger.states("k") == [State.USED]
        assert used_of(ledger, "any") == 0


class TestAClassThatIsCreatedLater:
    @pytest.fixture
    def ledger(self, ledger: Ledger) -> Ledger:
        """With a node that has seven of something that it calls `opaque`."""
        ledger.do(
            op.RegisterNode(
                "n2",
                "Special",
                {"memory": 100, "opaque": 7},
                partition=partition_of(RM),
                devices=[cards("g")],
            )
        )
        return ledger

    def test_what_was_given_as_an_amount_stays_one(self, ledger: Ledger) -> None:
        ask = asking("k", resource={"memory": 1, "opaque": 2})
        before = ledger.of(ask)
        ledger.create_class("opaque", ANY)
        outcome = ledger.do(asking("k", resource={"memory": 1, "opaque": 2}))
        assert isinstance(outcome, Done)
        assert outcome.repeated
        after = ledger.application(before.id)
        assert (after.used, after.devices) == ({"memory": 1, "opaque": 2}, ())

    def test_also_where_it_is_reported(self, ledger: Ledger) -> None:
        report = booking("k", "n2", resource={"memory": 1, "opaque": 2})
        ledger.do(report)
        ledger.create_class("opaque", ANY)
        assert ledger.of(report).used == {"memory": 1, "opaque": 2}

    def test_a_new_ask_names_the_class(self, ledger: Ledger) -> None:
        ledger.create_class("opaque", ANY)
        granted = ledger.of(asking("k", resource={"memory": 1, "opaque": 1}))
        assert (granted.used, len(granted.devices)) == ({"memory": 1}, 1)
