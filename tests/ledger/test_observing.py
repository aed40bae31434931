"""External capacity as the database keeps it: one counter on the label, proved by the audit."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import select, update

from rm_service.domain import operations as op
from rm_service.domain.application import SECOND, State
from rm_service.domain.outcomes import Done
from rm_service.ledger import tables
from rm_service.ledger.audit import audit
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.applications import read_application
from rm_service.ledger.queries.labels import read_label
from rm_service.ledger.sweeper import Sweeper
from tests.ledger import sweeping
from tests.ledger.asking import apply, asking, done, reading

HERE = {"yarnCluster": "c1", "yarnQueue": "a"}
MEMORY = "yarn.memory"


def looking(observed: int, shown: Mapping[str, int] | None = None) -> op.Observe:
    parts = {name: {MEMORY: amount} for name, amount in (shown or {}).items()}
    return op.Observe(HERE, "yarn/c1", {MEMORY: 100}, {MEMORY: observed}, shown=parts, stale_seconds=60)


def left(ledger: Ledger) -> int:
    account = reading(ledger, read_label, ledger.book(), HERE)
    return int(account.left()[MEMORY])


def pass_time(ledger: Ledger, seconds: int) -> None:
    """As if the last look, and what has ended since, were so much older."""
    column = tables.balance.c.observation
    with ledger.readers.begin() as connection:
        ((label_id, known),) = connection.execute(
            select(tables.balance.c.label_id, column).where(column.is_not(None))
        )
        for name in ("at", "stale_at"):
            known[name] -= seconds * SECOND
        known["ended"] = [[at - seconds * SECOND, amounts] for at, amounts in known["ended"]]
        row = update(tables.balance).where(tables.balance.c.label_id == label_id)
        connection.execute(row.values(observation=known))


def state(ledger: Ledger, id_: str) -> State:
    ledger.submit([op.Renew(id_)])  # behind what was woken
    found: State = reading(ledger, read_application, id_).state
    return found


def check_books(ledger: Ledger) -> None:
    result = audit(ledger.readers)
    assert result.consistent, result.differences


def test_a_place_is_counted_through_the_life_of_an_application(ledger: Ledger) -> None:
    done(ledger, looking(40))
    ours = apply(ledger, {**HERE, "user": "alice"}, {MEMORY: 50})
    assert left(ledger) == 10
    done(ledger, looking(60, {ours.id: 20}), op.Use(ours.id, external_ids=("application_1_1",)))
    assert left(ledger) == 10
    check_books(ledger)
    known = reading(ledger, read_application, ours.id).external
    assert (known.ids, known.shown) == (("application_1_1",), {MEMORY: 20})
    done(ledger, op.Use(ours.id, {MEMORY: 10}))
    assert left(ledger) == 40  # 60 are observed; of ours all that it still holds is among them
    check_books(ledger)
    done(ledger, op.Release(ours.id))
    assert left(ledger) == 40
    done(ledger, looking(40))
    assert left(ledger) == 60
    check_books(ledger)


def test_looking_and_asking_in_one_batch_is_enough(ledger: Ledger) -> None:
    first, second = ledger.submit([looking(60), asking(HERE, {MEMORY: 40})])
    assert isinstance(first, Done)
    assert isinstance(second, Done)
    assert left(ledger) == 0


def test_the_first_look_lets_in_who_waits(ledger: Ledger) -> None:
    done(ledger, op.Observe(HERE, "yarn/c1", None, closed="unobserved"))
    waiting = apply(ledger, HERE, {MEMORY: 10}, wait_seconds=60)
    assert (waiting.state, waiting.reason) == (State.WAITING, "yarnCluster=c1,yarnQueue=a: unobserved")
    done(ledger, looking(0))
    done(ledger, op.Renew(waiting.id))  # behind the wake
    assert reading(ledger, read_application, waiting.id).state is State.LOCKED
    check_books(ledger)


def test_who_waited_in_vain_for_a_look_is_told_so(ledger: Ledger) -> None:
    done(ledger, op.Observe(HERE, "yarn/c1", None, closed="unobserved", looked=False))
    waiting = apply(ledger, HERE, {MEMORY: 10}, wait_seconds=60)
    sweeping.pass_time(ledger, 61)
    done(ledger, op.Reclaim(waiting.id))
    ended = reading(ledger, read_application, waiting.id)
    reason = "no room within the wait (yarnCluster=c1,yarnQueue=a: unobserved)"
    assert (ended.state, ended.reason) == (State.EXPIRED, reason)


def test_rules_that_change_count_in_what_is_shown(ledger: Ledger, default_rules: dict[str, Any]) -> None:
    done(ledger, looking(0))
    ours = apply(ledger, {**HERE, "zone": "a"}, {MEMORY: 50})
    done(ledger, looking(30, {ours.id: 30}))
    zone = {"name": "zone", "keys": ["zone"], "kind": "rollup"}
    rules = {**default_rules, "label_rules": [*default_rules["label_rules"], zone]}
    assert isinstance(ledger.submit_whole(op.ChangeRules(rules)), Done)
    assert left(ledger) == 50
    check_books(ledger)


def test_an_older_look_of_another_replica_changes_nothing(ledger: Ledger) -> None:
    done(ledger, looking(40))
    older = op.Observe(HERE, "yarn/c1", {MEMORY: 100}, {MEMORY: 0}, age=5_000_000)
    assert done(ledger, older)[0].repeated
    assert left(ledger) == 60


UNKNOWN = {"yarnCluster": "c1", "yarnQueue": "root.unknown"}


def shut_places(ledger: Ledger) -> None:
    """One of which nothing was ever known, one of which something was, and one that is only protected."""
    done(ledger, looking(0))
    done(ledger, op.Observe(HERE, "yarn/c1", None, protected={MEMORY: 5}, closed="unobserved"))
    done(ledger, op.Observe(UNKNOWN, "yarn/c1", None, closed="unobserved", looked=False))
    done(ledger, op.Observe({**UNKNOWN, "yarnQueue": "b"}, "yarn/c1", None, protected={MEMORY: 5}))


def test_the_books_agree_after_a_change_of_rules_while_places_are_shut(
    ledger: Ledger, default_rules: dict[str, Any]
) -> None:
    shut_places(ledger)
    check_books(ledger)
    tenants = {"name": "zone", "keys": ["zone"], "kind": "rollup"}
    rules = {**default_rules, "label_rules": [*default_rules["label_rules"], tenants]}
    assert isinstance(ledger.submit_whole(op.ChangeRules(rules)), Done)
    check_books(ledger)
    done(ledger, looking(40))
    check_books(ledger)


def test_the_books_agree_after_a_checkpoint_while_places_are_shut(ledger: Ledger) -> None:
    shut_places(ledger)
    ledger.submit_whole(op.WriteCheckpoint())
    check_books(ledger)


def test_the_books_agree_after_the_rule_of_a_shut_place_is_gone_and_back(
    ledger: Ledger, default_rules: dict[str, Any]
) -> None:
    shut_places(ledger)
    others = [rule for rule in default_rules["label_rules"] if rule["name"] != "yarn-queue"]
    for rules in (others, default_rules["label_rules"]):
        assert isinstance(ledger.submit_whole(op.ChangeRules({**default_rules, "label_rules": rules})), Done)
        check_books(ledger)


def test_who_waits_at_a_place_that_is_ignored_when_stale_is_let_in(ledger: Ledger, sweeper: Sweeper) -> None:
    done(ledger, replace(looking(100), ignored_when_stale=True))
    waiting = apply(ledger, HERE, {MEMORY: 10}, wait_seconds=60)
    pass_time(ledger, 55)
    sweeper.sweep()
    assert state(ledger, waiting.id) is State.WAITING
    pass_time(ledger, 5)
    sweeper.sweep()
    assert state(ledger, waiting.id) is State.LOCKED
    assert sweeper.sweep().woken == 0


def test_what_has_ended_is_kept_free_until_it_is_taken_for_gone(ledger: Ledger, sweeper: Sweeper) -> None:
    done(ledger, replace(looking(0), stale_seconds=600))
    ours = apply(ledger, HERE, {MEMORY: 60})
    done(ledger, op.Use(ours.id), op.Release(ours.id))
    check_books(ledger)
    waiting = apply(ledger, HERE, {MEMORY: 50}, wait_seconds=60)
    assert (waiting.state, left(ledger)) == (State.WAITING, 40)
    sweeper.sweep()
    assert state(ledger, waiting.id) is State.WAITING
    pass_time(ledger, 62)
    sweeper.sweep()
    assert state(ledger, waiting.id) is State.LOCKED
    assert left(ledger) == 50
    assert sweeper.sweep().woken == 0
    check_books(ledger)


def test_what_has_ended_is_kept_free_until_there_is_a_later_look(ledger: Ledger) -> None:
    done(ledger, looking(0))
    ours = apply(ledger, HERE, {MEMORY: 60})
    done(ledger, op.Use(ours.id), op.Release(ours.id))
    pass_time(ledger, 10)
    done(ledger, looking(30))
    assert left(ledger) == 70
    check_books(ledger)
