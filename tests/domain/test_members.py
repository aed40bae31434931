"""An application with members: its phases, its place in the queue, and its end."""

from collections.abc import Iterator

import pytest

from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.clients import Termination
from tests.client_words import (
    RM,
    adding,
    asking,
    booking,
    creating_node,
    kinds,
    of_kind,
    partition_of,
    phases,
    releasing,
    removing,
    running,
)
from tests.domain.client_ledger import ClientLedger, check_balances, check_members

HERE = {"partition": partition_of(RM)}


@pytest.fixture
def ledger() -> Iterator[ClientLedger]:
    """One node of 10; a queue root.one for one application at a time."""
    ledger = ClientLedger({f"partition={partition_of(RM)},queue=root.one": {"apps": 1, "memory": 8}})
    ledger.do(creating_node())
    yield ledger
    check_members(ledger)
    check_balances(ledger)


class TestPhases:
    def test_it_is_accepted_runs_completes_and_is_completed(self, ledger: ClientLedger) -> None:
        ledger.do(adding())
        assert kinds(ledger.told()) == ["accepted_node", "accepted_application"]
        ledger.do(asking("big", memory=10, node="n1"))
        ledger.do(releasing("big"))
        ledger.pass_time(30)
        ledger.sweep()
        assert phases(ledger.told()) == ["Accepted", "Running", "Completing", "Completed"]
        assert (ledger.parent().state, ledger.holding()) == (State.RELEASED, [])

    def test_an_ask_that_only_waits_does_not_make_it_run(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([adding(), asking("w", memory=50)])
        assert phases(ledger.told()) == ["Accepted"]
        ledger.do(releasing("w"))
        assert phases(ledger.told()) == ["Accepted", "Completing"]

    def test_a_new_ask_keeps_it_from_being_completed(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([adding(), asking("k"), releasing("k")])
        ledger.pass_time(29)
        ledger.do(asking("w", memory=50))
        ledger.pass_time(600)
        ledger.sweep()
        assert phases(ledger.told()) == ["Accepted", "Running", "Completing", "Running"]
        ledger.do(releasing("w"))
        ledger.pass_time(29)
        ledger.sweep()
        assert phases(ledger.told())[-1] == "Completing", "the while begins anew"
        ledger.pass_time(1)
        ledger.sweep()
        assert phases(ledger.told())[-1] == "Completed"

    def test_a_recovered_allocation_makes_it_run(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([adding(), booking("k", "n1")])
        assert phases(ledger.told()) == ["Accepted", "Running"]

    def test_a_placeholder_does_not_make_it_run(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([adding(), asking("k", request={"placeholder": True})])
        assert phases(ledger.told()) == ["Accepted"]

    def test_a_replaced_ask_leaves_it_in_its_phase(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([adding(), asking("w", memory=50), asking("w", memory=40, count=3)])
        assert phases(ledger.told()) == ["Accepted"]

    def test_an_ask_given_up_for_none_lets_it_complete(self, ledger: ClientLedger) -> None:
        """The replaced ask and its refused successor together leave nothing."""
        ledger.in_one_batch([adding(), asking("w", memory=50)])
        ledger.in_one_batch([asking("w", memory=50, node="unknown"), releasing("w")])
        assert phases(ledger.told()) == ["Accepted", "Completing"]

    def test_each_phase_is_told_with_its_time_in_nanoseconds(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([adding(), asking("k")])
        told = of_kind(ledger.told(), "updated_application")
        assert [answer["at"] for answer in told] == [ledger.now * 1_000] * 2
        assert [answer["message"] for answer in told] == ["runApplication", "runApplication"]


class TestRemoval:
    def test_it_ends_with_all_that_it_has(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([adding(), asking("k", count=2), asking("w", memory=50)])
        told = ledger.told_by(removing())
        assert [(answer["kind"], answer["termination"], answer["message"]) for answer in told] == [
            ("released", "STOPPED_BY_RM", "Application app-1 Removed")
        ] * 2
        assert ledger.holding() == []
        assert ledger.account(user="alice").balance.used == {"apps": 0, "memory": 0}

    def test_it_may_be_removed_and_added_again_in_one_batch(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([adding(), asking("k")])
        told = ledger.told_by(
            removing(), adding(), asking("k", memory=2), removing(), adding(), asking("k", memory=3)
        )
        assert len(of_kind(told, "accepted_application")) == 2
        assert [answer["resource"] for answer in running(ledger.told()).values()] == [{"memory": 3}]
        assert ledger.account(user="alice").balance.used == {"apps": 1, "memory": 3}

    def test_the_room_of_what_is_removed_goes_to_who_waits(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch(
            [adding(), asking("k", memory=10), adding("app-2"), asking("w", "app-2", memory=9)]
        )
        assert kinds(of_kind(ledger.told_by(removing()), "new")) == ["new"]


class TestWaiting:
    """Where the queue has no room for one more application, it waits, and its members with it."""

    def fill(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([adding("first", queue="root.one"), adding("second", queue="root.one")])
        assert ledger.parent("second").state is State.WAITING

    def test_it_is_accepted_all_the_same(self, ledger: ClientLedger) -> None:
        self.fill(ledger)
        assert [answer["app"] for answer in of_kind(ledger.told(), "accepted_application")] == [
            "first",
            "second",
        ]

    def test_its_asks_wait_although_there_is_room_and_go_when_it_goes(self, ledger: ClientLedger) -> None:
        self.fill(ledger)
        ledger.in_one_batch([asking(f"k{number}", "second") for number in range(3)])
        assert of_kind(ledger.told(), "new") == []
        assert phases(ledger.told(), "second") == ["Accepted"]
        told = ledger.told_by(removing("first"))
        assert [answer["key"] for answer in of_kind(told, "new")] == ["k0", "k1", "k2"]
        assert phases(ledger.told(), "second") == ["Accepted", "Running"]

    def test_more_members_than_one_look_sees_all_go(self, ledger: ClientLedger) -> None:
        self.fill(ledger)
        ledger.do(creating_node("n2", 100))
        ledger.do(asking("k", "second", count=40, resource={"vcore": 0}))
        ledger.do(removing("first"))
        assert len(of_kind(ledger.told(), "new")) == 40

    def test_after_a_long_wait_its_members_do_not_hold_each_other_up(self, ledger: ClientLedger) -> None:
        """The first of them finds no room and is past the age bound; the second has room elsewhere."""
        self.fill(ledger)
        ledger.in_one_batch([creating_node("n2", 10), booking("full", "n1", None, memory=10)])
        ledger.in_one_batch(
            [asking("a", "second", node="n1", priority=1), asking("b", "second", node="n2", priority=1)]
        )
        ledger.pass_time(100_000)
        ledger.do(removing("first"))
        assert ledger.states("a", "second") == [State.WAITING]
        assert ledger.states("b", "second") == [State.USED]

    def test_what_runs_is_booked_even_for_one_that_waits(self, ledger: ClientLedger) -> None:
        self.fill(ledger)
        ledger.do(booking("k", "n1", "second"))
        assert ledger.states("k", "second") == [State.USED]
        ledger.do(removing("first"))
        assert ledger.parent("second").state is State.USED

    def test_removed_while_it_waits_it_is_gone_with_its_asks(self, ledger: ClientLedger) -> None:
        self.fill(ledger)
        ledger.do(asking("k", "second"))
        assert ledger.told_by(removing("second"), removing("first")) == []
        assert ledger.view.applications[ledger.parent("second").id].state is State.RELEASED

    def test_one_whose_asks_are_given_up_meanwhile_is_completed_after_all(self, ledger: ClientLedger) -> None:
        self.fill(ledger)
        ledger.in_one_batch([asking("k", "second"), releasing("k", "second")])
        ledger.do(removing("first"))
        ledger.pass_time(30)
        ledger.sweep()
        assert phases(ledger.told(), "second") == ["Accepted", "Completing", "Completed"]


class TestExecutionTime:
    def start(self, ledger: ClientLedger) -> str:
        ledger.do(adding(run_for=100))
        ledger.pass_time(1_000)
        ledger.in_one_batch([asking("k", memory=2), asking("w", memory=50)])
        return ledger.view.named(f"{partition_of(RM)}/app-1/k")[0].id

    def test_the_time_begins_when_it_runs(self, ledger: ClientLedger) -> None:
        self.start(ledger)
        ledger.pass_time(99)
        ledger.sweep()
        assert phases(ledger.told()) == ["Accepted", "Running"]

    def test_it_fails_its_asks_end_and_its_allocations_are_told_to(self, ledger: ClientLedger) -> None:
        allocation = self.start(ledger)
        ledger.pass_time(100)
        ledger.sweep()
        assert phases(ledger.told())[-1] == "Failing"
        (ask,) = of_kind(ledger.told(), "released_ask")
        assert (ask["key"], ask["termination"]) == ("w", "TIMEOUT")
        (told,) = of_kind(ledger.told(), "released")
        assert (told["id"], told["termination"]) == (allocation, "TIMEOUT")
        assert ledger.account(**HERE, node="n1").left() == {"memory": 8}, "until that is confirmed"
        ledger.do(releasing(id=allocation, termination=Termination.TIMEOUT))
        ledger.sweep()
        assert phases(ledger.told())[-1] == "Failed"
        assert (ledger.parent().state, ledger.holding()) == (State.EXPIRED, [])

    def test_nothing_more_is_taken_while_it_fails(self, ledger: ClientLedger) -> None:
        self.start(ledger)
        ledger.pass_time(100)
        ledger.sweep()
        told = ledger.told_by(asking("late"), booking("late", "n1"))
        assert kinds(told) == ["rejected_ask", "rejected_allocation"]

    def test_what_is_never_confirmed_does_not_keep_it(self, ledger: ClientLedger) -> None:
        self.start(ledger)
        ledger.pass_time(100)
        ledger.sweep()
        ledger.pass_time(30)
        ledger.sweep()
        assert phases(ledger.told())[-1] == "Failed"
        assert ledger.holding() == []

    def test_an_allocations_own_end_and_its_applications_are_both_confirmed_at_once(
        self, ledger: ClientLedger
    ) -> None:
        ledger.in_one_batch([adding(run_for=60), asking("k", run_for=60)])
        ledger.pass_time(60)
        ledger.sweep()
        ledger.do(releasing("k", termination=Termination.TIMEOUT))
        ledger.sweep()
        assert phases(ledger.told())[-2:] == ["Failing", "Failed"]

    def test_it_counts_for_one_that_ran_before_its_queue_had_room(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch(
            [adding("first", queue="root.one"), adding("second", queue="root.one", run_for=100)]
        )
        ledger.do(booking("k", "n1", "second"))
        ledger.do(removing("first"))
        ledger.pass_time(100)
        ledger.sweep()
        assert phases(ledger.told(), "second")[-1] == "Failing"

    def test_it_completes_before_its_time_is_over(self, ledger: ClientLedger) -> None:
        self.start(ledger)
        ledger.do(releasing())
        ledger.pass_time(30)
        ledger.sweep()
        ledger.pass_time(1_000)
        ledger.sweep()
        assert phases(ledger.told())[-2:] == ["Completing", "Completed"]


def test_the_ledgers_other_doors_end_it_whole(ledger: ClientLedger) -> None:
    ledger.in_one_batch([adding(), asking("k"), asking("w", memory=50)])
    told = ledger.told_by(op.Release(ledger.parent().id))
    assert kinds(told) == ["released", "released_ask"]
    assert ledger.holding() == []
