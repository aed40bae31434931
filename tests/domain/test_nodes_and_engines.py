"""Nodes and engines: registered, alive, draining, silent, back again."""

from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.outcomes import Code, Done
from tests.domain.pure_ledger import PureLedger, application_of, refusal

ROOM = {"memory": 10}


def test_registering_again_keeps_what_runs_there_and_the_number() -> None:
    ledger = PureLedger()
    first = ledger.node("n1", ROOM)
    ledger.granted({"memory": 4}, node="n1")
    again = ledger.node("n1", {"memory": 12})
    assert isinstance(first, Done)
    assert isinstance(again, Done)
    assert (first.created, again.created) == (True, False)
    assert first.node is not None
    assert again.node is not None
    assert first.node.target == again.node.target == 1
    assert ledger.account(node="n1").left() == {"memory": 8}


def test_a_total_below_the_use_is_allowed_and_shrinking_still_works() -> None:
    ledger = PureLedger()
    ledger.node("n1", ROOM)
    lock = ledger.granted({"memory": 8}, node="n1")
    ledger.node("n1", {"memory": 5})
    assert ledger.account(node="n1").over_limit()
    assert isinstance(ledger.do(op.Use(lock.id, {"memory": 6})), Done)
    refusal(ledger.do(op.Use(lock.id, {"memory": 7})))
    ledger.do(op.Release(lock.id))
    assert ledger.account(node="n1").left() == {"memory": 5}


def test_registering_the_same_again_is_no_event() -> None:
    ledger = PureLedger()
    ledger.node("n1", ROOM)
    seq = ledger.view.seq
    ledger.node("n1", ROOM)
    assert ledger.view.seq == seq


def test_a_draining_node_takes_nothing_new_and_keeps_what_runs() -> None:
    ledger = PureLedger()
    ledger.node("n1", ROOM)
    lock = ledger.granted({"memory": 4}, node="n1")
    ledger.do(op.DrainNode("n1", "maintenance"))
    assert refusal(ledger.apply({"memory": 1}, node="n1")).code is Code.NODE_NOT_SCHEDULABLE
    assert isinstance(ledger.do(op.Use(lock.id)), Done)
    ledger.node("n1", {"memory": 20})
    assert refusal(ledger.apply({"memory": 1}, node="n1")).code is Code.NODE_NOT_SCHEDULABLE


def test_silence_makes_a_node_lost_only_after_it_has_spoken_and_only_past_its_deadline() -> None:
    ledger = PureLedger()
    ledger.node("n1", ROOM)
    ledger.pass_time(10**6)
    silent = op.LoseNode("n1", "silent", only_if_silent=True)
    assert ledger.do(silent) == Done(
        node=ledger.view.nodes[ledger.account(node="n1").label.id], repeated=True
    )
    ledger.do(op.HeartbeatNode("n1", deadline_seconds=30))
    ledger.pass_time(29)
    ledger.do(silent)
    assert ledger.account(node="n1").balance.closed is None
    ledger.pass_time(1)
    ledger.do(silent)
    assert ledger.account(node="n1").balance.closed == "lost"
    assert refusal(ledger.do(op.HeartbeatNode("n1", 30))).code is Code.NODE_LOST


def test_a_node_that_comes_back_takes_its_place_and_its_lost_applications() -> None:
    ledger = PureLedger()
    ledger.node("n1", ROOM)
    lock = ledger.granted({"memory": 6}, user="alice", node="n1")
    ledger.do(op.Use(lock.id))
    ledger.do(op.LoseNode("n1", "silent"))
    lost = application_of(ledger.do(op.Lose(lock.id, "node n1 fell silent")))
    assert (lost.state, lost.reason) == (State.LOST, "node n1 fell silent")
    assert ledger.account(user="alice").balance.used == {"memory": 0}
    ledger.do(op.RegisterNode("n1", "LoadInstance", {"memory": 5}, applications=(lock.id, "unknown")))
    back = ledger.application(lock.id)
    assert (back.state, back.over_limit) == (State.USED, True)
    assert ledger.account(user="alice").balance.used == {"memory": 6}


def test_a_node_is_removed_only_when_nothing_is_held_there_and_keeps_its_number() -> None:
    ledger = PureLedger()
    ledger.node("n0", ROOM)
    ledger.node("n1", ROOM)
    lock = ledger.granted({"memory": 1}, node="n1")
    assert refusal(ledger.do(op.RemoveNode("n1"))).code is Code.NODE_IN_USE
    ledger.do(op.Release(lock.id))
    ledger.do(op.RemoveNode("n1"))
    assert refusal(ledger.apply({"memory": 1}, node="n1")).code is Code.UNKNOWN_NODE
    ledger.node("n2", ROOM)
    again = ledger.node("n1", ROOM)
    assert isinstance(again, Done)
    assert again.node is not None
    assert (again.created, again.node.target) == (True, 2)


def test_a_started_engine_turns_its_lock_into_use() -> None:
    ledger = PureLedger()
    ledger.node("n1", ROOM)
    lock = ledger.granted({"memory": 4}, node="n1")
    done = ledger.do(op.RegisterEngine("e1", lock.id, resource={"memory": 3}))
    assert isinstance(done, Done)
    assert done.engine is not None
    assert (done.created, done.engine.node, application_of(done).state) == (True, "n1", State.USED)
    assert ledger.account(node="n1").balance.used == {"memory": 3}


def test_what_an_engine_reports_above_the_limit_is_booked_and_flagged() -> None:
    ledger = PureLedger()
    ledger.node("n1", ROOM)
    lock = ledger.granted({"memory": 4}, node="n1")
    assert (
        application_of(ledger.do(op.RegisterEngine("e1", lock.id, resource={"memory": 9}))).over_limit
        is False
    )
    over = application_of(ledger.do(op.HeartbeatEngine("e1", 30, resource={"memory": 14})))
    assert (over.used, over.over_limit) == ({"memory": 14}, True)
    back = application_of(ledger.do(op.HeartbeatEngine("e1", 30, resource={"memory": 2})))
    assert back.over_limit is False


def test_an_engine_without_a_lock_is_an_error() -> None:
    ledger = PureLedger()
    ledger.node("n1", ROOM)
    lock = ledger.granted({"memory": 4}, node="n1")
    ledger.pass_time(60)
    assert refusal(ledger.do(op.RegisterEngine("e1", lock.id))).code is Code.EXPIRED
    assert refusal(ledger.do(op.RegisterEngine("e1", "nobody"))).code is Code.UNKNOWN_APPLICATION
    released = ledger.granted({"memory": 4}, user="bob")
    ledger.do(op.Release(released.id))
    assert refusal(ledger.do(op.RegisterEngine("e1", released.id))).code is Code.NO_LOCK


def test_an_engine_and_an_application_belong_to_each_other_alone() -> None:
    ledger = PureLedger()
    one, two = ledger.granted({"memory": 1}, user="a"), ledger.granted({"memory": 1}, user="a")
    ledger.do(op.RegisterEngine("e1", one.id))
    assert refusal(ledger.do(op.RegisterEngine("e1", two.id))).code is Code.ENGINE_EXISTS
    assert refusal(ledger.do(op.RegisterEngine("e2", one.id))).code is Code.ENGINE_EXISTS
    again = ledger.do(op.RegisterEngine("e1", one.id))
    assert isinstance(again, Done)
    assert again.created is False


def test_an_engine_that_ends_or_falls_silent_gives_everything_back() -> None:
    ledger = PureLedger()
    ended, silent = ledger.granted({"memory": 1}, user="a"), ledger.granted({"memory": 2}, user="a")
    ledger.do(op.RegisterEngine("e1", ended.id))
    ledger.do(op.RegisterEngine("e2", silent.id))
    assert application_of(ledger.do(op.RemoveEngine("e1"))).state is State.RELEASED
    ledger.do(op.HeartbeatEngine("e2", 30))
    ledger.pass_time(29)
    assert application_of(ledger.do(op.LoseEngine("e2", "silent"))).state is State.USED
    ledger.pass_time(1)
    assert application_of(ledger.do(op.LoseEngine("e2", "silent"))).state is State.LOST
    assert ledger.account(user="a").balance.used == {"memory": 0}
    assert refusal(ledger.do(op.HeartbeatEngine("e2", 30))).code is Code.UNKNOWN_ENGINE


def test_releasing_the_application_takes_its_engine_off_the_list() -> None:
    ledger = PureLedger()
    lock = ledger.granted({"memory": 1}, user="a")
    ledger.do(op.RegisterEngine("e1", lock.id))
    ledger.do(op.Release(lock.id))
    assert ledger.view.engines["e1"].removed


def test_a_lost_engine_that_speaks_again_is_booked_again() -> None:
    ledger = PureLedger()
    lock = ledger.granted({"memory": 1}, user="a")
    ledger.do(op.RegisterEngine("e1", lock.id))
    ledger.do(op.Lose(lock.id, "node lost"))
    back = application_of(ledger.do(op.RegisterEngine("e1", lock.id)))
    assert back.state is State.USED
    assert ledger.account(user="a").balance.used == {"memory": 1}
