"""Recent commits: what is kept is without a gap, or it is not given."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.events import Event, Kind
from rm_service.ledger import commits
from rm_service.ledger.commits import RecentCommits


def events(first: int, count: int) -> list[Event]:
    return [Event(seq, 0, Kind.LIMIT_SET, "1") for seq in range(first, first + count)]


@given(
    steps=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 2))),
    after=st.integers(0, 300),
    limit=st.integers(1, 50),
)
def test_what_follows_a_number_follows_it_at_once(
    steps: list[tuple[int, int]], after: int, limit: int
) -> None:
    recent, head, unbroken_from = RecentCommits(), 0, 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commits, "KEPT", 10)
        for count, others in steps:
            if others:
                unbroken_from = head + others + 1
            recent.add(events(head + others + 1, count))
            head += others + count
    given = [event.seq for event in recent.after(after, limit)]
    assert given == list(range(after + 1, after + 1 + len(given)))
    assert recent.last == head
    if given:
        assert unbroken_from <= given[0]
        assert len(given) == min(limit, head - after)
    if unbroken_from <= after + 1 <= head and head - after <= 10:
        assert given, "so many are kept"


def test_no_more_is_kept_than_it_takes() -> None:
    recent = RecentCommits()
    for start in range(1, 10 * commits.KEPT, 500):
        recent.add(events(start, 500))
    assert len(recent.after(recent.last - commits.KEPT, 10**6)) == commits.KEPT
    assert len(recent._events) <= 2 * commits.KEPT + 500
