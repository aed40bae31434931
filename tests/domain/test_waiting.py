"""Waiting: who is woken by what, in which order, and who must not pass."""

from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.outcomes import Done
from tests.domain.pure_ledger import PureLedger, application_of, refusal


def full_node() -> tuple[PureLedger, str]:
    ledger = PureLedger()
    ledger.node("n1", {"memory": 10})
    return ledger, ledger.granted({"memory": 10}, node="n1").id


def test_what_does_not_fit_waits_and_a_release_wakes_it() -> None:
    ledger, holder = full_node()
    waiting = application_of(ledger.apply({"memory": 4}, wait=60, node="n1"))
    assert waiting.state is State.WAITING
    assert ledger.account(node="n1").balance.locked == {"memory": 10}, "who waits holds nothing"
    ledger.do(op.Release(holder))
    assert ledger.application(waiting.id).state is State.LOCKED


def test_without_a_wait_it_is_refused_and_leaves_no_trace() -> None:
    ledger, _ = full_node()
    seq = ledger.view.seq
    refusal(ledger.apply({"memory": 4}, node="n1"))
    assert ledger.view.seq == seq
    assert len(ledger.view.applications) == 1


def test_nobody_barges_in_between_a_release_and_a_wake() -> None:
    ledger, holder = full_node()
    first = application_of(ledger.apply({"memory": 8}, wait=60, node="n1"))
    ledger.view.applications[holder]
    ledger.do(op.Use(holder, {"memory": 5}))
    barging = refusal(ledger.apply({"memory": 5}, node="n1"))
    assert [short.reason for short in barging.shortfalls] == ["waiters_ahead"]
    ledger.do(op.Release(holder))
    assert ledger.application(first.id).state is State.LOCKED


def test_higher_priority_goes_first_then_age() -> None:
    ledger, holder = full_node()
    old = application_of(ledger.apply({"memory": 10}, wait=60, node="n1"))
    young = application_of(ledger.apply({"memory": 10}, wait=60, node="n1"))
    urgent = application_of(ledger.apply({"memory": 10}, wait=60, priority=5, node="n1"))
    order = []
    while holder:
        ledger.do(op.Release(holder))
        holder = next((app.id for app in ledger.holding()), "")
        order.append(holder)
    assert order == [urgent.id, old.id, young.id, ""]


def test_a_small_one_may_pass_a_large_one_until_the_large_one_is_old() -> None:
    ledger = PureLedger(wait_age=100)
    ledger.node("n1", {"memory": 10})
    holders = [ledger.granted({"memory": 2}, node="n1").id for _ in range(5)]
    large = application_of(ledger.apply({"memory": 9}, wait=10_000, node="n1"))
    small = application_of(ledger.apply({"memory": 2}, wait=10_000, node="n1"))
    ledger.do(op.Release(holders.pop()))
    assert ledger.application(small.id).state is State.LOCKED
    later = application_of(ledger.apply({"memory": 2}, wait=10_000, node="n1"))
    ledger.pass_time(100)
    ledger.do(op.Release(holders.pop()))
    assert ledger.application(later.id).state is State.WAITING, "the large one has closed the label"
    for holder in [*holders, small.id]:
        ledger.do(op.Release(holder))
    assert ledger.application(large.id).state is State.LOCKED


def test_who_only_waits_for_its_turn_is_looked_at_at_once() -> None:
    ledger = PureLedger()
    ledger.node("n1", {"memory": 10})
    ledger.granted({"memory": 5}, node="n1")
    application_of(ledger.apply({"memory": 9}, wait=60, node="n1"))
    small = application_of(ledger.apply({"memory": 5}, wait=60, node="n1"))
    assert ledger.application(small.id).state is State.LOCKED


def test_the_wait_has_a_deadline_and_a_cancel() -> None:
    ledger, holder = full_node()
    late = application_of(ledger.apply({"memory": 1}, wait=30, node="n1"))
    gone = application_of(ledger.apply({"memory": 1}, wait=3000, node="n1"))
    assert application_of(ledger.do(op.Release(gone.id))).state is State.RELEASED
    ledger.pass_time(30)
    assert application_of(ledger.do(op.Reclaim(late.id))).state is State.EXPIRED
    ledger.do(op.Release(holder))
    assert ledger.holding() == []
    assert ledger.account(node="n1").balance.first_priority is None


def test_a_waiter_that_is_short_elsewhere_by_now_queues_there() -> None:
    ledger = PureLedger({"user=alice": {"memory": 10}})
    ledger.node("n1", {"memory": 10})
    ledger.node("n2", {"memory": 10})
    on_node = ledger.granted({"memory": 10}, node="n1").id
    waiting = application_of(ledger.apply({"memory": 5}, wait=60, user="alice", node="n1"))
    quota = ledger.granted({"memory": 8}, user="alice", node="n2").id
    ledger.do(op.Release(on_node))
    parked = ledger.application(waiting.id)
    assert parked.state is State.WAITING
    assert parked.waits_on == (ledger.account(user="alice").label.id,)
    ledger.do(op.Release(quota))
    assert ledger.application(waiting.id).state is State.LOCKED


def test_many_waiters_are_woken_beyond_the_first_look() -> None:
    ledger, holder = full_node()
    waiting = [application_of(ledger.apply({"memory": 1}, wait=60, node="n1")).id for _ in range(40)]
    ledger.node("n1", {"memory": 100})
    ledger.do(op.Release(holder))
    assert all(ledger.application(each).state is State.LOCKED for each in waiting)


def test_who_asks_for_a_node_waits_for_one_and_a_new_node_wakes_it() -> None:
    ledger, _ = full_node()
    placement = op.Placement("gpu=T4")
    asked = op.Apply("p", {"user": "alice"}, {"memory": 5}, wait_seconds=60, placement=placement)
    assert application_of(ledger.do(asked)).state is State.WAITING
    ledger.do(op.RegisterNode("n2", "LoadInstance", {"memory": 10}, tags={"gpu": "P100"}))
    assert ledger.application("p").state is State.WAITING
    ledger.do(op.RegisterNode("n3", "LoadInstance", {"memory": 10}, tags={"gpu": "T4"}))
    placed = ledger.application("p")
    assert (placed.state, placed.tags["node"]) == (State.LOCKED, "n3")
    assert ledger.account(node="n3").balance.locked == {"memory": 5}


def test_an_undrained_node_wakes_those_who_wait_for_it() -> None:
    ledger = PureLedger()
    ledger.node("n1", {"memory": 10})
    ledger.do(op.DrainNode("n1"))
    waiting = application_of(ledger.apply({"memory": 1}, wait=60, node="n1"))
    assert waiting.state is State.WAITING
    assert isinstance(ledger.do(op.UndrainNode("n1")), Done)
    assert ledger.application(waiting.id).state is State.LOCKED
