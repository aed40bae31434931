"""Usage by tags: the same answer from roll-ups, from applications, and for a past moment."""

import pytest

from rm_service.domain import operations as op
from rm_service.domain.selectors import Selector, parse_selector
from rm_service.ledger import tables
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.usage import Source, Usage, UsageRow, usage, usage_of_applications
from tests.ledger.asking import GIB, apply, done, limit, node

ALICE = {"user": "alice", "creator": "IDE", "engineType": "spark-3.3"}
BOB = {"user": "bob", "creator": "IDE", "engineType": "hive-2.3"}


def ask(ledger: Ledger, *by: str, where: str = "", at: int | None = None) -> Usage:
    with ledger.readers.connect() as connection:
        return usage(connection, ledger.book(), by, where=parse_selector(where), at=at)


def from_applications(ledger: Ledger, *by: str, where: Selector | None = None) -> Usage:
    with ledger.readers.connect() as connection:
        return usage_of_applications(connection, ledger.book(), by, where=where or Selector())


def now(ledger: Ledger) -> int:
    with ledger.readers.connect() as connection:
        time: int = connection.execute(tables.ledger_head.select()).mappings().one()["time"]
        return time


def held(usage_: Usage) -> list[tuple[dict[str, str], dict[str, int], dict[str, int], int]]:
    return [(dict(row.tags), dict(row.locked), dict(row.used), row.applications) for row in usage_.rows]


def test_usage_by_a_tag_with_a_roll_up_is_read_from_balances(ledger: Ledger) -> None:
    first = apply(ledger, ALICE, {"memory": 2 * GIB, "vcore": 1000})
    apply(ledger, ALICE, {"memory": GIB})
    done(ledger, op.Use(first.id, {"memory": GIB}))
    apply(ledger, BOB, {"memory": 5})

    answer = ask(ledger, "user")

    assert answer.source is Source.ROLLUP
    assert answer.rows == [
        UsageRow({"user": "alice"}, {"memory": GIB}, {"memory": GIB, "vcore": 1000}, 2),
        UsageRow({"user": "bob"}, {"memory": 5}, {}, 1),
    ]


def test_a_limit_shows_what_is_left_even_to_one_who_holds_nothing(ledger: Ledger) -> None:
    limit(ledger, {"user": "*"}, {"memory": 10}, protected={"memory": 1})
    given_back = apply(ledger, BOB, {"memory": 5})
    apply(ledger, ALICE, {"memory": 4})
    done(ledger, op.Release(given_back.id))

    assert ask(ledger, "user").rows == [
        UsageRow({"user": "alice"}, {"memory": 4}, {}, 1, {"memory": 10}, {"memory": 1}, {"memory": 5}),
        UsageRow({"user": "bob"}, {}, {}, 0, {"memory": 10}, {"memory": 1}, {"memory": 9}),
    ]


def test_who_holds_nothing_and_has_no_limit_is_not_named(ledger: Ledger) -> None:
    done(ledger, op.Release(apply(ledger, BOB, {"memory": 5}).id))

    assert ask(ledger, "user").rows == []
    assert ask(ledger, "app").rows == []


def test_a_tag_that_is_no_label_is_summed_over_the_applications(ledger: Ledger) -> None:
    apply(ledger, {**ALICE, "job": "1"}, {"memory": 1})
    used = apply(ledger, {**ALICE, "job": "2"}, {"memory": 2})
    apply(ledger, {**BOB, "job": "2"}, {"memory": 4})
    apply(ledger, BOB, {"memory": 8})
    done(ledger, op.Use(used.id))

    answer = ask(ledger, "job")

    assert answer.source is Source.APPLICATIONS
    assert answer.rows == [
        UsageRow({"job": "1"}, {"memory": 1}, {}, 1),
        UsageRow({"job": "2"}, {"memory": 4}, {"memory": 2}, 2),
    ]


def test_several_keys_give_a_row_for_each_combination_and_its_limit(ledger: Ledger) -> None:
    limit(ledger, {"user": "alice", "creator": "*"}, {"memory": 100})
    apply(ledger, ALICE, {"memory": 1})
    apply(ledger, {**ALICE, "creator": "ML"}, {"memory": 2})
    apply(ledger, BOB, {"memory": 4})

    answer = ask(ledger, "creator", "user", where="engineType=spark-3.3")

    assert answer.by == ("creator", "user")
    assert answer.source is Source.APPLICATIONS
    assert [(row.tags, row.locked, row.total, row.left) for row in answer.rows] == [
        ({"creator": "IDE", "user": "alice"}, {"memory": 1}, {"memory": 100}, {"memory": 99}),
        ({"creator": "ML", "user": "alice"}, {"memory": 2}, {"memory": 100}, {"memory": 98}),
    ]


def test_no_keys_at_all_give_one_row_for_everything(ledger: Ledger) -> None:
    apply(ledger, ALICE, {"memory": 1})
    apply(ledger, BOB, {"memory": 2})

    assert held(ask(ledger)) == [({}, {"memory": 3}, {}, 2)]


def test_a_node_shows_its_capacity_while_it_is_idle(ledger: Ledger) -> None:
    node(ledger, "h1", {"memory": 10}, protected={"memory": 2})
    node(ledger, "h2", {"memory": 20})
    apply(ledger, {**ALICE, "node": "h1"}, {"memory": 3, "yarn.memory": 7})

    answer = ask(ledger, "node")

    assert answer.source is Source.APPLICATIONS, "the node's label does not count all dimensions"
    assert answer.rows == [
        UsageRow(
            {"node": "h1"},
            {"memory": 3, "yarn.memory": 7},
            {},
            1,
            {"memory": 10},
            {"memory": 2},
            {"memory": 5},
        ),
        UsageRow({"node": "h2"}, {}, {}, 0, {"memory": 20}, {}, {"memory": 20}),
    ]


@pytest.mark.parametrize(
    ("by", "where"),
    [
        (["user"], ""),
        (["user"], "user in (alice,bob)"),
        (["user"], "user!=alice"),
        (["creator"], ""),
        (["engineType"], ""),
        (["tenant"], "tenant"),
        (["queue"], ""),
        (["queue"], "queue=root.a"),
        (["queue"], "queue!=root"),
        (["partition", "queue"], ""),
        (["queue", "partition"], "partition=p1,queue=root.a"),
        (["user", "creator", "engineType"], "user=alice"),
    ],
)
def test_roll_ups_and_applications_agree(ledger: Ledger, by: list[str], where: str) -> None:
    spread_over_queues(ledger)

    rolled_up = ask(ledger, *by, where=where)
    summed = from_applications(ledger, *by, where=parse_selector(where))

    assert rolled_up.source is Source.ROLLUP
    assert rolled_up.rows == summed.rows
    assert rolled_up.rows


def spread_over_queues(ledger: Ledger) -> None:
    limit(ledger, {"user": "*"}, {"memory": 10_000})
    limit(ledger, {"queue": "root.a"}, {"memory": 10_000})
    amount = 1
    for user in ("alice", "bob", "carol"):
        for queue in ("root", "root.a", "root.a.x", "root.b"):
            for partition in ({}, {"partition": "p1"}, {"partition": "p2"}):
                tags = {"user": user, "creator": "IDE", "engineType": "spark", "tenant": "t", "queue": queue}
                held_ = apply(ledger, {**tags, **partition}, {"memory": amount, "vcore": 1})
                amount += 1
                if amount % 3 == 0:
                    done(ledger, op.Use(held_.id))
                if amount % 7 == 0:
                    done(ledger, op.Release(held_.id))


def test_a_queue_counts_what_is_below_it_at_each_level(ledger: Ledger) -> None:
    apply(ledger, {"user": "alice", "queue": "root.a.x"}, {"memory": 1})
    apply(ledger, {"user": "alice", "queue": "root.a"}, {"memory": 2})
    apply(ledger, {"user": "bob", "queue": "root.b"}, {"memory": 4})

    by_queue_and_user = ask(ledger, "queue", "user")
    assert [(tuple(row.tags.values()), row.locked["memory"]) for row in by_queue_and_user.rows] == [
        (("root", "alice"), 3),
        (("root", "bob"), 4),
        (("root.a", "alice"), 3),
        (("root.a.x", "alice"), 1),
        (("root.b", "bob"), 4),
    ]
    assert held(ask(ledger, "user", where="queue=root.a")) == [({"user": "alice"}, {"memory": 3}, {}, 2)]
    assert held(ask(ledger, "user", where="queue!=root.a")) == [({"user": "bob"}, {"memory": 4}, {}, 1)]


def test_sums_beyond_64_bits_stay_exact(ledger: Ledger) -> None:
    for user in ("alice", "bob", "carol"):
        apply(ledger, {"user": user, "job": "1"}, {"memory": 2**63 - 1})

    assert held(ask(ledger, "job")) == [({"job": "1"}, {"memory": 3 * (2**63 - 1)}, {}, 3)]


def test_a_past_moment_is_told_from_what_was_held_then(ledger: Ledger) -> None:
    before = now(ledger)
    one = apply(ledger, {**ALICE, "job": "1"}, {"memory": 8})
    locked = now(ledger)
    done(ledger, op.Use(one.id, {"memory": 4}))
    used = now(ledger)
    apply(ledger, {**BOB, "job": "1"}, {"memory": 100})
    done(ledger, op.Use(one.id, {"memory": 6}))
    adjusted = now(ledger)
    done(ledger, op.Release(one.id))
    released = now(ledger)

    assert ask(ledger, "user", at=locked).source is Source.INTERVALS
    assert held(ask(ledger, "user", at=before)) == []
    assert held(ask(ledger, "user", at=locked)) == [({"user": "alice"}, {"memory": 8}, {}, 1)]
    assert held(ask(ledger, "job", at=used)) == [({"job": "1"}, {}, {"memory": 4}, 1)]
    assert held(ask(ledger, "user", at=adjusted, where="user=alice")) == [
        ({"user": "alice"}, {}, {"memory": 6}, 1)
    ]
    assert held(ask(ledger, "job", at=released)) == [({"job": "1"}, {"memory": 100}, {}, 1)]


def test_a_life_before_a_loss_is_remembered(ledger: Ledger) -> None:
    node(ledger, "h1", {"memory": 10})
    one = apply(ledger, {**ALICE, "node": "h1"}, {"memory": 8})
    locked = now(ledger)
    done(ledger, op.Use(one.id, {"memory": 5}))
    used = now(ledger)
    done(ledger, op.LoseNode("h1", "gone"), op.Lose(one.id, "gone"))
    lost = now(ledger)
    node(ledger, "h1", {"memory": 10}, applications=(one.id,))
    back = now(ledger)

    moments = {"locked": locked, "used": used, "lost": lost, "back": back}
    answers = {name: held(ask(ledger, "node", at=at)) for name, at in moments.items()}

    assert answers == {
        "locked": [({"node": "h1"}, {"memory": 8}, {}, 1)],
        "used": [({"node": "h1"}, {}, {"memory": 5}, 1)],
        "lost": [],
        "back": [({"node": "h1"}, {}, {"memory": 5}, 1)],
    }
