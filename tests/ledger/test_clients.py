"""What clients ask for, on a database: in any mixture within a batch, and through any replica."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest
from sqlalchemy import func, select

from rm_service.domain import operations as op
from rm_service.domain.amounts import INT64_MAX
from rm_service.domain.application import State
from rm_service.domain.clients import Termination
from rm_service.domain.outcomes import Code, Done, Refused
from rm_service.ledger import tables
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.sweeper import Sweeper, SweepSettings
from tests.client_words import (
    AGAIN,
    OTHER,
    RM,
    adding,
    asking,
    booking,
    creating_node,
    decommissioning,
    kinds,
    of_kind,
    partition_of,
    phases,
    releasing,
    removing,
    running,
    updating_node,
)
from tests.ledger.telling import (
    check_books,
    pass_time,
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
    """With one node of 10 and one application; the books balance at the end."""
    say(ledger, creating_node(), adding())
    yield ledger
    check_books(ledger, RM, OTHER)


def limit(ledger: Ledger, tags: dict[str, str], **total: int) -> None:
    outcome = ledger.submit_whole(op.SetLimit({"partition": partition_of(RM), **tags}, total))
    assert isinstance(outcome, Done), outcome


class TestOneBatch:
    """Operations that meet in one batch are each judged on what the others left."""

    def test_everything_that_a_message_can_say(self, ledger: Ledger) -> None:
        say(
            ledger,
            adding("app-2"),
            creating_node("n2", 20),
            booking("run", "n2", "app-2", memory=3, uuid="pod-1"),
            asking("k", "app-2", memory=4, count=2),
            asking("w", "app-2", memory=50),
            releasing("k", "app-2"),
            releasing(app="app-2", id="pod-1"),
            removing("app-1"),
        )
        assert kinds(told(ledger)[2:]) == [
            "accepted_application",
            "accepted_node",
            "new",
            "updated_application",
            "updated_application",
            "new",
            "new",
            "released",
            "released",
            "released",
        ]
        assert (states(ledger, "w"), len(rows(ledger))) == ([State.WAITING], 2)
        assert standing(ledger, "app-2")["waiting"] == 1

    def test_removed_and_added_again(self, ledger: Ledger) -> None:
        say(ledger, asking("k"), asking("w", memory=50))
        say(ledger, removing(), adding(), asking("k", memory=2), removing(), adding(), asking("k", memory=3))
        (runs,) = running(told(ledger)).values()
        assert runs["resource"] == {"memory": 3}
        assert len(rows(ledger)) == 2

    def test_a_replaced_ask_and_its_successor(self, ledger: Ledger) -> None:
        say(ledger, asking("k", memory=50, count=3), asking("k", memory=40), asking("k", memory=40))
        assert states(ledger, "k") == [State.WAITING]
        say(ledger, asking("k", memory=40), asking("k", memory=2))
        assert states(ledger, "k") == [State.USED]

    def test_rows_that_are_read_while_deciding_do_not_undo_what_was_decided(self, ledger: Ledger) -> None:
        """A decommission reads its tenants, a removal its members, after others have changed them."""
        a, b, c = asking("a", memory=2), asking("b", memory=2), asking("c", memory=2)
        say(ledger, a, b, c)
        say(
            ledger,
            releasing(id=a.ids[0]),
            asking("b", memory=4),
            decommissioning(),
            creating_node(memory=20),
            asking("d", memory=5),
            removing(),
        )
        assert running(told(ledger)) == {}
        assert rows(ledger) == []
        released = [answer["key"] for answer in of_kind(told(ledger), "released")]
        assert sorted(released) == ["a", "b", "c", "d"], "each once"

    def test_a_decommissioned_nodes_namesake_elsewhere_stays(self, ledger: Ledger) -> None:
        say(ledger, creating_node(client=OTHER), adding(client=OTHER), asking("k", client=OTHER))
        say(ledger, asking("k"), decommissioning(client=OTHER))
        assert states(ledger, "k") == [State.USED]
        assert running(told(ledger, OTHER)) == {}

    def test_an_application_that_waits_and_its_members(self, ledger: Ledger) -> None:
        limit(ledger, {"queue": "root.one"}, apps=1)
        say(
            ledger,
            adding("first", queue="root.one"),
            adding("second", queue="root.one"),
            asking("k", "second", count=3, priority=1),
            asking("l", "second"),
        )
        assert states(ledger, "k") == [State.WAITING] * 3
        assert phases(told(ledger), "second") == ["Accepted"]
        say(ledger, removing("first"))
        assert states(ledger, "k") == [State.USED] * 3
        assert states(ledger, "l") == [State.USED]
        assert phases(told(ledger), "second") == ["Accepted", "Running"]

    def test_a_waiting_application_removed_with_its_members_leaves_no_queue(self, ledger: Ledger) -> None:
        limit(ledger, {"queue": "root.one"}, apps=1)
        say(ledger, adding("first", queue="root.one"), adding("second", queue="root.one"))
        say(ledger, asking("k", "second"), removing("second"))
        with ledger.readers.connect() as connection:
            assert connection.execute(select(func.count()).select_from(tables.waiter)).scalar_one() == 0

    def test_more_wait_for_their_application_than_one_look_sees(self, ledger: Ledger) -> None:
        limit(ledger, {"queue": "root.one"}, apps=1)
        say(ledger, updating_node(total={"memory": 100}), adding("first", queue="root.one"))
        say(ledger, adding("second", queue="root.one"), asking("k", "second", count=40, priority=1))
        say(ledger, removing("first"))
        assert states(ledger, "k") == [State.USED] * 40

    def test_what_could_not_be_started_is_asked_for_again(self, ledger: Ledger) -> None:
        ask = asking("k", memory=3, count=3)
        failed = Termination.SCHEDULING_FAILED_ON_RM
        say(ledger, ask, releasing("k", termination=failed), releasing(id=ask.ids[2], termination=failed))
        assert states(ledger, "k") == [State.USED] * 3
        assert standing(ledger)["holding"] == 3


class TestGroups:
    def test_a_node_and_what_runs_there_are_refused_together_without_a_trace(self, ledger: Ledger) -> None:
        before = rows(ledger)
        outcomes = say(
            ledger,
            creating_node("n2"),
            booking("a", "n2", memory=3),
            booking("b", "n2", "unknown"),
            atomic=True,
        )
        assert [outcome.code for outcome in outcomes if isinstance(outcome, Refused)] == [
            Code.NOT_DONE,
            Code.NOT_DONE,
            Code.UNKNOWN_APPLICATION,
        ]
        assert rows(ledger) == before
        assert told(ledger)[-1] == {
            "kind": "rejected_node",
            "node": "n2",
            "reason": "failed to find application unknown",
        }
        with ledger.readers.connect() as connection:
            assert list(connection.execute(select(tables.node.c.instance)).scalars()) == ["n1"]
        say(ledger, creating_node("n2"), booking("a", "n2", memory=3), atomic=True)
        assert states(ledger, "a") == [State.USED]

    def test_asks_beside_a_group_that_was_undone_are_placed_where_there_is_room(self, ledger: Ledger) -> None:
        group: list[op.DecidedOperation] = [
            creating_node("n2", 50),
            booking("a", "n2"),
            booking("b", "nowhere"),
        ]
        futures = [
            ledger.enqueue([asking("before", memory=4)]),
            ledger.enqueue(group, atomic=True),
            ledger.enqueue([asking("after", memory=40), asking("small", memory=6)]),
        ]
        for future in futures:
            future.result(10)
        settle(ledger)
        assert states(ledger, "after") == [State.WAITING]
        assert states(ledger, "before") + states(ledger, "small") == [State.USED] * 2

    def test_a_group_that_is_undone_leaves_the_asks_that_it_answered_in_their_queue(
        self, ledger: Ledger
    ) -> None:
        say(ledger, asking("big", memory=10), asking("w", memory=4))
        say(
            ledger,
            creating_node("n2"),
            booking("w", "n2", memory=4, anonymous=True),
            booking("x", "nowhere"),
            atomic=True,
        )
        assert states(ledger, "w") == [State.WAITING]
        say(ledger, releasing("big"))
        assert states(ledger, "w") == [State.USED]


class TestIds:
    def test_an_id_of_an_application_that_exists_is_left_to_its_owner(self, ledger: Ledger) -> None:
        ask = asking("k", memory=2)
        say(ledger, ask, creating_node(client=OTHER), adding(client=OTHER))
        say(ledger, booking("k", "n1", memory=3, id=ask.ids[0], client=OTHER))
        assert [row.used for row in rows(ledger) if row.id == ask.ids[0]] == [{"memory": 2}]
        assert of_kind(told(ledger, OTHER), "new")[0]["id"] == ask.ids[0]
        say(ledger, releasing(id=ask.ids[0]))
        assert states(ledger, "k") == []
        assert states(ledger, "k", OTHER) == [State.USED]

    def test_one_that_has_ended_here_is_booked_once_and_can_be_released(self, ledger: Ledger) -> None:
        report = booking("k", "n1", memory=3)
        say(ledger, report, releasing(id=report.id))
        for _ in range(2):
            say(ledger, replace(report, spare_id=asking("x").ids[0]))
        assert states(ledger, "k") == [State.USED]
        say(ledger, releasing(id=report.id))
        assert states(ledger, "k") == []

    def test_twice_in_one_batch_it_is_one(self, ledger: Ledger) -> None:
        report = booking("k", "n1", memory=3)
        say(ledger, report, report)
        assert states(ledger, "k") == [State.USED]
        assert len(of_kind(told(ledger), "new")) == 1

    @pytest.mark.parametrize("strange", ["", "x", "{}", "00000000-0000-7000-8000-00000000000G", "A" * 500])
    def test_any_text_may_be_an_id(self, ledger: Ledger, strange: str) -> None:
        say(ledger, booking("k", "n1", uuid=strange or "-"), releasing("k", id=strange or "-"))
        assert states(ledger, "k") == []


def test_what_does_not_fit_64_bits_is_rejected_and_nothing_is_left_of_it(ledger: Ledger) -> None:
    say(ledger, creating_node("n2", INT64_MAX), creating_node("n3", INT64_MAX))
    before = rows(ledger)
    (refused,) = say(ledger, asking("k", memory=INT64_MAX // 2 + 1, count=2))
    assert isinstance(refused, Refused)
    assert refused.code is Code.OVERFLOW
    assert rows(ledger) == before
    assert kinds(told(ledger))[-1] == "rejected_ask"
    assert of_kind(told(ledger), "new") == []


def test_what_would_not_fit_64_bits_waits_on_and_holds_nobody_up(ledger: Ledger) -> None:
    say(
        ledger,
        asking("big", memory=10),
        asking("huge", memory=INT64_MAX),
        asking("small", memory=1, node="n1"),
    )
    say(ledger, creating_node("n2", INT64_MAX))
    assert states(ledger, "huge") == [State.WAITING]
    say(ledger, releasing("big"))
    assert states(ledger, "small") == [State.USED]


def test_texts_that_a_database_may_stumble_over_come_back_as_they_were(ledger: Ledger) -> None:
    strange = "\u2028 \U0001f40d \\ ' \" %s {} \ud7ff"
    ask = asking("k", request={"tags": {strange: strange}})
    say(ledger, ask)
    assert of_kind(told(ledger), "new")[-1]["tags"] == {strange: strange}


class TestTime:
    def sweep(self, ledger: Ledger) -> None:
        sweeper = Sweeper(ledger, SweepSettings(sweep_seconds=3_600))
        sweeper.sweep()
        settle(ledger)

    def test_an_allocation_whose_time_is_over_is_told_to_end_and_ends_when_that_is_confirmed(
        self, ledger: Ledger
    ) -> None:
        ask = asking("k", memory=10, run_for=60)
        say(ledger, ask, asking("w", memory=10))
        pass_time(ledger, 61)
        self.sweep(ledger)
        assert of_kind(told(ledger), "released")[0]["termination"] == "TIMEOUT"
        assert states(ledger, "w") == [State.WAITING]
        say(ledger, releasing(id=ask.ids[0], termination=Termination.TIMEOUT))
        assert states(ledger, "w") == [State.USED]

    def test_what_is_never_confirmed_ends_by_itself_and_makes_room(self, ledger: Ledger) -> None:
        say(ledger, asking("k", memory=10, run_for=60), asking("w", memory=10))
        for seconds in (61, 31):
            pass_time(ledger, seconds)
            self.sweep(ledger)
        assert states(ledger, "k") == []
        assert states(ledger, "w") == [State.USED]

    def test_an_application_fails_with_all_that_it_has(self, ledger: Ledger) -> None:
        say(ledger, adding("app-2", run_for=60), asking("k", "app-2"), asking("w", "app-2", memory=50))
        pass_time(ledger, 61)
        self.sweep(ledger)
        assert phases(told(ledger), "app-2") == ["Accepted", "Running", "Failing"]
        pass_time(ledger, 31)
        self.sweep(ledger)
        assert phases(told(ledger), "app-2")[-1] == "Failed"
        assert [row.tags["app"] for row in rows(ledger)] == ["app-1"]

    def test_an_application_without_members_is_completed(self, ledger: Ledger) -> None:
        say(ledger, asking("k"), releasing("k"))
        pass_time(ledger, 31)
        self.sweep(ledger)
        assert phases(told(ledger))[-1] == "Completed"
        assert rows(ledger) == []


class TestReplicas:
    @pytest.fixture
    def pair(
        self, postgres_server: DatabaseServer, postgres_template: str
    ) -> Iterator[tuple[Ledger, Ledger]]:
        """Two ledgers on one database, as two processes have them; a node of 10 and an application."""
        with ExitStack() as stack:
            url = stack.enter_context(postgres_server.database(template=postgres_template))
            both = Ledger(LedgerSettings(url)), Ledger(LedgerSettings(url))
            for ledger in both:
                ledger.open()
                stack.callback(ledger.close)
            say(both[0], creating_node(), adding())
            yield both
            check_books(both[0], RM, OTHER)

    def test_what_one_was_told_the_other_carries_on(self, pair: tuple[Ledger, Ledger]) -> None:
        one, two = pair
        say(two, asking("k", memory=6))
        say(one, asking("w", memory=6))
        assert states(two, "w") == [State.WAITING]
        say(two, releasing("k"))
        settle(one)
        assert states(one, "w") == [State.USED]
        say(one, decommissioning())
        say(two, creating_node(memory=20), asking("l", memory=20))
        assert [answer["key"] for answer in running(told(one)).values()] == ["l"]

    def test_a_node_that_one_has_created_is_chosen_by_the_other(self, pair: tuple[Ledger, Ledger]) -> None:
        one, two = pair
        say(two, asking("a", memory=1))
        say(one, creating_node("n2", 100))
        say(two, asking("b", memory=50))
        say(one, updating_node("n2", total={"memory": 200}))
        say(two, asking("c", memory=120))
        assert {answer["node"] for answer in of_kind(told(one), "new") if answer["key"] != "a"} == {"n2"}

    def test_labels_that_both_use_for_the_first_time_are_one(self, pair: tuple[Ledger, Ledger]) -> None:
        futures = [
            ledger.enqueue([adding(f"app-{number}-{at}", user=f"user-{number}", queue=f"root.q{number}")])
            for number in range(20)
            for at, ledger in enumerate(pair)
        ]
        for future in futures:
            assert isinstance(future.result(10)[0], Done)
        assert len(of_kind(told(pair[0]), "accepted_application")) == 41

    def test_both_take_from_one_node_what_it_has(self, pair: tuple[Ledger, Ledger]) -> None:
        futures = [
            ledger.enqueue([asking(f"k-{number}-{at}")])
            for number in range(15)
            for at, ledger in enumerate(pair)
        ]
        for future in futures:
            future.result(10)
        for ledger in pair:
            settle(ledger)
        assert len(of_kind(told(pair[0]), "new")) == 10
        say(pair[1], releasing())
        assert states(pair[0], "k-14-1") == []


def test_what_an_earlier_registration_said_late_is_no_news(ledger: Ledger) -> None:
    ask = asking("k")
    say(ledger, ask, booking("k", "n1", id=ask.ids[0], client=AGAIN))
    before = told(ledger)
    say(ledger, booking("k", "n1", id=ask.ids[0]))
    assert told(ledger) == before
