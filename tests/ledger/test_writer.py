"""The writer under load and under faults: what was answered is there, once, and nobody harms another."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
import pytest
from sqlalchemy import Connection, select, text
from sqlalchemy.exc import DBAPIError

from rm_service.domain import operations as op
from rm_service.domain.application import Application, State
from rm_service.domain.events import Event
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.domain.tags import TagError
from rm_service.ledger import commit_fate, tables
from rm_service.ledger.database import WRITER_SETTINGS, writer_engine
from rm_service.ledger.errors import LedgerClosedError, LedgerUnavailableError, OutcomeUnknownError
from rm_service.ledger.ids import new_id
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.pipeline import Pipeline
from rm_service.ledger.statements import POSTGRES
from tests.ledger.conftest import make_template
from tests.postgres import PostgresServer

on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)

HOT = {"user": "alice", "node": "hot"}


def asking(memory: int = 1, tags: dict[str, str] | None = None, **more: Any) -> op.Apply:
    return op.Apply(id=new_id(), tags=tags or HOT, resource={"memory": memory}, **more)


def applied(outcome: Outcome) -> Application:
    assert isinstance(outcome, Done), outcome
    assert outcome.application is not None
    return outcome.application


def node(instance: str, memory: int) -> op.RegisterNode:
    return op.RegisterNode(instance, "LoadInstance", {"memory": memory})


def balance_of(ledger: Ledger, key: str) -> dict[str, dict[str, int]]:
    with ledger.readers.connect() as connection:
        row = connection.execute(
            select(tables.balance)
            .join(tables.label, tables.label.c.id == tables.balance.c.label_id)
            .where(tables.label.c.key == key)
        ).one()
    return {"locked": row.locked, "used": row.used}


@contextmanager
def turn_held(url: str) -> Iterator[Connection]:
    """Hold the turn, so that whatever is handed in meanwhile waits and then stands in one batch."""
    engine = writer_engine(url)
    connection = engine.connect()
    connection.execute(text("UPDATE ledger_head SET one = 1"))
    try:
        yield connection
    finally:
        with suppress(DBAPIError):  # the server may have ended it
            connection.rollback()
        connection.invalidate()
        connection.close()
        engine.dispose()


def in_one_batch(ledger: Ledger, url: str, operations: list[op.DecidedOperation]) -> list[Any]:
    """The outcome (or error) of each operation, all decided in one batch."""
    with turn_held(url):
        futures = [ledger.enqueue([node("first", 1)])]
        while ledger.waiting():
            pass  # the writer has taken the first one and stands before the turn
        futures += [ledger.enqueue([operation]) for operation in operations]
    return [future.exception() or future.result()[0] for future in futures[1:]]


def test_threads_on_one_label_never_exceed_it(ledger: Ledger) -> None:
    ledger.submit([node("hot", 50)])
    with ThreadPoolExecutor(32) as pool:
        outcomes = list(pool.map(lambda _: ledger.submit([asking()])[0], range(200)))
    granted = [outcome for outcome in outcomes if isinstance(outcome, Done)]
    assert len(granted) == 50
    assert balance_of(ledger, "node=hot")["locked"] == {"memory": 50}


@on_postgresql
def test_two_ledgers_on_one_database_share_a_limit_exactly(ledger: Ledger, database_url: str) -> None:
    other = Ledger(LedgerSettings(database_url))
    other.open()
    ledger.submit([node("hot", 50)])
    ledger.submit_whole(op.SetLimit({"user": "alice"}, {"memory": 40}))

    def live(number: int) -> str:
        mine = (ledger, other)[number % 2]
        outcome = mine.submit([asking()])[0]
        if isinstance(outcome, Refused):
            return outcome.code
        application = applied(outcome)
        theirs = (other, ledger)[number % 2]
        applied(theirs.submit([op.Use(application.id)])[0])
        if number % 3 == 0:
            applied(mine.submit([op.Release(application.id)])[0])
            return "released"
        return "used"

    with ThreadPoolExecutor(24) as pool:
        ends = list(pool.map(live, range(240)))
    other.close()
    assert set(ends) <= {"used", "released", Code.INSUFFICIENT_RESOURCES}
    assert ends.count("used") <= 40
    assert balance_of(ledger, "user=alice")["used"]["memory"] == ends.count("used")
    assert balance_of(ledger, "node=hot")["locked"]["memory"] == 0


@on_postgresql
def test_a_limit_set_through_one_ledger_holds_at_once_in_the_other(ledger: Ledger, database_url: str) -> None:
    other = Ledger(LedgerSettings(database_url))
    other.open()
    applied(other.submit([asking(tags={"user": "bob"})])[0])
    ledger.submit_whole(op.SetLimit({"user": "bob"}, {"memory": 1}))
    refused = other.submit([asking(tags={"user": "bob"})])[0]
    other.close()
    assert isinstance(refused, Refused)


def test_a_new_key_set_counts_in_what_already_runs(ledger: Ledger) -> None:
    first = applied(ledger.submit([asking(3, tags={"user": "bob", "project": "x"})])[0])
    applied(ledger.submit([op.Use(first.id)])[0])
    applied(ledger.submit([asking(2, tags={"user": "bob", "project": "x"})])[0])
    applied(ledger.submit([asking(7, tags={"user": "bob", "project": "y"})])[0])
    ledger.submit_whole(op.SetLimit({"project": "x"}, {"memory": 6}))
    assert balance_of(ledger, "project=x") == {"locked": {"memory": 2}, "used": {"memory": 3}}
    assert isinstance(ledger.submit([asking(2, tags={"project": "x"})])[0], Refused)
    applied(ledger.submit([op.Release(first.id)])[0])
    applied(ledger.submit([asking(4, tags={"project": "x"})])[0])
    assert balance_of(ledger, "project=x") == {"locked": {"memory": 6}, "used": {"memory": 0}}


def test_a_fault_in_one_operation_leaves_its_neighbours_alone(ledger: Ledger, database_url: str) -> None:
    ledger.submit([node("hot", 10)])
    faulty = asking(tags={"queue": "root..a"})
    good, bad, also_good = in_one_batch(ledger, database_url, [asking(4), faulty, asking(6)])
    assert applied(good).state is State.LOCKED
    assert isinstance(bad, TagError)
    assert applied(also_good).state is State.LOCKED
    assert balance_of(ledger, "node=hot")["locked"] == {"memory": 10}


@on_postgresql
def test_data_that_the_database_refuses_harms_only_its_own_operation(
    ledger: Ledger, database_url: str
) -> None:
    ledger.submit([node("hot", 10)])
    faulty = op.Apply(id="no uuid", tags=HOT, resource={"memory": 1})
    good, bad, also_good = in_one_batch(ledger, database_url, [asking(4), faulty, asking(6)])
    assert applied(good).state is applied(also_good).state is State.LOCKED
    assert isinstance(bad, psycopg.DataError)
    assert balance_of(ledger, "node=hot")["locked"] == {"memory": 10}


def test_operations_of_one_batch_see_each_other(ledger: Ledger, database_url: str) -> None:
    ledger.submit([node("hot", 10)])
    apply = asking(6)
    outcomes = in_one_batch(
        ledger,
        database_url,
        [apply, op.Use(apply.id, {"memory": 2}), asking(8), op.Release(apply.id), asking(2)],
    )
    states = [applied(outcome).state for outcome in outcomes]
    assert states == [State.LOCKED, State.USED, State.LOCKED, State.RELEASED, State.LOCKED]
    assert balance_of(ledger, "node=hot") == {"locked": {"memory": 10}, "used": {"memory": 0}}


def test_an_explanation_changes_nothing(ledger: Ledger) -> None:
    ledger.submit([node("hot", 10)])
    with ledger.readers.connect() as connection:
        before = connection.execute(select(tables.ledger_head)).one()
    assert applied(ledger.explain(asking(10, tags={**HOT, "user": "nobody yet"}))).state is State.LOCKED
    with ledger.readers.connect() as connection:
        assert connection.execute(select(tables.ledger_head)).one() == before
        assert connection.execute(select(tables.application)).all() == []
    applied(ledger.submit([asking(10, tags={**HOT, "user": "nobody yet"})])[0])


def test_nobody_is_told_of_what_would_be_granted(ledger: Ledger) -> None:
    ledger.submit([node("hot", 10)])
    told: list[Event] = []
    ledger.on_commit(lambda commit: told.extend(commit.events))
    applied(ledger.explain(asking(10)))
    (done,) = ledger.submit([asking(10)])
    assert [event.subject for event in told] == [applied(done).id]


def test_event_numbers_have_no_gaps_and_times_never_go_back(ledger: Ledger) -> None:
    ledger.submit([node("hot", 1000)])
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: ledger.submit([asking()]), range(60)))
    with ledger.readers.connect() as connection:
        rows = connection.execute(
            select(tables.event.c.seq, tables.event.c.time).order_by(tables.event.c.seq)
        ).all()
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    assert [row.time for row in rows] == sorted(row.time for row in rows)


def test_closing_finishes_what_was_handed_in(database_url: str) -> None:
    ledger = Ledger(LedgerSettings(database_url))
    ledger.open()
    futures = [ledger.enqueue([asking(tags={"user": "u"})]) for _ in range(100)]
    ledger.close()
    assert all(applied(future.result()[0]).state is State.LOCKED for future in futures)
    with pytest.raises(LedgerClosedError):
        ledger.submit([asking()])


@on_postgresql
def test_the_writer_goes_on_when_its_connection_was_cut(ledger: Ledger, database_url: str) -> None:
    ledger.submit([node("hot", 10)])
    with turn_held(database_url) as holder:
        future = ledger.enqueue([asking()])
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        while not holder.execute(text(cut)).all():
            pass  # until the writer stands before the turn
    assert applied(future.result()[0]).state is State.LOCKED
    assert balance_of(ledger, "node=hot")["locked"] == {"memory": 1}


def test_while_the_database_is_away_nothing_changes_and_it_goes_on_without_a_restart(
    default_rules: dict[str, Any],
) -> None:
    with PostgresServer(durable=True) as server:
        url = server.create_database()
        ledger = _migrated(url, default_rules, Ledger)
        ledger.submit([node("hot", 10)])
        server.stop("immediate")
        with pytest.raises(LedgerUnavailableError):
            ledger.submit([asking()])
        server.start()
        applied(ledger.submit([asking()])[0])
        assert balance_of(ledger, "node=hot")["locked"] == {"memory": 1}
        ledger.close()


@on_postgresql
def test_a_replica_that_was_stopped_in_its_turn_loses_it(ledger: Ledger, database_url: str) -> None:
    ledger.submit([node("hot", 10)])
    with turn_held(database_url):
        assert applied(ledger.submit([asking()])[0]).state is State.LOCKED
    assert WRITER_SETTINGS["idle_in_transaction_session_timeout"] == "2s"


@on_postgresql
def test_the_first_who_wait_are_read_in_order_even_before_the_database_knows_how_many_they_are(
    ledger: Ledger, database_url: str
) -> None:
    """A plan that sorts would be kept by the writer's session and read 100,000 rows for each release."""
    engine = writer_engine(database_url)
    with engine.begin() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN {POSTGRES.heads}", (1,)).scalars().all()
    engine.dispose()
    assert any("ix_waiter_rank" in line for line in plan)
    assert not any("Sort" in line for line in plan), plan


@pytest.mark.parametrize("committed", [True, False])
def test_when_the_connection_breaks_in_the_commit_the_grant_is_made_once(
    postgres_url: str, default_rules: dict[str, Any], committed: bool
) -> None:
    ledger = _migrated(postgres_url, default_rules, _BreakingLedger)
    ledger.submit([node("hot", 10)])
    ledger.break_next_commit(committed=committed)
    assert applied(ledger.submit([asking()])[0]).state is State.LOCKED
    assert balance_of(ledger, "node=hot")["locked"] == {"memory": 1}
    ledger.close()


def test_when_nobody_can_tell_what_became_of_a_commit_the_answer_says_so(
    default_rules: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_fate, "ASK_SECONDS", 0.3)
    with PostgresServer(durable=True) as server:
        ledger = _migrated(server.create_database(), default_rules, _BreakingLedger)
        ledger.submit([node("hot", 10)])
        ledger.break_next_commit(committed=True, then=lambda: server.stop("immediate"))
        with pytest.raises(OutcomeUnknownError):
            ledger.submit([asking()])
        server.start()
        assert balance_of(ledger, "node=hot")["locked"] == {"memory": 1}
        ledger.close()


def test_a_grant_that_a_crash_of_the_database_undid_is_not_taken_for_committed(
    default_rules: dict[str, Any],
) -> None:
    """After a crash PostgreSQL gives the numbers of lost transactions to others, who commit them."""
    with PostgresServer(durable=True) as server:
        url = server.create_database()
        ledger = _migrated(url, default_rules, _BreakingLedger)
        ledger.submit([node("hot", 10)])
        other = Ledger(LedgerSettings(url))
        other.open()

        def crash() -> None:
            server.restart("immediate")
            for _ in range(20):
                other.submit([asking(tags={"user": "bob"})])

        ledger.break_next_commit(committed=False, then=crash)
        granted = applied(ledger.submit([asking()])[0])
        assert granted.state is State.LOCKED
        assert balance_of(ledger, "node=hot")["locked"] == {"memory": 1}
        ledger.close()
        other.close()


class _BreakingLedger(Ledger):
    """A ledger whose writer can lose its connection in a commit: after it took place, or just before."""

    def break_next_commit(self, *, committed: bool, then: Callable[[], object] = lambda: None) -> None:
        commit = Pipeline.commit

        def break_once(pipeline: Pipeline) -> None:
            Pipeline.commit = commit  # type: ignore[method-assign]
            if committed:
                commit(pipeline)
            pipeline.wait()
            connection = self._writer._connection
            assert connection is not None
            connection.connection.driver_connection.close()  # type: ignore[union-attr]
            then()
            raise psycopg.OperationalError("the connection was lost")

        Pipeline.commit = break_once  # type: ignore[method-assign, assignment]


L = TypeVar("L", bound=Ledger)


def _migrated(url: str, rules: dict[str, Any], kind: type[L]) -> L:
    make_template(url, rules)
    ledger = kind(LedgerSettings(url))
    ledger.open()
    return ledger


def test_what_was_refused_leaves_no_label_behind(ledger: Ledger) -> None:
    ledger.submit([node("hot", 1)])
    known = label_keys(ledger)
    ledger.submit([asking(2, tags={"user": "nobody", "node": "hot"}), asking(tags={"node": "nowhere"})])
    ledger.submit([op.HeartbeatNode("nowhere", 60), op.DrainNode("nowhere")])
    ledger.explain(asking(tags={"user": "nobody"}))
    assert label_keys(ledger) == known == {"node=hot"}
    applied(ledger.submit([asking(tags={"user": "somebody", "node": "hot"})])[0])
    assert label_keys(ledger) == {"node=hot", "user=somebody"}


def label_keys(ledger: Ledger) -> set[str]:
    with ledger.readers.connect() as connection:
        return set(connection.execute(select(tables.label.c.key)).scalars())
