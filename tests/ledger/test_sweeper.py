"""The sweeper: what is past its deadline ends, once, and not because the service itself was away."""

from dataclasses import replace

import pytest
from sqlalchemy import select, update
from structlog.testing import capture_logs

from rm_service.domain import operations as op
from rm_service.domain.application import SECOND, State
from rm_service.domain.outcomes import Code, Done, Refused
from rm_service.ledger import tables
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.sweeper import Sweeper
from tests.client_words import RM, adding, asking, creating_node, partition_of, releasing
from tests.ledger.asking import GIB
from tests.ledger.sweeping import SETTINGS, events, held, lock, node, pass_time, states


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


class TestRounds:
    """A sweep goes on, round after round, as long as anything comes of it."""

    def test_what_is_due_again_at_once_ends_in_the_same_sweep(self, ledger: Ledger, sweeper: Sweeper) -> None:
        """An application whose time is over fails, and with nothing left to confirm it has failed."""
        brief = replace(adding(), run_for=1)
        ledger.submit([creating_node(), brief, asking("k"), releasing("k"), asking("w", memory=50)])
        with capture_logs() as logs:
            report = sweeper.sweep()
        assert report.applications == 2
        assert states(ledger)[brief.id][0] == State.EXPIRED
        assert logs == []

    def test_what_does_not_end_is_told_with_the_reason_and_left_to_the_next_sweep(
        self, ledger: Ledger, sweeper: Sweeper, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (id_,) = lock(ledger)
        pass_time(ledger, 61)
        refused = Refused(Code.OVERFLOW, "the books are too full")
        with monkeypatch.context() as patched, capture_logs() as logs:
            patched.setattr(Ledger, "submit", lambda _, operations: [refused for _ in operations])
            sweeper.sweep()
        (told,) = logs
        assert (told["event"], told["log_level"]) == ("due_but_not_ended", "error")
        assert (told["reason"], told["applications"]) == ("the books are too full", (id_,))
        assert sweeper.sweep().applications == 1
