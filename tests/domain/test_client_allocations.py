"""Allocations of clients: reported, released, ended by themselves, and told of, once."""

from collections.abc import Iterator

import pytest

from rm_service.domain import operations as op
from rm_service.domain.amounts import INT64_MAX
from rm_service.domain.application import State
from rm_service.domain.clients import Termination
from tests.client_words import (
    OTHER,
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
from tests.domain.client_ledger import ClientLedger
from tests.domain.node_of_ten import HERE, left, node_of_ten


@pytest.fixture
def ledger() -> Iterator[ClientLedger]:
    with node_of_ten() as ledger:
        yield ledger


class TestBooking:
    def test_what_runs_is_booked_beyond_every_limit_flagged_and_echoed(self, ledger: ClientLedger) -> None:
        ledger.do(adding("tiny", queue="root.tiny"))
        booked = ledger.of(booking("k", "n1", "tiny", memory=12))
        assert (booked.state, booked.over_limit, left(ledger)) == (State.USED, True, -2)
        new = of_kind(ledger.told(), "new")[-1]
        assert (new["id"], new["node"], new["resource"]) == (booked.id, "n1", {"memory": 12})

    def test_a_report_of_the_same_changes_nothing_and_another_amount_is_a_resize(
        self, ledger: ClientLedger
    ) -> None:
        report = booking("k", "n1", memory=3)
        ledger.do(report)
        seq = ledger.view.seq
        ledger.do(report)
        assert ledger.view.seq == seq
        assert ledger.told_by(booking("k", "n1", memory=5, id=report.id)) == []
        assert left(ledger) == 5

    def test_the_reported_node_and_application_must_be_known(self, ledger: ClientLedger) -> None:
        ledger.do(booking("k", "n9"))
        ledger.do(booking("l", "n1", "nobody"))
        assert [answer["reason"] for answer in of_kind(ledger.told(), "rejected_allocation")] == [
            "failed to find node n9",
            "failed to find application nobody",
        ]

    def test_a_report_answers_the_ask_of_its_key_with_the_amount_that_runs(
        self, ledger: ClientLedger
    ) -> None:
        ledger.do(asking("big", memory=10))
        ask = asking("k", memory=5)
        ledger.do(ask)
        (new,) = of_kind(ledger.told_by(booking("k", "n1", memory=2, anonymous=True)), "new")
        assert (new["id"], new["resource"]) == (ask.ids[0], {"memory": 2})
        assert ledger.states("k") == [State.USED]
        assert ledger.account(user="alice").balance.used["memory"] == 12

    def test_an_id_of_the_clients_own_is_kept_when_it_answers_an_ask(self, ledger: ClientLedger) -> None:
        ledger.do(asking("big", memory=10))
        ledger.do(asking("k", memory=5, count=2))
        ledger.do(booking("k", "n1", memory=5, uuid="pod-17"))
        assert sorted(ledger.states("k")) == [State.USED, State.WAITING], "one of the two asked for"
        assert of_kind(ledger.told(), "new")[-1]["id"] == "pod-17"
        ledger.do(booking("k", "n1", memory=5, uuid="pod-17"))
        assert sorted(ledger.states("k")) == [State.USED, State.WAITING], "the same report again"
        (released,) = of_kind(ledger.told_by(releasing(id="pod-17")), "released")
        assert released["id"] == "pod-17"

    def test_one_uuid_of_the_clients_own_is_one_allocation(self, ledger: ClientLedger) -> None:
        first = ledger.of(booking("k", "n1", uuid="pod-17", memory=2))
        again = ledger.of(booking("k", "n1", uuid="pod-17", memory=2))
        assert first.id == again.id
        ledger.of(booking("k", "n1", uuid="pod-18", memory=2))
        assert left(ledger) == 6
        ledger.do(releasing("k", id="pod-17"))
        assert left(ledger) == 8

    def test_an_id_that_has_ended_here_runs_on_once(self, ledger: ClientLedger) -> None:
        report = booking("k", "n1", memory=3)
        ledger.do(report)
        ledger.do(releasing(id=report.id))
        for _ in range(3):
            ledger.do(booking("k", "n1", memory=3, id=report.id))
        assert ledger.states("k") == [State.USED]
        assert of_kind(ledger.told(), "new")[-1]["id"] == report.id
        ledger.do(releasing(id=report.id))
        assert ledger.states("k") == []
        assert running(ledger.told()) == {}

    def test_an_id_that_somebody_else_has_is_left_to_them(self, ledger: ClientLedger) -> None:
        mine = ledger.of(booking("k", "n1", memory=3))
        ledger.do(creating_node(client=OTHER))
        ledger.do(adding(client=OTHER))
        ledger.do(booking("k", "n1", memory=4, id=mine.id, client=OTHER))
        assert ledger.application(mine.id).client == RM.id
        assert of_kind(ledger.told(OTHER), "new")[0]["id"] == mine.id
        assert left(ledger) == 7
        ledger.do(releasing(id=mine.id, client=OTHER))
        assert list(running(ledger.told(OTHER))) == []
        assert ledger.application(mine.id).state is State.USED

    def test_a_report_that_does_not_fit_64_bits_changes_nothing(self, ledger: ClientLedger) -> None:
        ledger.do(asking("big", memory=10))
        waiting = ledger.of(asking("k", memory=5))
        told = ledger.told_by(booking("k", "n1", memory=INT64_MAX, anonymous=True))
        assert kinds(told) == ["rejected_allocation"]
        assert ledger.application(waiting.id).state is State.WAITING

    def test_a_foreign_one_counts_on_its_node_alone(self, ledger: ClientLedger) -> None:
        ledger.do(booking("static-pod", "n1", None, memory=4, anonymous=True))
        ledger.do(booking("static-pod", "n1", None, memory=5, anonymous=True))
        assert left(ledger) == 5
        assert "memory" not in ledger.account(user="alice").balance.used
        ledger.do(releasing("static-pod", None))
        assert left(ledger) == 10


class TestReleases:
    def test_a_release_by_id_by_key_and_of_all(self, ledger: ClientLedger) -> None:
        one, two = asking("k", memory=1, count=3), asking("l", memory=1)
        ledger.in_one_batch([one, two, asking("w", memory=50)])
        assert kinds(ledger.told_by(releasing(id=one.ids[1]))) == ["released"]
        assert [answer["id"] for answer in ledger.told_by(releasing("k"))] == [one.ids[0], one.ids[2]]
        told = ledger.told_by(releasing())
        assert [answer["id"] for answer in of_kind(told, "released")] == [two.ids[0]]
        assert (ledger.states("w"), phases(told), left(ledger)) == ([], ["Completing"], 10)
        (released, *_) = of_kind(told, "released")
        assert (released["termination"], released["message"]) == (
            "STOPPED_BY_RM",
            "allocation remove as per RM request",
        )

    def test_a_release_in_the_batch_of_its_ask(self, ledger: ClientLedger) -> None:
        told = ledger.told_by(asking("k"), releasing("k"), asking("w", memory=50), releasing("w"))
        assert kinds(of_kind(told, "new") + of_kind(told, "released")) == ["new", "released"]
        assert ledger.parent().standing is not None
        assert ledger.holding() == [ledger.parent()]

    def test_releasing_an_ask_leaves_what_is_allocated(self, ledger: ClientLedger) -> None:
        ledger.do(asking("k", memory=6, count=2))
        assert ledger.states("k") == [State.USED, State.WAITING]
        assert ledger.told_by(releasing("k", only_ask=True)) == [], "a released ask is not told"
        assert ledger.states("k") == [State.USED]
        ledger.do(asking("l", memory=6))
        ledger.do(releasing(only_ask=True))
        assert (ledger.states("k"), ledger.states("l")) == ([State.USED], [])

    def test_timeout_does_not_release_an_ask(self, ledger: ClientLedger) -> None:
        ledger.do(asking("w", memory=50))
        ledger.do(releasing("w", termination=Termination.TIMEOUT))
        assert ledger.states("w") == [State.WAITING]

    @pytest.mark.parametrize(
        ("termination", "state"),
        [
            (Termination.TIMEOUT, State.EXPIRED),
            (Termination.PREEMPTED_BY_SCHEDULER, State.PREEMPTED),
            (Termination.PLACEHOLDER_REPLACED, State.RELEASED),
        ],
    )
    def test_a_confirmation_is_not_answered(
        self, ledger: ClientLedger, termination: Termination, state: State
    ) -> None:
        ask = asking("k")
        ledger.do(ask)
        told = ledger.told_by(releasing("k", termination=termination))
        assert of_kind(told, "released") == []
        assert ledger.application(ask.ids[0]).state is state

    def test_what_is_unknown_is_ignored(self, ledger: ClientLedger) -> None:
        releases: list[op.DecidedOperation] = [
            releasing("k"),
            releasing("k", "nobody"),
            releasing(app="nobody"),
            releasing(id="no-uuid"),
            releasing(id="00000000-0000-7000-8000-ffffffffffff"),
            releasing(app=None),
            removing("nobody"),
        ]
        assert ledger.told_by(*releases) == []

    def test_nobody_releases_what_is_anothers(self, ledger: ClientLedger) -> None:
        ledger.do(asking("k"))
        mine = op.ReleaseAllocation(
            client=OTHER,
            partition=partition_of(RM),
            parent=f"{partition_of(RM)}/app-1",
            name=f"{partition_of(RM)}/app-1/k",
            id=None,
            termination=Termination.STOPPED_BY_RM,
        )
        all_of_it = op.ReleaseAllocation(
            client=OTHER,
            partition=partition_of(RM),
            parent=f"{partition_of(RM)}/app-1",
            name=None,
            id=None,
            termination=Termination.STOPPED_BY_RM,
        )
        removal = op.RemoveApplication(client=OTHER, name=f"{partition_of(RM)}/app-1", message="Removed")
        ledger.in_one_batch([mine, all_of_it, removal])
        assert ledger.states("k") == [State.USED]
        assert ledger.parent().state is State.USED

    def test_an_application_is_not_released_like_an_allocation(self, ledger: ClientLedger) -> None:
        ledger.do(asking("k"))
        ledger.do(releasing(id=ledger.parent().id))
        assert (ledger.parent().state, ledger.states("k")) == (State.USED, [State.USED])


class TestWhatCouldNotBeStarted:
    FAILED = Termination.SCHEDULING_FAILED_ON_RM

    def test_it_gives_its_room_back_and_is_asked_for_again(self, ledger: ClientLedger) -> None:
        ask = asking("k", memory=3, priority=2)
        ledger.do(ask)
        told = ledger.told_by(releasing("k", termination=self.FAILED))
        assert kinds(told) == ["new"], "the client knows that it is over; the phase stays"
        assert (told[0]["id"] != ask.ids[0], told[0]["priority"], left(ledger)) == (True, 2, 7)

    def test_each_of_several_is_asked_for_again(self, ledger: ClientLedger) -> None:
        ask = asking("k", memory=3, count=4)
        ledger.do(ask)
        assert sorted(ledger.states("k")) == [State.USED] * 3 + [State.WAITING]
        ledger.do(releasing(id=ask.ids[0], termination=self.FAILED))
        assert sorted(ledger.states("k")) == [State.USED] * 3 + [State.WAITING]
        ledger.do(releasing("k", termination=self.FAILED))
        assert sorted(ledger.states("k")) == [State.USED] * 3

    def test_a_key_of_which_others_run_is_asked_for_again(self, ledger: ClientLedger) -> None:
        ask = asking("k", memory=3, count=2)
        ledger.do(ask)
        ledger.do(releasing(app=None, id=ask.ids[0], termination=self.FAILED))
        assert ledger.states("k") == [State.USED, State.USED]
        assert ledger.view.named(f"{partition_of(RM)}/app-1/k")[1].parent == ledger.parent().id

    def test_all_of_an_application_are_asked_for_again(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([asking("k", memory=3, count=2), asking("l", memory=1)])
        ledger.do(releasing(termination=self.FAILED))
        assert ledger.states("k") == [State.USED, State.USED]
        assert ledger.states("l") == [State.USED]
        assert left(ledger) == 3

    def test_what_was_reported_is_asked_for_again_anywhere(self, ledger: ClientLedger) -> None:
        ledger.do(booking("k", "n1", memory=3))
        ledger.do(creating_node("n2"))
        ledger.do(asking("big", memory=10, node="n1"))
        (new, other) = of_kind(ledger.told_by(releasing("k", termination=self.FAILED)), "new")
        assert ((new["key"], new["node"]), (other["key"], other["node"])) == (("k", "n2"), ("big", "n1"))

    @pytest.mark.parametrize("asked_before", [True, False])
    def test_the_node_that_it_required_it_requires_again(
        self, ledger: ClientLedger, *, asked_before: bool
    ) -> None:
        """Even where it ran on another one."""
        ledger.do(creating_node("n2"))
        ledger.do(asking("big", memory=10, node="n1"))
        if asked_before:
            ledger.do(asking("k", memory=3, node="n1"))
        ledger.do(booking("k", "n2", memory=3, anonymous=True, required_node="n1"))
        ledger.do(releasing("k", termination=self.FAILED))
        assert ledger.states("k") == [State.WAITING]
        (new,) = of_kind(ledger.told_by(releasing("big")), "new")
        assert (new["key"], new["node"]) == ("k", "n1")

    def test_what_is_foreign_is_never_asked_for(self, ledger: ClientLedger) -> None:
        ledger.do(booking("static-pod", "n1", None, memory=4, foreign=True))
        assert ledger.told_by(releasing("static-pod", None, termination=self.FAILED)) == []
        assert left(ledger) == 10

    def test_when_its_node_is_gone_the_client_is_told_and_the_application_goes_on(
        self, ledger: ClientLedger
    ) -> None:
        ledger.do(creating_node("n2"))
        ledger.do(asking("k", node="n1"))
        ledger.view.set_room(ledger.account(**HERE, node="n1"), None, None, None)
        told = ledger.told_by(releasing("k", termination=self.FAILED))
        assert kinds(told) == ["rejected_ask", "updated_application"]
        assert phases(told) == ["Completing"]


class TestExecutionTime:
    def test_it_is_told_to_end_and_holds_its_room_until_that_is_confirmed(self, ledger: ClientLedger) -> None:
        ask = asking("k", memory=3, run_for=60)
        ledger.do(ask)
        ledger.pass_time(59)
        ledger.sweep()
        assert "released" not in kinds(ledger.told())
        ledger.pass_time(1)
        ledger.sweep()
        (told,) = of_kind(ledger.told(), "released")
        assert (told["termination"], told["message"], left(ledger)) == (
            "TIMEOUT",
            "the execution time is over",
            7,
        )
        told_after = ledger.told_by(releasing(id=ask.ids[0], termination=Termination.TIMEOUT))
        assert (of_kind(told_after, "released"), left(ledger)) == ([], 10)
        assert ledger.application(ask.ids[0]).state is State.EXPIRED

    def test_what_is_never_confirmed_ends_by_itself(self, ledger: ClientLedger) -> None:
        ask = asking("k", memory=3, run_for=60)
        ledger.do(ask)
        ledger.pass_time(60)
        ledger.sweep()
        ledger.pass_time(29)
        ledger.sweep()
        assert left(ledger) == 7
        ledger.pass_time(1)
        ledger.sweep()
        ended = ledger.application(ask.ids[0])
        assert (ended.state, ended.reason) == (
            State.EXPIRED,
            "the execution time is over; never confirmed",
        )
        assert len(of_kind(ledger.told(), "released")) == 1
        assert left(ledger) == 10

    def test_the_time_begins_when_it_is_granted(self, ledger: ClientLedger) -> None:
        ledger.do(asking("big", memory=10))
        waiting = ledger.of(asking("k", memory=3, run_for=60))
        ledger.pass_time(1_000)
        ledger.sweep()
        assert ledger.application(waiting.id).state is State.WAITING
        ledger.do(releasing("big"))
        ledger.pass_time(59)
        ledger.sweep()
        assert ledger.told()[-1]["kind"] == "new"
