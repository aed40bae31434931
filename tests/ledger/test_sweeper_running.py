"""The sweeper at its interval: beside other replicas, without a database, and at little cost."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

from sqlalchemy import text, update

from rm_service.domain.application import SECOND
from rm_service.ledger import tables
from rm_service.ledger.database import reader_engine
from rm_service.ledger.due import due_statement
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.sweeper import Sweeper, SweepSettings
from tests.ledger.sweeping import PATIENCE, SETTINGS, events, lock, node, opened, pass_time
from tests.postgres import DatabaseServer


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
                "ix_balance_waited_for",
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
