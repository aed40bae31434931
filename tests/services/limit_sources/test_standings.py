"""What is known of combinations: how old it is, when it is asked for again, when it is forgotten."""

import pytest

from rm_service.services.limit_sources import standings as module
from rm_service.services.limit_sources.standings import RETRY_SECONDS, USED_SECONDS, Standings

ALICE, BOB = (("user", "alice"),), (("user", "bob"),)


@pytest.fixture
def standings() -> Standings:
    return Standings(refresh_seconds=60, stale_seconds=600)


def test_it_is_new_until_somebody_has_asked(standings: Standings) -> None:
    assert standings.used(ALICE, 0) is None
    standings.answered([ALICE], 0)
    assert standings.used(ALICE, 0) is not None


def test_it_is_fresh_until_it_is_too_old(standings: Standings) -> None:
    standings.answered([ALICE], 0)
    assert standings.is_fresh(standings.used(ALICE, 600), 600)
    assert not standings.is_fresh(standings.used(ALICE, 601), 601)


def test_a_failure_does_not_make_it_younger(standings: Standings) -> None:
    standings.answered([ALICE], 0)
    standings.unanswered({ALICE: "away"}, 599)
    assert not standings.is_fresh(standings.used(ALICE, 601), 601)


def test_each_is_due_by_its_own_time_the_longest_overdue_first(standings: Standings) -> None:
    standings.answered([ALICE], 10)
    standings.answered([BOB], 0)
    assert standings.due(59) == []
    assert standings.due(60) == [BOB]
    assert standings.due(70) == [BOB, ALICE]


def test_what_was_not_answered_is_due_soon(standings: Standings) -> None:
    standings.unanswered({ALICE: "away"}, 0)
    assert standings.due(RETRY_SECONDS - 1) == []
    assert standings.due(RETRY_SECONDS) == [ALICE]


def test_a_fault_is_news_once(standings: Standings) -> None:
    assert standings.unanswered({ALICE: "away"}, 0) == [ALICE]
    assert standings.unanswered({ALICE: "away"}, 1) == []
    standings.answered([ALICE], 2)
    assert standings.unanswered({ALICE: "away"}, 3) == [ALICE]


def test_what_nobody_uses_any_more_is_forgotten(standings: Standings) -> None:
    standings.answered([ALICE, BOB], 0)
    standings.used(BOB, USED_SECONDS)
    assert standings.due(USED_SECONDS + 1) == [BOB]
    assert standings.used(ALICE, USED_SECONDS + 1) is None


def test_what_is_too_old_is_named_until_it_is_dropped(standings: Standings) -> None:
    standings.answered([ALICE], 0)
    standings.unanswered({BOB: "away"}, 0)
    assert standings.too_old(600) == [BOB]
    assert standings.too_old(601) == [ALICE, BOB]
    standings.dropped([ALICE, BOB], 601)
    assert standings.too_old(602) == []


def test_what_was_answered_meanwhile_is_not_dropped(standings: Standings) -> None:
    standings.answered([ALICE], 0)
    standings.answered([ALICE], 601)
    standings.dropped([ALICE], 601)
    assert standings.too_old(1202) == [ALICE]


def test_the_longest_unused_make_room(standings: Standings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_STANDINGS", 10)
    users = [(("user", str(number)),) for number in range(11)]
    for number, each in enumerate(users):
        standings.answered([each], number)
    assert standings.used(users[0], 11) is None
    assert all(standings.used(each, 11) for each in users[1:])


def test_ages_are_told_for_all(standings: Standings) -> None:
    standings.answered([ALICE], 5)
    standings.unanswered({BOB: "away"}, 5)
    assert list(standings.ages(10)) == [5, None]
