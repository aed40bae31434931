"""An application's life: granted, used, renewed, released, reclaimed, lost."""

from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.outcomes import Code, Done
from tests.domain.pure_ledger import PureLedger, application_of, refusal

ROOM = {"memory": 10, "vcore": 10}


def ledger_with_node(limits: dict[str, dict[str, int]] | None = None) -> PureLedger:
    ledger = PureLedger(limits)
    ledger.node("n1", ROOM)
    return ledger


def test_a_grant_locks_the_amount_on_every_label() -> None:
    ledger = ledger_with_node()
    ledger.granted({"memory": 4}, user="alice", creator="IDE", node="n1", queue="root.a")
    for tags in (
        {"user": "alice"},
        {"creator": "IDE"},
        {"node": "n1"},
        {"queue": "root"},
        {"queue": "root.a"},
    ):
        assert ledger.account(**tags).balance.locked == {"memory": 4}, tags
    assert ledger.account(node="n1").left() == {"memory": 6, "vcore": 10}


def test_one_short_label_refuses_all_and_every_shortfall_is_told() -> None:
    ledger = ledger_with_node({"user=*": {"memory": 3}})
    refused = refusal(ledger.apply({"memory": 11, "vcore": 11}, user="alice", node="n1"))
    assert refused.code is Code.INSUFFICIENT_RESOURCES
    assert {(tuple(short.label.items()), short.dimension, short.left) for short in refused.shortfalls} == {
        ((("node", "n1"),), "memory", 10),
        ((("node", "n1"),), "vcore", 10),
        ((("user", "alice"),), "memory", 3),
    }
    assert ledger.account(user="alice").balance.locked == {}


def test_a_quota_without_limit_is_not_judged_but_capacity_must_be_registered() -> None:
    ledger = ledger_with_node()
    ledger.granted({"memory": 10**15}, user="alice")
    assert refusal(ledger.apply({"memory": 1}, node="n2")).code is Code.UNKNOWN_NODE


def test_a_dimension_missing_in_a_quota_is_unlimited_and_zero_forbids() -> None:
    ledger = PureLedger({"user=alice": {"memory": 5}, "user=bob": {"memory": 0}})
    ledger.granted({"memory": 5, "vcore": 10**9}, user="alice")
    assert refusal(ledger.apply({"memory": 1}, user="bob")).shortfalls[0].total == 0
    ledger.granted({"vcore": 1}, user="bob")


def test_a_dimension_missing_in_a_capacity_is_zero() -> None:
    ledger = ledger_with_node()
    assert refusal(ledger.apply({"gpu": 1}, node="n1")).shortfalls[0].dimension == "gpu"


def test_protected_amounts_stay_free() -> None:
    ledger = PureLedger()
    ledger.node("n1", {"memory": 10}, protected={"memory": 4})
    assert refusal(ledger.apply({"memory": 7}, node="n1")).shortfalls[0].left == 6
    ledger.granted({"memory": 6}, node="n1")


def test_use_moves_locked_to_used_and_gives_the_rest_back() -> None:
    ledger = ledger_with_node()
    lock = ledger.granted({"memory": 6, "vcore": 2}, node="n1")
    used = application_of(ledger.do(op.Use(lock.id, {"memory": 4})))
    assert used.state is State.USED
    assert used.used == {"memory": 4, "vcore": 2}, "a dimension that the report does not name keeps its own"
    balance = ledger.account(node="n1").balance
    assert (balance.locked["memory"], balance.used["memory"], balance.used["vcore"]) == (0, 4, 2)


def test_more_than_the_lock_is_asked_for_like_an_apply_and_the_lock_stays_if_it_does_not_fit() -> None:
    ledger = ledger_with_node()
    lock = ledger.granted({"memory": 6}, node="n1")
    assert refusal(ledger.do(op.Use(lock.id, {"memory": 11}))).code is Code.INSUFFICIENT_RESOURCES
    assert ledger.application(lock.id).state is State.LOCKED
    assert application_of(ledger.do(op.Use(lock.id, {"memory": 10}))).used == {"memory": 10}


def test_use_on_a_used_application_sets_its_amount_and_without_one_changes_nothing() -> None:
    ledger = ledger_with_node()
    lock = ledger.granted({"memory": 6}, node="n1")
    ledger.do(op.Use(lock.id))
    ledger.do(op.Use(lock.id, {"memory": 8}))
    again = ledger.do(op.Use(lock.id))
    assert isinstance(again, Done)
    assert again.repeated
    assert ledger.account(node="n1").balance.used == {"memory": 8}


def test_no_lock_already_over_and_expired_are_three_answers() -> None:
    ledger = ledger_with_node()
    late, released = ledger.granted({"memory": 1}, node="n1"), ledger.granted({"memory": 1}, node="n1")
    ledger.do(op.Release(released.id))
    ledger.pass_time(60)
    assert refusal(ledger.do(op.Use(late.id))).code is Code.EXPIRED, "not swept yet"
    assert refusal(ledger.do(op.Renew(late.id))).code is Code.EXPIRED
    assert application_of(ledger.do(op.Reclaim(late.id))).state is State.RECLAIMED
    assert refusal(ledger.do(op.Use(late.id))).code is Code.EXPIRED, "swept"
    no_lock = refusal(ledger.do(op.Use(released.id)))
    assert (no_lock.code, no_lock.state) == (Code.NO_LOCK, "released")
    assert refusal(ledger.do(op.Use("nobody"))).code is Code.UNKNOWN_APPLICATION


def test_a_renewed_lease_lasts_from_now() -> None:
    ledger = ledger_with_node()
    lock = ledger.granted({"memory": 1}, node="n1")
    ledger.pass_time(59)
    ledger.do(op.Renew(lock.id))
    ledger.pass_time(59)
    assert isinstance(ledger.do(op.Use(lock.id)), Done)


def test_reclaim_is_harmless_before_the_deadline_and_after_use() -> None:
    ledger = ledger_with_node()
    lock = ledger.granted({"memory": 1}, node="n1")
    assert application_of(ledger.do(op.Reclaim(lock.id))).state is State.LOCKED
    ledger.do(op.Use(lock.id))
    ledger.pass_time(10**6)
    assert application_of(ledger.do(op.Reclaim(lock.id))).state is State.USED


def test_release_gives_everything_back_once() -> None:
    ledger = ledger_with_node()
    lock = ledger.granted({"memory": 6}, user="alice", node="n1")
    ledger.do(op.Release(lock.id))
    seq = ledger.view.seq
    again = ledger.do(op.Release(lock.id))
    assert isinstance(again, Done)
    assert again.repeated
    assert ledger.view.seq == seq, "nothing happened, so there is no event"
    assert ledger.account(node="n1").left() == ROOM
    assert ledger.account(user="alice").balance.applications == 0


def test_the_same_id_and_body_answers_the_present_state_another_body_names_the_field() -> None:
    ledger = ledger_with_node()
    body = {"resource": {"memory": 1}, "tags": {"node": "n1"}}
    asked = op.Apply("one", {"node": "n1"}, {"memory": 1}, request=body)
    ledger.do(asked)
    ledger.do(op.Use("one"))
    again = ledger.do(asked)
    assert isinstance(again, Done)
    assert again.repeated
    assert application_of(again).state is State.USED
    other = op.Apply("one", {"node": "n1"}, {"memory": 2}, request={**body, "resource": {"memory": 2}})
    reused = refusal(ledger.do(other))
    assert (reused.code, reused.field) == (Code.ID_REUSED, "resource")
    assert ledger.account(node="n1").balance.used == {"memory": 1}


def test_a_sum_beyond_64_bits_is_refused_and_nothing_is_booked() -> None:
    ledger = PureLedger()
    ledger.granted({"vcore": 1, "memory": 2**63 - 1}, user="alice", creator="IDE")
    refused = refusal(ledger.apply({"vcore": 1, "memory": 1}, user="bob", creator="IDE"))
    assert (refused.code, refused.field) == (Code.OVERFLOW, "memory")
    assert ledger.account(user="bob").balance.locked.get("vcore", 0) == 0
    assert ledger.account(creator="IDE").balance.locked == {"vcore": 1, "memory": 2**63 - 1}


def test_a_group_stands_or_falls_together() -> None:
    ledger = ledger_with_node()
    first = op.Apply("a", {"node": "n1"}, {"memory": 8})
    outcomes = ledger.together(
        [first, op.Use("a"), op.Apply("b", {"node": "n1"}, {"memory": 8}, wait_seconds=9)]
    )
    assert [refusal(outcome).code for outcome in outcomes] == [
        Code.NOT_DONE,
        Code.NOT_DONE,
        Code.INSUFFICIENT_RESOURCES,
    ], "a wait counts as a refusal"
    assert ledger.account(node="n1").left() == ROOM
    assert "a" not in ledger.view.applications
    assert ledger.events[-1].kind == "node.registered"
    outcomes = ledger.together([first, op.Use("a"), op.Apply("b", {"node": "n1"}, {"memory": 2})])
    assert all(isinstance(outcome, Done) for outcome in outcomes)
    assert ledger.account(node="n1").left()["memory"] == 0
