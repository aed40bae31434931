"""Registering anew: what a client reports again is kept, what it does not report in time is given up."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import select

from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.clients import Client
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.ledger import resync, tables
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.queries.events import last_seq
from rm_service.ledger.resync import give_up_unreported
from rm_service.ledger.sweeper import Sweeper, SweepSettings
from tests.client_words import (
    OTHER,
    RM,
    adding,
    asking,
    booking,
    creating_node,
    kinds,
    of_kind,
    partition_of,
    releasing,
    removing,
    running,
)
from tests.ledger.telling import (
    check_books,
    pass_time,
    register,
    rows,
    say,
    settle,
    standing,
    states,
    told,
)
from tests.postgres import DatabaseServer


@pytest.fixture
def ledger(ledger: Ledger) -> Iterator[Ledger]:
    """A client has registered, with a node of 10 and an application; the books balance at the end."""
    assert register(ledger) == RM
    say(ledger, creating_node(), adding())
    yield ledger
    check_books(ledger, RM, OTHER)


def row_of(ledger: Ledger, rm_id: str = "rm-1") -> Any:
    with ledger.readers.connect() as connection:
        return connection.execute(select(tables.si_client).where(tables.si_client.c.rm_id == rm_id)).one()


def limits(ledger: Ledger) -> dict[str, tuple[dict[str, int], str | None]]:
    table = tables.limit_rule.c
    with ledger.readers.connect() as connection:
        found = connection.execute(select(table.key, table.total, table.client))
        return {key: (total, client) for key, total, client in found}


class TestRegistration:
    def test_registrations_are_counted_and_replace_what_was_said_before(self, ledger: Ledger) -> None:
        row = row_of(ledger)
        assert (row.registration, row.resync_until, row.version) == (1, None, "")
        again = register(
            ledger, version="2", policy_group="g", build_info={"a": "b"}, extra_config={"c": "d"}
        )
        row = row_of(ledger)
        assert (again.registration, row.version, row.policy_group) == (2, "2", "g")
        assert (row.build_info, row.extra_config) == ({"a": "b"}, {"c": "d"})
        assert row.resync_until == row.registered_at + 60_000_000
        assert register(ledger, "rm-2") == Client("rm-2", 1)

    def test_it_is_an_event_that_is_no_answer(self, ledger: Ledger) -> None:
        before = told(ledger)
        register(ledger)
        assert told(ledger) == before
        with ledger.readers.connect() as connection:
            assert row_of(ledger).registered_seq == last_seq(connection)

    def test_its_limits_replace_those_of_the_earlier_one_but_not_an_operators(self, ledger: Ledger) -> None:
        here = {"partition": partition_of(RM)}
        ledger.submit_whole(op.SetLimit({**here, "queue": "root.mine"}, {"memory": 7}))
        of = [({**here, "queue": queue}, {"memory": 1}) for queue in ("root.mine", "root.old", "root.both")]
        register(ledger, limits=of)
        register(ledger, limits=[({**here, "queue": "root.both"}, {"memory": 2})])
        found = {key.rpartition("=")[2]: value for key, value in limits(ledger).items()}
        assert found == {"root.mine": ({"memory": 7}, None), "root.both": ({"memory": 2}, "rm-1")}

    def test_a_larger_limit_lets_in_who_waits(self, ledger: Ledger) -> None:
        tags = {"partition": partition_of(RM), "queue": "root.a"}
        again = register(ledger, limits=[(tags, {"memory": 2, "apps": 5})])
        say(ledger, asking("k", memory=3, client=again))
        assert states(ledger, "k") == [State.WAITING]
        register(ledger, limits=[(tags, {"memory": 3})])
        settle(ledger)
        assert states(ledger, "k") == [State.USED]

    def test_limits_on_new_sets_of_tags_count_what_runs(self, ledger: Ledger) -> None:
        say(ledger, asking("k", memory=3))
        tags = {"partition": partition_of(RM), "app": "app-1"}
        register(ledger, limits=[(tags, {"memory": 4})])
        say(ledger, asking("l", memory=2))
        assert states(ledger, "l") == [State.WAITING]

    def test_a_limit_that_cannot_be_refuses_the_registration_whole(self, ledger: Ledger) -> None:
        bad = op.RegisterClient(id="rm-1", version="9", limits=[({}, {"memory": 1})])
        outcome = ledger.submit_whole(bad)
        assert isinstance(outcome, Refused)
        assert outcome.code is Code.INVALID_LIMIT
        assert (row_of(ledger).registration, row_of(ledger).version) == (1, "")
        assert limits(ledger) == {}


class TestGivingUp:
    def test_what_was_not_reported_again_is_given_up_members_first_and_told(self, ledger: Ledger) -> None:
        kept, gone = asking("kept"), asking("gone")
        say(ledger, kept, gone, asking("w", memory=50), adding("app-2"), asking("k", "app-2"))
        again = register(ledger)
        say(
            ledger,
            creating_node(client=again),
            adding(client=again),
            booking("kept", "n1", id=kept.ids[0], client=again),
        )
        before = len(told(ledger))
        assert give_up_unreported(ledger, again) == 4
        after = told(ledger)[before:]
        assert sorted((answer["kind"], answer["key"]) for answer in after if "key" in answer) == [
            ("released", "gone"),
            ("released", "k"),
            ("released_ask", "w"),
        ]
        assert list(running(told(ledger))) == list(kept.ids)
        assert row_of(ledger).resync_until is None
        assert standing(ledger)["holding"] == 1

    def test_a_node_that_was_not_reported_goes_with_what_runs_there(self, ledger: Ledger) -> None:
        ask = asking("k")
        say(ledger, ask)
        again = register(ledger)
        say(ledger, adding(client=again), booking("k", "n1", id=ask.ids[0], client=again))
        assert give_up_unreported(ledger, again) == 1
        assert of_kind(told(ledger), "released")[-1]["message"] == "Node n1 Removed"
        assert running(told(ledger)) == {}
        say(ledger, creating_node(client=again))
        assert kinds(told(ledger))[-1] == "accepted_node"

    def test_nothing_is_given_up_twice_or_of_another_client(self, ledger: Ledger) -> None:
        register(ledger, "rm-2")
        say(ledger, creating_node(client=OTHER), adding(client=OTHER), asking("k", client=OTHER))
        again = register(ledger)
        assert give_up_unreported(ledger, again) == 2
        with ledger.readers.connect() as connection:
            seq = last_seq(connection)
        assert give_up_unreported(ledger, again) == 0
        with ledger.readers.connect() as connection:
            assert last_seq(connection) == seq
        assert states(ledger, "k", OTHER) == [State.USED]

    def test_more_than_one_chunk_is_given_up(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(resync, "CHUNK", 3)
        say(ledger, *[creating_node(f"m{number}") for number in range(4)], asking("k", count=8))
        again = register(ledger)
        assert give_up_unreported(ledger, again) >= 6
        assert rows(ledger) == []

    def test_a_registration_that_is_old_by_now_gives_up_nothing_of_the_new(self, ledger: Ledger) -> None:
        second, third = register(ledger), register(ledger)
        say(ledger, creating_node(client=third), adding(client=third), asking("k", client=third))
        assert give_up_unreported(ledger, second) == 0
        assert row_of(ledger).resync_until is not None, "the third is not settled yet"
        assert give_up_unreported(ledger, third) == 0
        assert row_of(ledger).resync_until is None

    def test_what_is_reported_while_it_is_being_given_up_saves_nothing_else(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Between the look and the judgement the node is reported: the look after it finds the rest."""
        say(ledger, asking("k"))
        again = register(ledger)
        submit = Ledger.submit
        calls: list[object] = []

        def late(self: Ledger, operations: Sequence[op.DecidedOperation], **more: Any) -> list[Outcome]:
            if not calls:
                calls.append(operations)
                submit(self, [creating_node(client=again)])
            return submit(self, operations, **more)

        monkeypatch.setattr(Ledger, "submit", late)
        give_up_unreported(ledger, again)
        monkeypatch.undo()
        assert calls
        assert rows(ledger) == []

    def test_what_is_given_up_makes_room(self, ledger: Ledger) -> None:
        say(ledger, asking("gone", memory=10))
        again = register(ledger)
        say(ledger, creating_node(client=again), asking("w", memory=10, client=again))
        assert states(ledger, "w") == [State.WAITING]
        give_up_unreported(ledger, again)
        settle(ledger)
        assert states(ledger, "w") == [State.USED]

    def test_what_ends_meanwhile_is_not_told_again(self, ledger: Ledger) -> None:
        say(ledger, asking("k"))
        again = register(ledger)
        say(ledger, releasing("k", client=again), removing(client=again))
        before = told(ledger)
        give_up_unreported(ledger, again)
        assert told(ledger) == before


class TestSweeper:
    @pytest.fixture
    def sweeper(self, ledger: Ledger) -> Sweeper:
        sweeper = Sweeper(ledger, SweepSettings(sweep_seconds=3_600))
        sweeper.sweep()
        return sweeper

    def test_it_waits_for_the_grace_time(self, ledger: Ledger, sweeper: Sweeper) -> None:
        say(ledger, asking("k"))
        register(ledger, resync_seconds=60)
        pass_time(ledger, 50)
        assert sweeper.sweep().unreported == 0
        pass_time(ledger, 11)
        assert sweeper.sweep().unreported == 2
        assert rows(ledger) == []
        assert sweeper.sweep().unreported == 0

    def test_a_first_registration_has_nothing_to_report_again(self, ledger: Ledger, sweeper: Sweeper) -> None:
        pass_time(ledger, 10_000)
        assert sweeper.sweep().unreported == 0
        assert len(rows(ledger)) == 1

    def test_the_grace_begins_anew_with_each_registration(self, ledger: Ledger, sweeper: Sweeper) -> None:
        register(ledger)
        pass_time(ledger, 59)
        register(ledger)
        pass_time(ledger, 59)
        assert sweeper.sweep().unreported == 0

    def test_an_absence_of_the_service_is_no_time_of_the_client(
        self, ledger: Ledger, sweeper: Sweeper
    ) -> None:
        register(ledger)
        with ledger.readers.connect() as connection:
            until = row_of(ledger).resync_until
            seen = connection.execute(select(tables.sweep.c.succeeded_at)).scalar_one()
        outcome = ledger.submit_whole(op.ShiftDeadlines(seen))
        assert isinstance(outcome, Done)
        assert row_of(ledger).resync_until > until
        assert sweeper.sweep().unreported == 0


def test_two_replicas_give_up_each_thing_once(
    postgres_server: DatabaseServer, postgres_template: str
) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(postgres_server.database(template=postgres_template))
        pair = [Ledger(LedgerSettings(url)) for _ in range(2)]
        for ledger in pair:
            ledger.open()
            stack.callback(ledger.close)
        register(pair[0])
        say(
            pair[0],
            creating_node(memory=100),
            adding(),
            asking("k", count=60),
            asking("w", memory=500, count=60),
        )
        again = register(pair[1])
        say(pair[1], creating_node(memory=100, client=again))
        threads = [Thread(target=give_up_unreported, args=(ledger, again)) for ledger in pair]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert rows(pair[0]) == []
        assert len(of_kind(told(pair[0]), "released")) == 60
        assert len(of_kind(told(pair[0]), "released_ask")) == 60
        check_books(pair[0])
