"""Operations that meet in one batch: placed, parked, repeated, undone; each judged on what others left."""

from typing import Any

import pytest
from sqlalchemy import update

from rm_service.domain import operations as op
from rm_service.domain.application import SECOND, Application, State
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.ledger import tables
from rm_service.ledger.audit import audit
from rm_service.ledger.ids import new_id
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.recount import RulesDoNotFitError

ANYWHERE = op.Placement()
SOON = 10.0
"""Seconds within which the writer must have answered: it once went round for ever."""


def asking(memory: int, tags: dict[str, str] | None = None, **more: Any) -> op.Apply:
    tags = {"user": "alice"} if tags is None else tags
    request = {"resource": {"memory": memory}, "tags": tags}
    return op.Apply(
        **{"id": new_id(), "tags": tags, "resource": {"memory": memory}, "request": request} | more
    )


def node(instance: str, memory: int, **more: Any) -> op.RegisterNode:
    return op.RegisterNode(instance, "LoadInstance", {"memory": memory}, **more)


def submit(ledger: Ledger, *operations: op.DecidedOperation, atomic: bool = False) -> list[Outcome]:
    """The outcomes of a group, and of the wakes that it caused."""
    outcomes = ledger.enqueue(operations, atomic=atomic).result(SOON)
    ledger.enqueue([op.Renew(new_id())]).result(SOON)  # stands behind the wakes
    return outcomes


def applied(outcome: Outcome) -> Application:
    assert isinstance(outcome, Done), outcome
    assert outcome.application is not None
    return outcome.application


def state(ledger: Ledger, application_id: str) -> State:
    return applied(ledger.submit([op.Reclaim(application_id)])[0]).state


@pytest.fixture(autouse=True)
def _balanced(ledger: Ledger) -> Any:
    yield
    report = audit(ledger.readers)
    assert report.consistent, report.differences


def test_a_node_whose_queue_somebody_waits_in_is_passed_over(ledger: Ledger) -> None:
    submit(ledger, node("n1", 10), node("n2", 10))
    submit(ledger, asking(8, {"node": "n1"}), asking(5, {"node": "n1"}, wait_seconds=60))
    placed = applied(submit(ledger, asking(1, placement=ANYWHERE))[0])
    assert placed.tags["node"] == "n2"
    refused = submit(ledger, asking(1, placement=op.Placement("node=n1")))[0]
    assert isinstance(refused, Refused)
    assert [short.reason for short in refused.shortfalls] == ["waiters_ahead"]
    assert isinstance(ledger.explain(asking(1, placement=op.Placement("node=n1"))), Refused)


def test_a_node_where_a_limit_is_reached_is_passed_over(ledger: Ledger) -> None:
    submit(ledger, node("n1", 10), node("n2", 10))
    ledger.submit_whole(op.SetLimit({"user": "*", "node": "n1"}, {"memory": 0}))
    assert applied(submit(ledger, asking(1, placement=ANYWHERE))[0]).tags["node"] == "n2"


def test_a_group_may_release_and_place_again(ledger: Ledger) -> None:
    submit(ledger, node("n1", 10))
    first = applied(submit(ledger, asking(10, placement=ANYWHERE))[0])
    outcomes = submit(ledger, op.Release(first.id), asking(10, placement=ANYWHERE), atomic=True)
    assert [applied(outcome).state for outcome in outcomes] == [State.RELEASED, State.LOCKED]


def test_of_two_that_do_not_both_fit_on_a_node_a_group_places_none(ledger: Ledger) -> None:
    submit(ledger, node("n1", 10))
    outcomes = submit(ledger, asking(6, placement=ANYWHERE), asking(6, placement=ANYWHERE), atomic=True)
    codes = [outcome.code for outcome in outcomes if isinstance(outcome, Refused)]
    assert codes == [Code.NOT_DONE, Code.INSUFFICIENT_RESOURCES]
    singly = submit(ledger, asking(6, placement=ANYWHERE), asking(6, placement=ANYWHERE))
    assert [type(outcome) for outcome in singly] == [Done, Refused]


def test_a_partition_whose_node_is_not_registered_is_told_and_not_granted(ledger: Ledger) -> None:
    submit(ledger, node("n1", 10))
    refused = submit(ledger, asking(9, {"user": "alice", "partition": "p"}, placement=ANYWHERE))[0]
    assert isinstance(refused, Refused)
    assert refused.code is Code.UNKNOWN_NODE


def test_the_same_id_twice_in_a_batch_is_one_application(ledger: Ledger) -> None:
    one = asking(3, {"user": "bob"})
    again, other = asking(3, {"user": "bob"}, id=one.id), asking(3, {"user": "carol"}, id=one.id)
    outcomes = submit(ledger, one, again, other)
    assert applied(outcomes[0]).tags == {"user": "bob"}
    assert isinstance(outcomes[1], Done)
    assert outcomes[1].repeated
    assert isinstance(outcomes[2], Refused)
    assert (outcomes[2].code, outcomes[2].field) == (Code.ID_REUSED, "tags")


def test_a_refused_group_leaves_no_trace(ledger: Ledger) -> None:
    submit(ledger, node("n1", 10))
    kept = applied(submit(ledger, asking(5, {"node": "n1"}))[0])
    submit(ledger, op.Use(kept.id))
    one = asking(1, {"node": "n1"})
    operations: list[op.DecidedOperation] = [
        one,
        op.Use(one.id),
        op.Use(kept.id, {"memory": 4}),
        asking(99, {"node": "n1"}),
    ]
    outcomes = submit(ledger, *operations, atomic=True)
    assert [outcome.code for outcome in outcomes if isinstance(outcome, Refused)][
        -1
    ] is Code.INSUFFICIENT_RESOURCES
    assert isinstance(ledger.submit([op.Use(one.id)])[0], Refused), "it was never made"
    assert applied(submit(ledger, op.Use(kept.id, {"memory": 3}))[0]).used == {"memory": 3}
    with ledger.readers.connect() as connection:
        amounts = [row.amounts for row in connection.execute(tables.application_interval.select())]
    assert amounts == [{"memory": 5}], "only the adjustment that took place"


def test_who_parks_is_woken_by_what_the_same_batch_frees(ledger: Ledger) -> None:
    submit(ledger, node("n1", 10))
    holder = applied(submit(ledger, asking(10, placement=ANYWHERE))[0])
    waiting = asking(10, placement=ANYWHERE, wait_seconds=600)
    submit(ledger, waiting, op.Release(holder.id))
    assert state(ledger, waiting.id) is State.LOCKED


def test_a_queue_of_which_sixteen_left_for_another_is_looked_at_further(ledger: Ledger) -> None:
    submit(ledger, node("n1", 10))
    holder = applied(submit(ledger, asking(10, {"node": "n1"}))[0])
    poor = [asking(2, {"user": "poor", "node": "n1"}, wait_seconds=600) for _ in range(16)]
    rich = asking(2, {"user": "rich", "node": "n1"}, wait_seconds=600)
    submit(ledger, *poor, rich)
    ledger.submit_whole(op.SetLimit({"user": "poor"}, {"memory": 1}))
    submit(ledger, op.Release(holder.id))
    assert state(ledger, rich.id) is State.LOCKED
    assert state(ledger, poor[0].id) is State.WAITING


def test_a_cancelled_waiter_bars_nobody(ledger: Ledger) -> None:
    submit(ledger, node("n1", 10))
    submit(ledger, asking(8, {"node": "n1"}))
    waiting = applied(submit(ledger, asking(5, {"node": "n1"}, wait_seconds=600))[0])
    outcomes = submit(ledger, op.Release(waiting.id), asking(2, {"node": "n1"}))
    assert [applied(outcome).state for outcome in outcomes] == [State.RELEASED, State.LOCKED]


def test_the_next_in_line_still_bars_when_the_first_is_cancelled(ledger: Ledger) -> None:
    submit(ledger, node("n1", 10))
    submit(ledger, asking(8, {"node": "n1"}))
    first, _ = (applied(submit(ledger, asking(5, {"node": "n1"}, wait_seconds=600))[0]) for _ in range(2))
    outcomes = submit(ledger, op.Release(first.id), asking(2, {"node": "n1"}))
    assert isinstance(outcomes[1], Refused)


def test_a_node_that_updates_itself_is_still_expected_to_be_heard_of(ledger: Ledger) -> None:
    submit(ledger, node("n1", 10), op.HeartbeatNode("n1", 60))
    changed = submit(ledger, node("n1", 12))[0]
    assert isinstance(changed, Done)
    assert changed.node is not None
    assert changed.node.deadline is not None
    lost = submit(ledger, op.LoseNode("n1", "gone"), node("n1", 12))[1]
    assert isinstance(lost, Done)
    assert lost.node is not None
    assert lost.node.deadline is None, "back again, it has to send a first heartbeat"


def test_what_overflows_on_a_returning_node_stays_lost_and_the_node_is_registered(ledger: Ledger) -> None:
    submit(ledger, node("n1", 2**62))
    big = applied(submit(ledger, asking(2**62, {"user": "u", "node": "n1"}))[0])
    submit(ledger, op.LoseNode("n1", "gone"), op.Lose(big.id, "gone"))
    most = asking(2**63 - 1, {"user": "u"})
    submit(ledger, most, op.Use(most.id))
    assert isinstance(submit(ledger, node("n1", 77, applications=(big.id,)))[0], Done)
    assert state(ledger, big.id) is State.LOST


def test_an_engine_on_a_lost_node_waits_for_its_node(ledger: Ledger) -> None:
    submit(ledger, node("n1", 10))
    held = applied(submit(ledger, asking(1, {"node": "n1"}))[0])
    submit(ledger, op.RegisterEngine("e1", held.id), op.LoseNode("n1", "gone"), op.Lose(held.id, "gone"))
    refused = submit(ledger, op.RegisterEngine("e1", held.id))[0]
    assert isinstance(refused, Refused)
    assert refused.code is Code.NODE_LOST


def test_after_an_absence_of_the_service_a_renewal_comes_in_time(database_url: str) -> None:
    ledger = Ledger(LedgerSettings(database_url, outage_seconds=10))
    ledger.open()
    lock = applied(ledger.submit([asking(1, lock_seconds=60)])[0])
    ledger.submit_whole(op.RecordSweep(lock.created_at))
    ago = 600 * SECOND
    with ledger.readers.begin() as connection:
        connection.execute(update(tables.sweep).values(succeeded_at=tables.sweep.c.succeeded_at - ago))
        connection.execute(update(tables.application).values(deadline=tables.application.c.deadline - ago))
    assert applied(ledger.submit([op.Renew(lock.id)])[0]).state is State.LOCKED
    ledger.close()


def test_rules_that_do_not_fit_what_runs_are_refused_whole(ledger: Ledger) -> None:
    held = applied(submit(ledger, asking(1, {"user": "alice", "path": "a..b"}))[0])
    rules = [
        {"name": "user", "keys": ["user"], "kind": "quota"},
        {"name": "path", "keys": ["path"], "kind": "quota", "hierarchical": {"path": "."}},
    ]
    with pytest.raises(RulesDoNotFitError, match=held.id):
        ledger.submit_whole(op.ChangeRules({"conversions": {}, "label_rules": rules}))
    assert applied(submit(ledger, asking(1, {"user": "alice", "path": "x..y"}))[0]).state is State.LOCKED
