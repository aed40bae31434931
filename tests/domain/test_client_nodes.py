"""The nodes of a client: created, changed, drained, made ready, taken away."""

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
    running,
    updating_node,
)
from tests.domain.client_ledger import ClientLedger, check_balances, check_members
from tests.domain.pure_ledger import refusal

HERE = {"partition": partition_of(RM)}


@pytest.fixture
def ledger() -> Iterator[ClientLedger]:
    """One application in root.a, and root.b with a limit; no node."""
    ledger = ClientLedger({f"partition={partition_of(RM)},queue=root.b": {"memory": 10}})
    ledger.in_one_batch([adding(), adding("app-b", queue="root.b")])
    yield ledger
    check_members(ledger)
    check_balances(ledger)


def draining(instance: str = "n1") -> op.DrainNode:
    return op.DrainNode(instance, "drained", partition_of(RM), RM)


def undraining(instance: str = "n1") -> op.UndrainNode:
    return op.UndrainNode(instance, partition_of(RM), RM)


def takes_new(ledger: ClientLedger, node: str = "n1") -> bool:
    """Whether an ask for this node is granted at once."""
    probe = asking("probe", memory=1, node=node)
    granted = ledger.of(probe).state is State.USED
    ledger.do(releasing("probe"))
    return granted


class TestCreate:
    def test_it_is_accepted_and_takes_asks(self, ledger: ClientLedger) -> None:
        ledger.do(asking("k", memory=4))
        told = ledger.told_by(creating_node(memory=10, occupied=3))
        assert told[0] == {"kind": "accepted_node", "node": "n1"}
        assert of_kind(told, "new")[0]["node"] == "n1"
        assert ledger.account(**HERE, node="n1").left() == {"memory": 3}

    def test_a_known_one_is_rejected_and_untouched(self, ledger: ClientLedger) -> None:
        told = ledger.told_by(creating_node(memory=10), creating_node(memory=99))
        assert told[1]["kind"] == "rejected_node"
        assert "node name must be unique" in told[1]["reason"]
        assert ledger.account(**HERE, node="n1").total == {"memory": 10}

    def test_a_draining_one_takes_nothing_until_it_is_undrained(self, ledger: ClientLedger) -> None:
        ledger.do(creating_node(closed="draining"))
        assert not takes_new(ledger)
        ledger.do(undraining())
        assert takes_new(ledger)

    def test_two_clients_may_have_nodes_of_one_name(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([creating_node(), creating_node(client=OTHER, memory=5)])
        assert kinds(ledger.told(OTHER)) == ["accepted_node"]
        ledger.node("n1", {"memory": 3})
        targets = [node.target for node in ledger.view.nodes.values()]
        assert sorted(targets) == [1, 2, 3]

    def test_one_reported_again_after_a_registration_keeps_what_runs(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([creating_node(), asking("k", memory=4)])
        assert kinds(ledger.told_by(creating_node(memory=12, client=AGAIN))) == ["accepted_node"]
        assert ledger.account(**HERE, node="n1").left() == {"memory": 8}
        assert refusal(ledger.do(creating_node(client=AGAIN))).code is Code.ID_REUSED
        assert isinstance(ledger.do(decommissioning(client=AGAIN, only_unreported=True)), Done)
        assert ledger.states("k") == [State.USED]


class TestUpdate:
    def test_more_room_lets_in_who_waits_and_less_is_allowed(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([creating_node(memory=10), asking("k", memory=8), asking("w", memory=8)])
        told = ledger.told_by(updating_node(total={"memory": 16}))
        assert kinds(of_kind(told, "new")) == ["new"]
        assert [answer for answer in told if answer["kind"] == "accepted_node"] == []
        ledger.do(updating_node(total={"memory": 5}))
        assert ledger.account(**HERE, node="n1").over_limit()

    def test_what_others_occupy_is_not_given_out(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([creating_node(memory=10), updating_node(occupied={"memory": 8})])
        waiting = ledger.of(asking("k", memory=4))
        assert waiting.state is State.WAITING
        ledger.do(updating_node(occupied={}))
        assert ledger.application(waiting.id).state is State.USED

    def test_attributes_are_replaced_whole_and_change_which_asks_match(self, ledger: ClientLedger) -> None:
        ledger.do(creating_node(zone="a", arch="arm"))
        ask = asking("k")
        waiting = ledger.of(
            op.Ask(
                client=RM,
                ids=ask.ids,
                name=ask.name,
                parent=ask.parent,
                tags=ask.tags,
                resource=ask.resource,
                placement=op.Placement("zone=b", "fair", partition_of(RM)),
                request=ask.request,
            )
        )
        assert waiting.state is State.WAITING
        ledger.do(updating_node(attributes={"zone": "b"}))
        assert ledger.application(waiting.id).state is State.USED
        (node,) = ledger.view.nodes.values()
        assert node.attributes == {"zone": "b"}

    def test_the_same_again_is_no_event(self, ledger: ClientLedger) -> None:
        ledger.do(creating_node(memory=10))
        seq = ledger.view.seq
        ledger.do(updating_node(total={"memory": 10}, ready=True))
        assert ledger.view.seq == seq

    def test_one_that_is_not_ready_takes_nothing_new_and_keeps_what_runs(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([creating_node(), asking("k"), updating_node(ready=False)])
        waiting = ledger.of(asking("w"))
        assert waiting.state is State.WAITING
        assert ledger.states("k") == [State.USED]
        ledger.do(updating_node(ready=True))
        assert ledger.application(waiting.id).state is State.USED


class TestDrain:
    def test_draining_and_readiness_are_two_things(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch(
            [creating_node(), draining(), updating_node(ready=False), updating_node(ready=True)]
        )
        assert not takes_new(ledger), "ready, but drained"
        ledger.do(undraining())
        assert takes_new(ledger)

    def test_undrained_but_not_ready_it_takes_nothing(self, ledger: ClientLedger) -> None:
        not_ready = updating_node(ready=False, attributes={"ready": "false"})
        ledger.in_one_batch([creating_node(), not_ready, draining(), undraining()])
        assert not takes_new(ledger)
        ledger.do(updating_node(ready=True, attributes={"ready": "true"}))
        assert takes_new(ledger)

    def test_nor_does_it_when_an_operator_undrains_it(self, ledger: ClientLedger) -> None:
        not_ready = updating_node(ready=False, attributes={"ready": "false"})
        ledger.in_one_batch([creating_node(), not_ready, draining()])
        ledger.do(op.UndrainNode("n1", partition_of(RM)))
        assert not takes_new(ledger)

    def test_drained_while_it_was_not_ready_it_stays_so(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([creating_node(), draining()])
        ledger.do(updating_node(ready=False, attributes={"ready": "false"}))
        ledger.do(undraining())
        assert not takes_new(ledger)

    @pytest.mark.parametrize(
        "operation", [draining("n9"), undraining("n9"), updating_node("n9"), decommissioning("n9")]
    )
    def test_an_unknown_node_is_rejected_with_a_reason(
        self, ledger: ClientLedger, operation: op.DecidedOperation
    ) -> None:
        assert refusal(ledger.do(operation)).code is Code.UNKNOWN_NODE
        (told,) = ledger.told()[-1:]
        assert (told["kind"], told["node"], "n9" in told["reason"]) == ("rejected_node", "n9", True)

    def test_undraining_one_that_does_not_drain_is_rejected(self, ledger: ClientLedger) -> None:
        ledger.do(creating_node())
        refusal(ledger.do(undraining()))
        assert ledger.told()[-1]["kind"] == "rejected_node"

    def test_draining_twice_is_done_once(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([creating_node(), draining()])
        assert ledger.told_by(draining()) == []


class TestDecommission:
    def test_what_runs_there_is_released_and_told_and_asks_stay(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([creating_node(), asking("k", memory=6), asking("w", memory=6)])
        told = ledger.told_by(decommissioning())
        (released,) = of_kind(told, "released")
        assert (released["key"], released["termination"], released["message"]) == (
            "k",
            "STOPPED_BY_RM",
            "Node n1 Removed",
        )
        assert of_kind(told, "new") == [], "its room does not go to those who wait for it"
        assert running(ledger.told()) == {}
        assert ledger.states("w") == [State.WAITING]
        assert kinds(of_kind(ledger.told_by(creating_node()), "new")) == ["new"]

    def test_the_other_limits_of_what_ran_there_are_free_again(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([creating_node(), creating_node("n2", 20)])
        ledger.in_one_batch([asking("k", "app-b", memory=10, node="n1"), asking("w", "app-b", memory=10)])
        told = ledger.told_by(decommissioning())
        assert [answer["node"] for answer in of_kind(told, "new")] == ["n2"]
        assert phases(told, "app-b") == ["Completing", "Running"] or phases(told, "app-b") == []

    def test_a_name_elsewhere_is_another_node(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([creating_node(), asking("k"), creating_node(client=OTHER)])
        ledger.do(decommissioning(client=OTHER))
        assert ledger.states("k") == [State.USED]

    def test_it_comes_back_in_the_same_batch_with_nothing_on_it(self, ledger: ClientLedger) -> None:
        ledger.in_one_batch([creating_node(), asking("k", memory=4)])
        told = ledger.told_by(decommissioning(), creating_node(memory=7), booking("l", "n1", memory=2))
        assert len(of_kind(told, "accepted_node")) == 1
        assert ledger.account(**HERE, node="n1").left() == {"memory": 5}
        assert len(ledger.view.nodes) == 1

    def test_who_requires_a_node_that_is_gone_waits_for_it_whatever_held_him_up(
        self, ledger: ClientLedger
    ) -> None:
        """He waits in root.b; when room comes there his node is gone; when that comes back he goes."""
        ledger.in_one_batch([creating_node(), creating_node("n2", 20)])
        ledger.do(asking("full", "app-b", memory=10, node="n2"))
        waiting = ledger.of(asking("w", "app-b", memory=5, node="n1"))
        ledger.do(decommissioning("n1"))
        ledger.do(releasing("full", "app-b"))
        assert ledger.application(waiting.id).state is State.WAITING
        ledger.do(creating_node("n1"))
        assert ledger.application(waiting.id).state is State.USED
