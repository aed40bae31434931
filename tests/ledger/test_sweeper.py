"""The sweeper: what is past its deadline ends, once, and not because the service itself was away."""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from sqlalchemy import func, select, text, update

from rm_service.domain import operations as op
from rm_service.domain.application import SECOND, State
from rm_service.domain.outcomes import Done
from rm_service.ledger import tables
from rm_service.ledger.database import reader_engine
from rm_service.ledger.due import due_statement
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.sweeper import Sweeper, SweepSettings
from tests.client_words import RM, creating_node, partition_of
from tests.postgres import DatabaseServer

PATIENCE = 20.0  # seconds that a test waits for what must happen
SETTINGS = SweepSettings(sweep_seconds=5, checkpoint_seconds=3600)
GIB = 2**30


@pytest.fixture
def postgres(postgres_server: DatabaseServer, postgres_template: str) -> Iterator[str]:
    """Address of a migrated PostgreSQL database with the default rules."""
    with postgres_server.database(template=postgres_template) as url:
        yield url


@contextmanager
def opened(url: str) -> Iterator[Ledger]:
    ledger = Ledger(LedgerSettings(url))
    ledger.open()
    try:
        yield ledger
    finally:
        ledger.close()


@pytest.fixture
def sweeper(ledger: Ledger) -> Sweeper:
    """One that has swept before, so that what follows is no first time."""
    sweeper = Sweeper(ledger, SETTINGS)
    sweeper.sweep()
    return sweeper


def lock(ledger: Ledger, count: int = 1, *, wait_seconds: int = 0, **tags: str) -> list[str]:
    """Ids of applications that were granted (or wait)."""
    applies = [
        op.Apply(
            str(uuid.uuid4()),
            {"user": "alice", **tags},
            {"memory": GIB},
            lock_seconds=60,
            wait_seconds=wait_seconds,
        )
        for _ in range(count)
    ]
    outcomes = ledger.submit(applies)
    assert all(isinstance(outcome, Done) for outcome in outcomes), outcomes
    return [apply.id for apply in applies]


def node(ledger: Ledger, name: str, *, memory: int = 10_000 * GIB) -> None:
    ledger.submit([op.RegisterNode(name, "LoadInstance", {"memory": memory})])


def pass_time(ledger: Ledger, seconds: int, *, unswept: bool = False) -> None:
    """As if so much time had passed: everything noted is so much older. `unswept`: also the last sweep."""
    past = seconds * SECOND
    with ledger.readers.begin() as connection:
        for table in (tables.application, tables.node, tables.engine):
            older = update(table).where(table.c.deadline.is_not(None))
            connection.execute(older.values(deadline=table.c.deadline - past))
        connection.execute(update(tables.ledger_head).values(time=tables.ledger_head.c.time - past))
        if unswept:
            sweep = tables.sweep
            connection.execute(update(sweep).values(succeeded_at=sweep.c.succeeded_at - past))


def states(ledger: Ledger) -> dict[str, tuple[str, str | None]]:
    columns = (tables.application.c.id, tables.application.c.state, tables.application.c.reason)
    with ledger.readers.connect() as connection:
        return {id_: (state, reason) for id_, state, reason in connection.execute(select(*columns))}


def events(ledger: Ledger, kind: str) -> list[str]:
    """Subjects of the events of a kind."""
    table = tables.event
    with ledger.readers.connect() as connection:
        return list(connection.execute(select(table.c.subject).where(table.c.kind == kind)).scalars())


def held(ledger: Ledger) -> int:
    """How many applications the balances count."""
    with ledger.readers.connect() as connection:
        count: int = connection.execute(select(func.sum(tables.balance.c.applications))).scalar_one()
        return count


class TestLeases:
    def test_a_lock_not_used_within_its_lease_is_given_back(self, ledger: Ledger, sweeper: Sweeper) -> None:
        (id_,) = lock(ledger)
        assert sweeper.sweep().applications == 0
        pass_time(ledger, 61)
        report = sweeper.sweep()
        assert report.applications == 1
        assert states(ledger)[id_][0] == State.RECLAIMED
        assert held(ledger) == 0

    def test_a_renewed_lock_lives_on(self, ledger: Ledger, sweeper: Sweeper) -> None:
        (id_,) = lock(ledger)
        pass_time(ledger, 40)
        ledger.submit([op.Renew(id_)])
        pass_time(ledger, 40)
        assert sweeper.sweep().applications == 0
        assert states(ledger)[id_][0] == State.LOCKED

    def test_a_used_application_has_no_lease(self, ledger: Ledger, sweeper: Sweeper) -> None:
        (id_,) = lock(ledger)
        ledger.submit([op.Use(id_)])
        pass_time(ledger, 10_000)
        assert sweeper.sweep().applications == 0
        assert states(ledger)[id_][0] == State.USED

    def test_more_than_one_look_names_ends_in_one_sweep(self, ledger: Ledger, sweeper: Sweeper) -> None:
        lock(ledger, 1_100)
        pass_time(ledger, 61)
        assert sweeper.sweep().applications == 1_100
        assert held(ledger) == 0

    def test_a_wait_that_was_in_vain_expires(self, ledger: Ledger, sweeper: Sweeper) -> None:
        node(ledger, "h1", memory=GIB)
        lock(ledger, node="h1")
        (waiting,) = lock(ledger, wait_seconds=30, node="h1")
        pass_time(ledger, 31)
        assert sweeper.sweep().applications == 1
        assert states(ledger)[waiting] == (State.EXPIRED, "no room within the wait")

    def test_what_is_given_back_goes_to_who_waits(self, ledger: Ledger, sweeper: Sweeper) -> None:
        node(ledger, "h1", memory=GIB)
        (first,) = lock(ledger, node="h1")
        (waiting,) = lock(ledger, wait_seconds=600, node="h1")
        pass_time(ledger, 61)
        sweeper.sweep()
        # The waiter is woken in the turn after that of the reclaim: one more operation stands behind it.
        ledger.submit([op.Renew(waiting)])
        assert states(ledger)[first][0] == State.RECLAIMED
        assert states(ledger)[waiting][0] == State.LOCKED


class TestSilence:
    def test_a_silent_node_is_lost_and_what_it_held_is_given_back(
        self, ledger: Ledger, sweeper: Sweeper
    ) -> None:
        node(ledger, "h1")
        ids = lock(ledger, 1_100, node="h1")
        ledger.submit([op.Use(id_) for id_ in ids[:700]])
        ledger.submit([op.HeartbeatNode("h1", deadline_seconds=20)])
        pass_time(ledger, 21)
        report = sweeper.sweep()
        assert (report.nodes, report.stranded) == (1, 1_100)
        assert set(states(ledger).values()) == {(State.LOST, "node h1: no heartbeat before its deadline")}
        assert held(ledger) == 0

    def test_of_two_nodes_with_one_name_the_silent_one_is_lost(
        self, ledger: Ledger, sweeper: Sweeper
    ) -> None:
        partition = partition_of(RM)
        node(ledger, "n1")
        ledger.submit([creating_node("n1"), op.HeartbeatNode("n1", 20, partition)])
        pass_time(ledger, 21)
        assert sweeper.sweep().nodes == 1
        rows = select(tables.node.c.partition, tables.balance.c.closed).join(
            tables.balance, tables.balance.c.label_id == tables.node.c.label_id
        )
        with ledger.readers.connect() as connection:
            assert {row.partition: row.closed for row in connection.execute(rows)} == {
                "": None,
                partition: "lost",
            }

    def test_a_node_that_never_sent_a_heartbeat_is_not_missed(self, ledger: Ledger, sweeper: Sweeper) -> None:
        node(ledger, "h1")
        lock(ledger, node="h1")
        pass_time(ledger, 50)
        assert sweeper.sweep().nodes == 0

    def test_a_loss_that_was_interrupted_is_brought_to_its_end(
        self, ledger: Ledger, sweeper: Sweeper
    ) -> None:
        node(ledger, "h1")
        lock(ledger, 3, node="h1")
        ledger.submit([op.LoseNode("h1", "removed")])
        assert sweeper.sweep().stranded == 3
        assert set(states(ledger).values()) == {(State.LOST, "node h1: removed")}

    def test_what_runs_on_a_node_that_came_back_meanwhile_is_not_lost(self, ledger: Ledger) -> None:
        node(ledger, "h1")
        (id_,) = lock(ledger, node="h1")
        ledger.submit([op.LoseNode("h1", "silent")])
        node(ledger, "h1")
        (outcome,) = ledger.submit([op.Lose(id_, "node h1: silent", only_if_node_lost=True)])
        assert isinstance(outcome, Done)
        assert outcome.repeated
        assert states(ledger)[id_][0] == State.LOCKED

    def test_a_silent_engine_loses_its_application(self, ledger: Ledger, sweeper: Sweeper) -> None:
        (id_,) = lock(ledger)
        ledger.submit([op.RegisterEngine("e1", id_), op.HeartbeatEngine("e1", deadline_seconds=20)])
        pass_time(ledger, 21)
        assert sweeper.sweep().engines == 1
        assert states(ledger)[id_] == (State.LOST, "engine e1: no heartbeat before its deadline")
        assert held(ledger) == 0


def test_a_mark_whose_maker_died_is_looked_at(ledger: Ledger, sweeper: Sweeper) -> None:
    node(ledger, "h1", memory=GIB)
    lock(ledger, node="h1")
    (waiting,) = lock(ledger, wait_seconds=600, node="h1")
    balance = tables.balance
    with ledger.readers.begin() as connection:  # committed by a replica that died before it looked
        marked = update(balance).where(balance.c.first_priority.is_not(None))
        connection.execute(marked.values(wake=True, total={"memory": 2 * GIB}))
    assert sweeper.sweep().woken == 1
    assert states(ledger)[waiting][0] == State.LOCKED


class TestAbsence:
    def test_the_first_sweep_ever_moves_nothing(self, ledger: Ledger) -> None:
        (id_,) = lock(ledger)
        pass_time(ledger, 61)
        report = Sweeper(ledger, SETTINGS).sweep()
        assert report.shifted == 0
        assert states(ledger)[id_][0] == State.RECLAIMED

    def test_ten_minutes_without_a_database_reclaim_nothing_that_could_not_be_renewed_meanwhile(
        self, ledger: Ledger, sweeper: Sweeper
    ) -> None:
        node(ledger, "h1")
        ledger.submit([op.HeartbeatNode("h1", deadline_seconds=30)])
        locked, used = lock(ledger, 2, node="h1")
        ledger.submit([op.RegisterEngine("e1", used), op.HeartbeatEngine("e1", deadline_seconds=30)])
        sweeper.sweep()
        pass_time(ledger, 600, unswept=True)

        report = sweeper.sweep()
        assert 600 <= report.shifted / SECOND < 660
        assert (report.applications, report.nodes, report.engines, report.stranded) == (0, 0, 0, 0)
        renewed, alive, running = ledger.submit(
            [op.Renew(locked), op.HeartbeatNode("h1", 30), op.HeartbeatEngine("e1", 30)]
        )
        assert isinstance(renewed, Done)
        assert isinstance(alive, Done)
        assert isinstance(running, Done)

    def test_after_an_absence_everybody_has_the_time_left_that_they_had_before(
        self, ledger: Ledger, sweeper: Sweeper
    ) -> None:
        (id_,) = lock(ledger)
        sweeper.sweep()
        pass_time(ledger, 600, unswept=True)
        sweeper.sweep()
        pass_time(ledger, 61)
        assert sweeper.sweep().applications == 1
        assert states(ledger)[id_][0] == State.RECLAIMED

    def test_a_wait_is_not_prolonged(self, ledger: Ledger, sweeper: Sweeper) -> None:
        node(ledger, "h1", memory=GIB)
        lock(ledger, node="h1")
        (waiting,) = lock(ledger, wait_seconds=30, node="h1")
        sweeper.sweep()
        pass_time(ledger, 600, unswept=True)
        assert sweeper.sweep().applications == 1
        assert states(ledger)[waiting][0] == State.EXPIRED

    def test_one_missed_look_is_no_absence(self, ledger: Ledger, sweeper: Sweeper) -> None:
        pass_time(ledger, 8, unswept=True)
        assert sweeper.sweep().shifted == 0

    def test_an_absence_that_another_replica_has_seen_moves_nothing_again(
        self, ledger: Ledger, sweeper: Sweeper
    ) -> None:
        pass_time(ledger, 600, unswept=True)
        with ledger.readers.connect() as connection:
            seen = connection.execute(select(tables.sweep.c.succeeded_at)).scalar_one()
        first, second = (ledger.submit_whole(op.ShiftDeadlines(seen)) for _ in range(2))
        assert isinstance(first, Done)
        assert not first.repeated
        assert isinstance(second, Done)
        assert second.repeated
        assert events(ledger, "deadlines.shifted") == ["deadlines"]


class TestHousekeeping:
    def test_a_checkpoint_is_written_when_it_is_time(self, ledger: Ledger, sweeper: Sweeper) -> None:
        assert not sweeper.sweep().checkpoint
        with ledger.readers.begin() as connection:
            before = tables.sweep.c.checkpoint_at - 3600 * SECOND
            connection.execute(update(tables.sweep).values(checkpoint_at=before))
        assert sweeper.sweep().checkpoint
        assert not sweeper.sweep().checkpoint

    def test_partitions_that_are_missing_are_made(self, postgres: str) -> None:
        with opened(postgres) as ledger:
            names = "SELECT relid::text FROM pg_partition_tree('event') WHERE isleaf ORDER BY 1"
            with ledger.readers.begin() as connection:
                before = list(connection.execute(text(names)).scalars())
                connection.execute(text(f"DROP TABLE {before[2]}"))
            Sweeper(ledger, SETTINGS).sweep()
            with ledger.readers.connect() as connection:
                assert list(connection.execute(text(names)).scalars()) == before


class TestReplicas:
    def test_two_replicas_sweeping_together_reclaim_each_lock_once(self, postgres: str) -> None:
        with ExitStack() as stack:
            ledgers = [stack.enter_context(opened(postgres)) for _ in range(2)]
            ids = lock(ledgers[0], 1_500)
            sweepers = [Sweeper(ledger, SETTINGS) for ledger in ledgers]
            pass_time(ledgers[0], 61)
            barrier, reports = threading.Barrier(2), []

            def sweep(sweeper: Sweeper) -> None:
                barrier.wait(PATIENCE)
                reports.append(sweeper.sweep())

            threads = [threading.Thread(target=sweep, args=(sweeper,)) for sweeper in sweepers]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
            assert Counter(events(ledgers[0], "application.reclaimed")) == Counter(ids)
            assert sum(report.applications for report in reports) == 1_500

    def test_two_replicas_that_see_one_absence_move_the_deadlines_once(self, postgres: str) -> None:
        with ExitStack() as stack:
            ledgers = [stack.enter_context(opened(postgres)) for _ in range(2)]
            sweepers = [Sweeper(ledger, SETTINGS) for ledger in ledgers]
            sweepers[0].sweep()
            pass_time(ledgers[0], 600, unswept=True)
            threads = [threading.Thread(target=sweeper.sweep) for sweeper in sweepers]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
            assert len(events(ledgers[0], "deadlines.shifted")) == 1


class TestSchedule:
    def test_it_looks_at_once_and_again_at_the_interval(self, ledger: Ledger) -> None:
        looks = threading.Semaphore(0)
        sweeper = Sweeper(ledger, SweepSettings(sweep_seconds=0.05), on_sweep=lambda _: looks.release())
        assert sweeper.last_success() is None
        before = time.monotonic()
        sweeper.start()
        try:
            assert all(looks.acquire(timeout=PATIENCE) for _ in range(3))
        finally:
            sweeper.stop()
        success = sweeper.last_success()
        assert success is not None
        assert before <= success <= time.monotonic()

    def test_a_database_that_is_away_puts_a_sweep_off_and_ends_nothing_else(
        self, postgres_server: DatabaseServer, postgres: str
    ) -> None:
        with opened(postgres) as ledger:
            failures, sweeps = threading.Semaphore(0), threading.Semaphore(0)
            sweeper = Sweeper(
                ledger,
                SweepSettings(sweep_seconds=0.05),
                on_sweep=lambda _: sweeps.release(),
                on_failure=lambda _: failures.release(),
            )
            sweeper.start()
            try:
                assert sweeps.acquire(timeout=PATIENCE)
                shut(postgres_server, postgres, away=True)
                assert all(failures.acquire(timeout=PATIENCE) for _ in range(2))
                shut(postgres_server, postgres, away=False)
                while sweeps.acquire(blocking=False):
                    pass
                assert sweeps.acquire(timeout=PATIENCE)
            finally:
                sweeper.stop()


def shut(server: DatabaseServer, url: str, *, away: bool) -> None:
    """Let nobody into the database, and put those out who are in it; or let them in again."""
    name = url.rsplit("/", 1)[1]
    engine = reader_engine(server.url())
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS {not away}'))
        if away:
            out = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"
            connection.execute(text(out), {"name": name})
    engine.dispose()


class TestCost:
    def test_a_sweep_that_finds_nothing_reads_only_small_partial_indexes(self, postgres: str) -> None:
        with opened(postgres) as ledger:
            node(ledger, "h1")
            for _ in range(8):
                lock(ledger, 500, node="h1")
            with ledger.readers.connect() as connection:
                connection.execute(text("SET LOCAL enable_seqscan = off"))
                explain = text(f"EXPLAIN (ANALYZE, FORMAT JSON) {due_statement('postgresql')}")
                (plan,) = connection.execute(explain).scalar_one()
            read = list(indexes(plan["Plan"]))
            assert {name for name, _ in read} <= {
                "ix_application_deadline",
                "ix_node_deadline",
                "ix_engine_deadline",
                "ix_balance_wake",
                "ix_balance_lost",
                "ix_application_live_tags",
                "ix_node_instance",
                "pk_node",
                "pk_sweep",
                "ix_si_client_resync_until",
                "ix_si_client_state_seen_at",
                "pk_si_client",  # a row for each resource manager: there are few
            }
            assert sum(rows for name, rows in read if name != "pk_sweep") == 0


def indexes(plan: dict[str, object]) -> Iterator[tuple[str, int]]:
    """Every index that the plan reads, with the number of rows found; a table read whole is named too."""
    if "Index Name" in plan:
        yield str(plan["Index Name"]), int(str(plan["Actual Rows"])) * int(str(plan["Actual Loops"]))
    elif plan["Node Type"] == "Seq Scan":
        yield f"all of {plan['Relation Name']}", 0
    for inner in plan.get("Plans", ()):  # type: ignore[attr-defined]
        yield from indexes(inner)
