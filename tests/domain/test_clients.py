"""Clients: their registrations, and what they have apart from each other."""

from collections.abc import Iterator

import pytest

from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.outcomes import Code, Done
from tests.client_words import (
    AGAIN,
    OTHER,
    RM,
    adding,
    asking,
    booking,
    creating_node,
    decommissioning,
    kinds,
    of_kind,
    partition_of,
    phases,
    releasing,
    removing,
    running,
)
from tests.domain.client_ledger import ClientLedger
from tests.domain.node_of_ten import left, node_of_ten
from tests.domain.pure_ledger import application_of, refusal


@pytest.fixture
def ledger() -> Iterator[ClientLedger]:
    with node_of_ten() as ledger:
        yield ledger


class TestRegisteringAgain:
    def test_what_is_reported_again_is_told_again_once(self, ledger: ClientLedger) -> None:
        ask = asking("k", memory=3)
        ledger.do(ask)
        told = ledger.told_by(adding(client=AGAIN))
        assert kinds(told) == ["accepted_application"]
        reports = [booking("k", "n1", memory=3, id=ask.ids[0], client=AGAIN)] * 2
        (new,) = ledger.told_by(*reports)
        assert (new["kind"], new["id"], new["resource"]) == ("new", ask.ids[0], {"memory": 3})
        assert left(ledger) == 7

    def test_the_same_application_twice_under_one_registration_is_rejected(
        self, ledger: ClientLedger
    ) -> None:
        refused = refusal(ledger.do(adding()))
        assert refused.detail == (
            f"adding application app-1 to partition {partition_of(RM)}, but application already existed"
        )
        assert ledger.told()[-1]["kind"] == "rejected_application"
        ledger.do(adding(client=AGAIN))
        assert refusal(ledger.do(adding(client=AGAIN))).code is Code.ID_REUSED

    @pytest.mark.parametrize("waits", [True, False])
    def test_an_application_that_is_told_after_its_members_is_accepted_once(
        self, ledger: ClientLedger, *, waits: bool
    ) -> None:
        """Between streams there is no order."""
        ask = asking("k", memory=50 if waits else 3)
        ledger.do(ask)
        member = (
            asking("k", memory=50, client=AGAIN) if waits else booking("k", "n1", id=ask.ids[0], client=AGAIN)
        )
        told = ledger.told_by(member, adding(client=AGAIN))
        assert kinds(told)[-1] == "accepted_application"
        assert ledger.told_by(op.ForgetApplication(client=AGAIN, id=ledger.parent().id)) == []
        assert refusal(ledger.do(adding(client=AGAIN))).code is Code.ID_REUSED

    def test_what_is_not_reported_again_is_given_up_and_told(self, ledger: ClientLedger) -> None:
        kept, gone, waits = asking("kept"), asking("gone"), asking("waits", memory=50)
        ledger.in_one_batch([kept, gone, waits])
        parent = ledger.parent().id
        ledger.do(booking("kept", "n1", id=kept.ids[0], client=AGAIN))
        forgotten = [*kept.ids, *gone.ids, *waits.ids, parent]
        told = ledger.told_by(*[op.ForgetApplication(client=AGAIN, id=each) for each in forgotten])
        assert [(answer["kind"], answer["key"]) for answer in told] == [
            ("released", "gone"),
            ("released_ask", "waits"),
        ]
        assert list(running(ledger.told())) == list(kept.ids)
        assert ledger.parent().state is State.USED, "who reports a member reports its application"

    def test_an_application_that_is_not_reported_goes_with_its_members(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([asking("k"), asking("w", memory=50)])
        told = ledger.told_by(op.ForgetApplication(client=AGAIN, id=ledger.parent().id))
        assert kinds(told) == ["released", "released_ask"]
        assert ledger.holding() == []

    def test_the_same_ask_again_keeps_its_place_and_counts_as_reported(self, ledger: ClientLedger) -> None:
        waiting = ledger.of(asking("w", memory=50))
        again = ledger.of(asking("w", memory=50, client=AGAIN))
        assert again.id == waiting.id
        assert ledger.told_by(op.ForgetApplication(client=AGAIN, id=waiting.id)) == []

    def test_a_message_of_the_old_registration_comes_too_late_to_undo_the_new(
        self, ledger: ClientLedger
    ) -> None:
        ask = asking("k")
        ledger.do(ask)
        ledger.do(booking("k", "n1", id=ask.ids[0], client=AGAIN))
        ledger.do(booking("k", "n1", id=ask.ids[0]))
        assert ledger.told_by(op.ForgetApplication(client=AGAIN, id=ask.ids[0])) == []

    def test_an_ask_that_is_reported_as_running_counts_as_reported(self, ledger: ClientLedger) -> None:
        waiting = ledger.of(asking("w", memory=50))
        ledger.do(booking("w", "n1", anonymous=True, client=AGAIN))
        assert ledger.told_by(op.ForgetApplication(client=AGAIN, id=waiting.id)) == []

    def test_what_is_to_end_is_told_again_when_it_is_reported_again(self, ledger: ClientLedger) -> None:
        ask = asking("k", run_for=60)
        ledger.do(ask)
        ledger.pass_time(60)
        ledger.sweep()
        told = ledger.told_by(booking("k", "n1", id=ask.ids[0], client=AGAIN))
        assert [(answer["kind"], answer.get("termination")) for answer in told] == [
            ("new", None),
            ("released", "TIMEOUT"),
        ]


def test_two_clients_have_nothing_of_each_other(ledger: ClientLedger) -> None:
    ledger.in_one_batch([creating_node(client=OTHER), adding(client=OTHER), asking("k", client=OTHER)])
    assert kinds(ledger.told(OTHER)) == [
        "accepted_node",
        "accepted_application",
        "new",
        "updated_application",
        "updated_application",
    ]
    assert left(ledger) == 10
    assert ledger.account(user="alice").balance.used == {"apps": 2, "memory": 1}, "but a user is one person"


def test_a_group_that_fails_is_one_rejection_of_its_node(ledger: ClientLedger) -> None:
    before = ledger.view.seq
    outcomes = ledger.together(
        [creating_node("n2"), booking("a", "n2"), booking("b", "n2", "nobody"), booking("c", "n2")]
    )
    assert [refusal(outcome).code for outcome in outcomes] == [
        Code.NOT_DONE,
        Code.NOT_DONE,
        Code.UNKNOWN_APPLICATION,
        Code.NOT_DONE,
    ]
    assert ledger.view.seq == before + 1
    assert ledger.told()[-1] == {
        "kind": "rejected_node",
        "node": "n2",
        "reason": "failed to find application nobody",
    }
    assert phases(ledger.told()) == [], "the application never had a member"
    assert isinstance(ledger.do(creating_node("n2")), Done), "the node is not known"


def test_a_group_that_fails_lets_those_who_waited_wait_on(ledger: ClientLedger) -> None:
    ledger.in_one_batch([asking("big", memory=10), asking("w", memory=4)])
    ledger.together(
        [creating_node("n2"), booking("w", "n2", memory=4, anonymous=True), booking("x", "nowhere")]
    )
    assert ledger.states("w") == [State.WAITING]
    ledger.do(releasing("big"))
    assert ledger.states("w") == [State.USED]


def test_a_decommissioned_nodes_allocation_is_released_once(ledger: ClientLedger) -> None:
    ask = asking("k")
    ledger.do(ask)
    told = ledger.told_by(decommissioning(), releasing("k"), removing())
    assert [answer["message"] for answer in of_kind(told, "released")] == ["Node n1 Removed"]
    assert application_of(ledger.do(op.Release(ask.ids[0]))).state is State.LOST
