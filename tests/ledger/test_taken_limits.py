"""What a limit source says is taken over into the table of limits in one step, beside what others set."""

from collections.abc import Mapping

import pytest

from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.events import Kind
from rm_service.domain.limits import Limit, LimitTerms, source_owner
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.domain.tags import Tags
from rm_service.ledger.audit import audit
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.events import last_seq, read_events
from rm_service.ledger.queries.limits import limits_on, list_limits
from tests.ledger.asking import apply, asking, limit, reading
from tests.ledger.telling import register

OWNER = source_owner("http")
ALICE, BOB, TEAM = {"user": "alice"}, {"user": "bob"}, {"team": "red"}


def take(ledger: Ledger, *limits: LimitTerms, about: list[Tags] | None = None) -> Outcome:
    return ledger.submit_whole(op.TakeLimits(OWNER, about or [each.tags for each in limits], limits))


def memory(tags: Tags, total: int) -> LimitTerms:
    return LimitTerms(tags, {"memory": total})


def standing(ledger: Ledger) -> Mapping[str, Limit]:
    return {next(iter(each.tags.values())): each for each in reading(ledger, list_limits).items}


def test_limits_are_set_changed_and_taken_away_in_one_step(ledger: Ledger) -> None:
    assert take(ledger, memory(ALICE, 1), memory(BOB, 2)) == Done()
    before = standing(ledger)
    assert take(ledger, memory(ALICE, 3), about=[ALICE, BOB]) == Done()
    after = standing(ledger)
    assert after.keys() == {"alice"}
    assert (after["alice"].total, after["alice"].id) == ({"memory": 3}, before["alice"].id)


def test_it_is_one_event_that_says_what_has_changed(ledger: Ledger) -> None:
    take(ledger, memory(ALICE, 1), memory(BOB, 2))
    before = reading(ledger, last_seq)
    take(ledger, memory(ALICE, 3), about=[ALICE, BOB])
    (found,) = reading(ledger, read_events, ledger.labels, before, 10)
    assert (found.event.kind, found.event.subject) == (Kind.LIMITS_TAKEN, OWNER)
    assert found.event.detail == {
        "set": [{"tags": ALICE, "total": {"memory": 3}, "protected": {}}],
        "removed": [BOB],
    }


def test_what_is_so_already_leaves_no_trace(ledger: Ledger) -> None:
    take(ledger, memory(ALICE, 1))
    before = reading(ledger, last_seq)
    assert take(ledger, memory(ALICE, 1), about=[ALICE, BOB]) == Done(repeated=True)
    assert reading(ledger, last_seq) == before


def test_what_was_not_asked_for_stays(ledger: Ledger) -> None:
    take(ledger, memory(ALICE, 1), memory(BOB, 2))
    take(ledger, about=[BOB])
    assert standing(ledger).keys() == {"alice"}


def test_what_others_have_set_stays(ledger: Ledger) -> None:
    limit(ledger, ALICE, {"memory": 9})
    limit(ledger, BOB, {"memory": 8}, client="rm-1")
    assert take(ledger, memory(ALICE, 1), memory(BOB, 1)) == Done(repeated=True)
    take(ledger, about=[ALICE, BOB])
    assert {name: (each.total["memory"], each.source) for name, each in standing(ledger).items()} == {
        "alice": (9, "operator"),
        "bob": (8, "rm:rm-1"),
    }


def test_a_resource_manager_does_not_take_it_away(ledger: Ledger) -> None:
    take(ledger, memory(ALICE, 1))
    register(ledger, limits=[(ALICE, {"memory": 5}), (BOB, {"memory": 5})])
    register(ledger)
    assert {name: each.source for name, each in standing(ledger).items()} == {"alice": "http"}


def test_an_operator_takes_it_over(ledger: Ledger) -> None:
    take(ledger, memory(ALICE, 1))
    limit(ledger, ALICE, {"memory": 5})
    take(ledger, memory(ALICE, 1))
    assert (standing(ledger)["alice"].total, standing(ledger)["alice"].source) == ({"memory": 5}, "operator")


def test_a_new_key_set_counts_in_what_already_runs(ledger: Ledger) -> None:
    apply(ledger, TEAM, {"memory": 3})
    take(ledger, memory(TEAM, 4))
    apply(ledger, TEAM, {"memory": 1})
    assert isinstance(ledger.submit([asking(TEAM, {"memory": 1})])[0], Refused)
    assert audit(ledger.readers).consistent


def test_who_waits_for_it_is_woken(ledger: Ledger) -> None:
    take(ledger, memory(ALICE, 1))
    waiting = apply(ledger, ALICE, {"memory": 2}, wait_seconds=60)
    assert waiting.state is State.WAITING
    take(ledger, memory(ALICE, 2))
    repeated = op.Apply(id=waiting.id, tags=ALICE, resource={"memory": 2}, request=waiting.request)
    outcome = ledger.submit([repeated])[0]
    assert isinstance(outcome, Done)
    assert outcome.application is not None
    assert outcome.application.state is State.LOCKED


@pytest.mark.parametrize(
    "bad",
    [
        LimitTerms({"node": "h1"}, {"memory": 1}),
        LimitTerms(BOB, {"memory": 1}, {"memory": 2}),
        LimitTerms({}, {"memory": 1}),
    ],
)
def test_if_one_cannot_be_nothing_changes(ledger: Ledger, bad: LimitTerms) -> None:
    outcome = take(ledger, memory(ALICE, 1), bad)
    assert isinstance(outcome, Refused)
    assert outcome.code is Code.INVALID_LIMIT
    assert standing(ledger) == {}


def test_limits_are_found_by_just_these_tags(ledger: Ledger) -> None:
    take(ledger, memory(ALICE, 1), memory({"user": "alice", "creator": "IDE"}, 2), memory(BOB, 3))
    found = reading(ledger, limits_on, [ALICE, {"user": "eve"}])
    assert [(each.tags, each.total) for each in found] == [(ALICE, {"memory": 1})]
    assert reading(ledger, limits_on, []) == []
