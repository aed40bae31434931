"""Asks: granted as used, waiting untold, asked again; their client is told everything once."""

from collections.abc import Iterator

import pytest

from rm_service.domain import operations as op
from rm_service.domain.amounts import INT64_MAX
from rm_service.domain.application import State
from rm_service.domain.outcomes import Code, Done
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
)
from tests.domain.client_ledger import ClientLedger, check_balances, check_members
from tests.domain.pure_ledger import refusal

HERE = {"partition": partition_of(RM)}


@pytest.fixture
def ledger() -> Iterator[ClientLedger]:
    """With one node of 10 and one application; at the end everything must add up."""
    ledger = ClientLedger({f"partition={partition_of(RM)},queue=root.tiny": {"memory": 2, "apps": 1}})
    ledger.in_one_batch([creating_node(), adding()])
    yield ledger
    check_members(ledger)
    check_balances(ledger)


def left(ledger: ClientLedger, node: str = "n1") -> int:
    return ledger.account(**HERE, node=node).left()["memory"]


class TestAsks:
    def test_an_ask_with_room_is_in_use_at_once_and_the_client_is_told_everything(
        self, ledger: ClientLedger
    ) -> None:
        ask = asking("k", memory=3, priority=7, request={"tags": {"a": "b"}, "originator": True})
        (new,) = of_kind(ledger.told_by(ask), "new")
        granted = ledger.application(ask.ids[0])
        assert (granted.state, granted.used, granted.deadline) == (State.USED, {"memory": 3}, None)
        assert new == {
            "kind": "new",
            "partition": partition_of(RM),
            "app": "app-1",
            "key": "k",
            "id": granted.id,
            "node": "n1",
            "resource": {"memory": 3},
            "tags": {"a": "b"},
            "priority": 7,
            "task_group": "",
            "placeholder": False,
            "originator": True,
            "preemption": None,
            "queue": "root.a",
        }
        assert ledger.account(user="alice").balance.used == {"apps": 1, "memory": 3}
        assert ledger.account(**HERE, queue="root").balance.used == {"apps": 1, "memory": 3}

    def test_an_ask_without_room_waits_untold_until_there_is_some(self, ledger: ClientLedger) -> None:
        ledger.do(asking("big", memory=8))
        assert of_kind(ledger.told_by(asking("next", memory=8)), "new") == []
        assert ledger.states("next") == [State.WAITING]
        (new,) = of_kind(ledger.told_by(releasing("big")), "new")
        assert new["key"] == "next"

    def test_an_ask_for_several_is_several_allocations_of_one_key(self, ledger: ClientLedger) -> None:
        told = ledger.told_by(asking("k", memory=4, count=3))
        news = of_kind(told, "new")
        assert [new["key"] for new in news] == ["k", "k"]
        assert len({new["id"] for new in news}) == 2
        assert ledger.states("k") == [State.USED, State.USED, State.WAITING]
        assert len(of_kind(ledger.told_by(releasing(id=str(news[0]["id"]))), "new")) == 1

    def test_an_ask_of_an_unknown_application_is_rejected(self, ledger: ClientLedger) -> None:
        refused = refusal(ledger.do(asking("k", "nobody")))
        assert refused.code is Code.UNKNOWN_APPLICATION
        assert ledger.told()[-1] == {
            "kind": "rejected_ask",
            "app": "nobody",
            "key": "k",
            "reason": "failed to find application nobody",
        }

    def test_an_ask_comes_after_its_application_in_one_batch(self, ledger: ClientLedger) -> None:
        told = ledger.told_by(adding("app-2"), asking("k", "app-2"), releasing("k", "app-2"))
        assert kinds(told) == [
            "accepted_application",
            "new",
            "updated_application",
            "updated_application",
            "released",
            "updated_application",
        ]
        assert phases(told, "app-2") == ["Accepted", "Running", "Completing"]

    def test_without_an_application_an_ask_stands_for_itself(self, ledger: ClientLedger) -> None:
        (new,) = ledger.told_by(asking("k", None, memory=2))
        assert (new["kind"], new["app"]) == ("new", "")
        ledger.do(releasing())
        assert left(ledger) == 8, "what is released as all of an application is never an independent one"
        (released,) = ledger.told_by(releasing("k", None))
        assert released["termination"] == "STOPPED_BY_RM"

    def test_members_have_the_tags_of_their_application_whatever_they_say(self, ledger: ClientLedger) -> None:
        ask = asking("k", memory=2, queue="root.other")
        ledger.do(ask)
        assert ledger.application(ask.ids[0]).tags["queue"] == "root.a"

    def test_a_required_node_is_the_only_one(self, ledger: ClientLedger) -> None:
        ledger.do(creating_node("n2", 100))
        ledger.do(asking("big", memory=10, node="n1"))
        assert ledger.of(asking("k", memory=1, node="n1")).state is State.WAITING
        assert ledger.of(asking("other", memory=1)).tags["node"] == "n2"
        refusal(ledger.do(asking("nowhere", memory=1, node="n9")))
        assert ledger.told()[-1]["kind"] == "rejected_ask"

    def test_a_negative_room_never_grants(self, ledger: ClientLedger) -> None:
        ledger.do(booking("huge", "n1", memory=50))
        assert ledger.of(asking("k", memory=1)).state is State.WAITING


def test_nobody_else_changes_the_amount_of_an_allocation(ledger: ClientLedger) -> None:
    allocated = ledger.of(asking("k", memory=2))
    refused = refusal(ledger.do(op.Use(allocated.id, {"memory": 1})))
    assert (refused.code, refused.state) == (Code.NO_LOCK, State.USED)
    assert ledger.of(asking("k", memory=2)).resource == {"memory": 2}


class TestAskingAgain:
    def test_the_same_ask_keeps_its_place(self, ledger: ClientLedger) -> None:
        ledger.do(asking("big", memory=10))
        first, second = ledger.of(asking("a", memory=10)), ledger.of(asking("b", memory=10))
        seq = ledger.view.seq
        again = ledger.do(asking("a", memory=10))
        assert isinstance(again, Done)
        assert again.repeated
        assert ledger.view.seq == seq, "nothing happened"
        ledger.do(releasing("big"))
        assert ledger.application(first.id).state is State.USED
        assert ledger.application(second.id).state is State.WAITING

    def test_another_ask_of_the_key_replaces_the_one_that_waits_untold(self, ledger: ClientLedger) -> None:
        ledger.do(asking("big", memory=10))
        old = ledger.of(asking("a", memory=10, count=2))
        told = ledger.told_by(asking("a", memory=4, priority=3))
        assert told == [], "the client has said so itself; the application stays in its phase"
        assert ledger.application(old.id).state is State.RELEASED
        assert ledger.states("a") == [State.WAITING]
        (new,) = of_kind(ledger.told_by(releasing("big")), "new")
        assert (new["resource"], new["priority"]) == ({"memory": 4}, 3)

    def test_an_ask_that_is_allocated_in_part_is_not_allocated_anew(self, ledger: ClientLedger) -> None:
        """maxAllocations is the most that there are of a key, not how many more."""
        ledger.do(asking("k", memory=4, count=3))
        assert ledger.states("k") == [State.USED, State.USED, State.WAITING]
        place = ledger.view.named(f"{partition_of(RM)}/app-1/k")[2].wait_seq
        ledger.do(asking("k", memory=4, count=3))
        assert ledger.states("k") == [State.USED, State.USED, State.WAITING]
        assert ledger.view.named(f"{partition_of(RM)}/app-1/k")[2].wait_seq == place
        ledger.do(asking("k", memory=4, count=2))
        assert ledger.states("k") == [State.USED, State.USED]
        ledger.do(asking("k", memory=4, count=4))
        assert ledger.states("k") == [State.USED, State.USED, State.WAITING, State.WAITING]

    def test_once_allocated_another_amount_is_a_resize_even_beyond_the_room(
        self, ledger: ClientLedger
    ) -> None:
        ask = asking("k", memory=4)
        ledger.do(ask)
        assert ledger.told_by(asking("k", memory=12)) == []
        resized = ledger.application(ask.ids[0])
        assert (resized.used, resized.over_limit, left(ledger)) == ({"memory": 12}, True, -2)
        ledger.do(asking("k", memory=2))
        assert (ledger.application(ask.ids[0]).over_limit, left(ledger)) == (False, 8)

    def test_a_smaller_allocation_lets_others_in(self, ledger: ClientLedger) -> None:
        ledger.do(asking("k", memory=10))
        ledger.do(asking("next", memory=6))
        (new,) = of_kind(ledger.told_by(asking("k", memory=4)), "new")
        assert new["key"] == "next"

    def test_a_replacement_that_is_refused_leaves_the_old_ask_where_it_was(
        self, ledger: ClientLedger
    ) -> None:
        ledger.do(asking("big", memory=10))
        old = ledger.of(asking("k", memory=5))
        refusal(ledger.do(asking("k", memory=5, node="unknown")))
        assert ledger.application(old.id).state is State.WAITING
        ledger.do(releasing("big"))
        assert ledger.application(old.id).state is State.USED

    def test_what_does_not_fit_64_bits_is_rejected_whole(self, ledger: ClientLedger) -> None:
        for name in ("huge-1", "huge-2", "huge-3"):
            ledger.do(creating_node(name, INT64_MAX))
        before = left(ledger)
        half = INT64_MAX // 2 + 1
        refused = refusal(ledger.do(asking("k", count=3, memory=half)))
        assert refused.code is Code.OVERFLOW
        assert ledger.states("k") == [], "the first would fit, but a refused ask changes nothing"
        assert kinds(ledger.told())[-1] == "rejected_ask"
        assert of_kind(ledger.told(), "new") == []
        assert left(ledger) == before

    def test_a_waiter_that_would_overflow_stays_and_those_behind_it_go_on(self, ledger: ClientLedger) -> None:
        ledger.do(asking("gate", memory=10))
        huge = ledger.of(asking("huge", memory=INT64_MAX))
        small = ledger.of(asking("small", memory=1, node="n1"))
        ledger.in_one_batch([asking("used", memory=1, node="n1"), creating_node("n2", INT64_MAX)])
        assert ledger.application(huge.id).state is State.WAITING
        ledger.do(releasing("gate"))
        assert ledger.application(small.id).state is State.USED
