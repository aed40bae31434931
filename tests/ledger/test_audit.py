"""The audit: clean after honest work, and it names what somebody has broken by hand."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, delete, insert, select, text, update

from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.ledger import tables
from rm_service.ledger.audit import Audit, Check, OverLimit, audit
from rm_service.ledger.ledger import Ledger
from tests.ledger.asking import application, apply, asking, done, limit, node

ALICE = {"user": "alice", "creator": "IDE", "engineType": "spark"}


@pytest.fixture
def busy(ledger: Ledger) -> Ledger:
    """A ledger in which everything that can be has happened at least once."""
    node(ledger, "h1", {"memory": 100, "vcore": 100}, protected={"memory": 10})
    node(ledger, "h2", {"memory": 100})
    limit(ledger, {"user": "*"}, {"memory": 80})
    limit(ledger, {"user": "alice", "job": "*"}, {"memory": 60})
    here = {**ALICE, "node": "h1"}
    locked = apply(ledger, {**here, "job": "1", "queue": "root.a"}, {"memory": 20, "vcore": 1})
    used = apply(ledger, {**here, "queue": "root.a.b"}, {"memory": 30, "yarn.memory": 5})
    done(ledger, op.Use(used.id, {"memory": 25}))
    engine = apply(ledger, {**ALICE, "user": "bob"}, {"memory": 10})
    done(ledger, op.RegisterEngine("e1", engine.id, resource={"memory": 12}))
    apply(ledger, here, {"memory": 70}, wait_seconds=600)
    apply(ledger, here, {"memory": 71}, wait_seconds=600, priority=5)
    apply(ledger, {"user": "carol"}, {"memory": 5}, placement=op.Placement("node=h2"))
    ledger.submit_whole(op.WriteCheckpoint())
    done(ledger, op.Release(apply(ledger, {"user": "bob"}, {"memory": 1}).id), op.Renew(locked.id))
    apply(ledger, {"user": "dave"}, {})
    done(ledger, op.LoseNode("h2", "silent"))
    return ledger


@contextmanager
def broken(ledger: Ledger) -> Iterator[Connection]:
    """The database, open to somebody who goes past the ledger; its constraints look away on SQLite."""
    with ledger.readers.connect() as connection:
        if connection.dialect.name == "sqlite":
            connection.execute(text("PRAGMA ignore_check_constraints = ON"))
        else:
            connection.execute(text("ALTER TABLE application DROP CONSTRAINT ck_application_finished"))
        yield connection
        connection.commit()


def found(ledger: Ledger) -> set[tuple[Check, str]]:
    result = audit(ledger.readers)
    assert result.consistent is (not result.differences)
    return {(difference.check, difference.field) for difference in result.differences}


def label_id(connection: Connection, key: str) -> int:
    query = select(tables.label.c.id).where(tables.label.c.key == key)
    number: int = connection.execute(query).scalar_one()
    return number


def one_in(connection: Connection, state: State) -> str:
    query = select(tables.application.c.id).where(tables.application.c.state == state)
    return str(connection.execute(query.limit(1)).scalar_one())


def test_honest_books_are_consistent(busy: Ledger) -> None:
    result = audit(busy.readers)

    assert result.differences == []
    assert result.consistent
    assert result.applications_checked == 7
    assert result.labels_checked > 10
    assert 0 < result.events_folded < result.seq


def test_an_empty_ledger_is_consistent(ledger: Ledger) -> None:
    result = audit(ledger.readers)

    assert isinstance(result, Audit)
    assert (result.consistent, result.labels_checked, result.applications_checked) == (True, 0, 0)


def test_without_a_checkpoint_all_events_are_folded(busy: Ledger) -> None:
    with broken(busy) as connection:
        connection.execute(delete(tables.checkpoint))
        first = connection.execute(select(tables.event.c.seq).order_by(tables.event.c.seq)).scalars().first()

    result = audit(busy.readers)

    assert first == 1
    assert result.events_folded == result.seq
    assert result.consistent, "the labels of the limit on user and job held nothing before it was set"


def test_a_checkpoint_keeps_those_who_hold_nothing_but_a_place(busy: Ledger) -> None:
    apply(busy, {"user": "erin"}, {"memory": 0})

    busy.submit_whole(op.WriteCheckpoint())

    assert audit(busy.readers).differences == []


@pytest.mark.parametrize(("column", "amounts"), [("locked", {"memory": 21}), ("used", {"memory": 999})])
def test_a_changed_balance_is_found_both_ways(busy: Ledger, column: str, amounts: dict[str, int]) -> None:
    with broken(busy) as connection:
        row = tables.balance.c.label_id == label_id(connection, "user=alice")
        connection.execute(update(tables.balance).where(row).values({column: amounts}))

    differences = audit(busy.readers).differences

    assert {(each.check, each.field, each.dimension) for each in differences} >= {
        (Check.BALANCE, column, "memory"),
        (Check.EVENTS, column, "memory"),
    }
    assert all(each.label == {"user": "alice"} for each in differences)
    assert {each.found for each in differences if each.dimension == "memory"} == {amounts["memory"]}


def test_a_changed_count_of_holders_is_found(busy: Ledger) -> None:
    with broken(busy) as connection:
        row = tables.balance.c.label_id == label_id(connection, "user=alice")
        connection.execute(update(tables.balance).where(row).values(applications=9))

    assert found(busy) == {(Check.BALANCE, "applications"), (Check.EVENTS, "applications")}


def test_a_changed_application_is_found(busy: Ledger) -> None:
    with broken(busy) as connection:
        row = tables.application.c.id == one_in(connection, State.LOCKED)
        connection.execute(update(tables.application).where(row).values(requested={"memory": 7777}))

    assert found(busy) == {(Check.BALANCE, "locked")}


def test_a_missing_balance_is_found(busy: Ledger) -> None:
    with broken(busy) as connection:
        connection.execute(
            delete(tables.balance).where(tables.balance.c.label_id == label_id(connection, "creator=IDE"))
        )

    assert found(busy) == {(Check.BALANCE, "balance"), (Check.EVENTS, "balance")}


def test_an_application_charged_to_other_labels_is_found(busy: Ledger) -> None:
    with broken(busy) as connection:
        one = one_in(connection, State.USED)
        row = tables.application.c.id == one
        charged = connection.execute(select(tables.application.c.label_ids).where(row)).scalar_one()
        connection.execute(update(tables.application).where(row).values(label_ids=charged[1:]))

    differences = audit(busy.readers).differences

    assert (Check.LABELS, one) in {(each.check, each.subject) for each in differences}
    assert Check.BALANCE in {each.check for each in differences}


def test_a_changed_event_is_found(busy: Ledger) -> None:
    with broken(busy) as connection:
        last = (
            connection.execute(
                select(tables.event.c.seq)
                .where(tables.event.c.kind == "application.released")
                .order_by(tables.event.c.seq.desc())
            )
            .scalars()
            .first()
        )
        connection.execute(
            update(tables.event).where(tables.event.c.seq == last).values(locked={"memory": -2})
        )

    assert found(busy) == {(Check.EVENTS, "locked")}


def test_a_missing_event_is_found(busy: Ledger) -> None:
    with broken(busy) as connection:
        renewed = tables.event.c.kind == "application.renewed"
        connection.execute(delete(tables.event).where(renewed))

    assert found(busy) == {(Check.EVENT_ORDER, "numbers do not follow each other")}


def test_a_missing_last_event_is_found(busy: Ledger) -> None:
    with broken(busy) as connection:
        connection.execute(delete(tables.event).where(tables.event.c.kind == "node.lost"))

    assert found(busy) == {(Check.EVENT_ORDER, "last event"), (Check.EVENTS, "closed")}


def test_a_changed_capacity_is_found(busy: Ledger) -> None:
    with broken(busy) as connection:
        row = tables.balance.c.label_id == label_id(connection, "node=h1")
        changed = {"total": {"memory": 101}, "protected": {}, "closed": "draining"}
        connection.execute(update(tables.balance).where(row).values(**changed))

    assert found(busy) == {(Check.EVENTS, "total"), (Check.EVENTS, "protected"), (Check.EVENTS, "closed")}


def test_a_node_whose_registration_and_total_disagree_is_found(busy: Ledger) -> None:
    with broken(busy) as connection:
        connection.execute(update(tables.node).where(tables.node.c.instance == "h2").values(removed=True))

    assert [(each.check, each.subject) for each in audit(busy.readers).differences] == [(Check.NODES, "h2")]


def test_a_lost_and_an_invented_waiter_are_found(busy: Ledger) -> None:
    with broken(busy) as connection:
        waiter = (
            connection.execute(select(tables.waiter).order_by(tables.waiter.c.priority)).mappings().first()
        )
        assert waiter is not None
        same = tables.waiter.c.application_id == waiter["application_id"]
        connection.execute(delete(tables.waiter).where(same))
        stranger = {**waiter, "application_id": one_in(connection, State.USED), "priority": 9}
        connection.execute(insert(tables.waiter).values(stranger))

    differences = audit(busy.readers).differences

    assert {(each.field, each.expected is None, each.found is None) for each in differences} == {
        ("waiter", False, True),
        ("waiter", True, False),
        ("first waiter", False, False),
    }
    assert {each.check for each in differences} == {Check.WAITERS}


def test_a_label_that_forgot_its_first_waiter_is_found(busy: Ledger) -> None:
    with broken(busy) as connection:
        connection.execute(update(tables.balance).values(first_priority=None, first_seq=None))

    assert found(busy) == {(Check.WAITERS, "first waiter")}


def test_a_finished_application_that_still_holds_something_is_found(busy: Ledger) -> None:
    with broken(busy) as connection:
        one = one_in(connection, State.LOCKED)
        connection.execute(
            update(tables.application).where(tables.application.c.id == one).values(state=State.RECLAIMED)
        )

    differences = audit(busy.readers).differences

    assert (Check.FINAL, "finished_at", one) in {
        (each.check, each.field, each.subject) for each in differences
    }
    assert Check.BALANCE in {each.check for each in differences}


def test_a_finished_application_with_a_deadline_is_found(busy: Ledger) -> None:
    with broken(busy) as connection:
        released = tables.application.c.state == State.RELEASED
        connection.execute(update(tables.application).where(released).values(deadline=1))

    assert found(busy) == {(Check.FINAL, "deadline")}


def test_an_engine_without_its_application_is_found(busy: Ledger) -> None:
    with broken(busy) as connection:
        held_by_engine = tables.application.c.engine == "e1"
        connection.execute(update(tables.application).where(held_by_engine).values(engine="e2"))

    assert found(busy) == {(Check.ENGINES, "application"), (Check.ENGINES, "engine")}


def test_a_wrong_tag_table_is_found(busy: Ledger) -> None:
    if busy.readers.dialect.name != "sqlite":
        pytest.skip("PostgreSQL keeps its tag index itself")
    with broken(busy) as connection:
        connection.execute(
            update(tables.application_tag)
            .where(tables.application_tag.c.value == "carol")
            .values(value="eve")
        )

    differences = audit(busy.readers).differences

    assert {(each.check, each.field, each.expected, each.found) for each in differences} == {
        (Check.TAG_INDEX, "user", "carol", None),
        (Check.TAG_INDEX, "user", None, "eve"),
    }


def test_more_than_a_total_is_told_and_is_no_inconsistency(ledger: Ledger) -> None:
    limit(ledger, {"user": "alice"}, {"memory": 10}, protected={"memory": 1})
    running = apply(ledger, ALICE, {"memory": 5})
    done(ledger, op.RegisterEngine("e1", running.id, resource={"memory": 14}))

    result = audit(ledger.readers)

    assert result.consistent
    assert result.over_limit == [OverLimit({"user": "alice"}, {"memory": 5})]


def test_an_application_that_comes_back_after_the_rules_changed_is_charged_by_the_new_ones(
    ledger: Ledger,
) -> None:
    node(ledger, "h1", {"memory": 10})
    lost = apply(ledger, {**ALICE, "node": "h1", "job": "1"}, {"memory": 5})
    done(ledger, op.LoseNode("h1", "gone"), op.Lose(lost.id, "gone"))
    limit(ledger, {"job": "*"}, {"memory": 100})

    node(ledger, "h1", {"memory": 10}, applications=(lost.id,))

    assert application(ledger, op.Use(lost.id)).state is State.USED
    assert audit(ledger.readers).differences == []


def test_the_audit_sees_one_moment_while_the_work_goes_on(ledger: Ledger) -> None:
    going_on = [ledger.enqueue([asking(ALICE, {"memory": 1})]) for _ in range(3_000)]

    audits = [audit(ledger.readers) for _ in range(4)]
    for future in going_on:
        future.result()
    audits.append(audit(ledger.readers))

    assert [found.differences for found in audits] == [[]] * 5
    assert audits[-1].applications_checked == 3_000
