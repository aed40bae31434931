"""The answer of a configuration service: what is taken, what spoils one combination, and what all of it."""

import json
from typing import Any

import pytest

from external_providers.base import MalformedError
from rm_service.domain.limits import LimitTerms
from rm_service.domain.tags import label_key
from rm_service.services.limit_sources.answers import question, read_answer
from rm_service.services.limit_sources.sources import Said

ALICE, BOB = {"user": "alice"}, {"user": "bob"}


def read(*limits: Any) -> Said:
    return read_answer(json.dumps({"limits": limits}).encode(), [ALICE, BOB])


def test_a_question_names_the_combinations() -> None:
    assert json.loads(question([ALICE, BOB])) == {"combinations": [ALICE, BOB]}


def test_amounts_are_integers_or_quantities() -> None:
    said = read({"tags": ALICE, "total": {"memory": "2Gi", "vcore": 500}, "protected": {"memory": 1}})
    assert said == Said([LimitTerms(ALICE, {"memory": 2**31, "vcore": 500}, {"memory": 1})])


def test_who_is_not_named_has_no_limit() -> None:
    assert read() == Said([])


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"total": {"memory": -1}}, "total.memory"),
        ({"total": {"memory": 1.5}}, "total.memory"),
        ({"total": {"memory": "much"}}, "total.memory"),
        ({"total": {"memory": 2**63}}, "total.memory"),
        ({"total": {"memory": 1}, "protected": None}, "protected"),
        ({"total": [1]}, "total"),
        ({"total": None}, "total"),
        ({}, "total: is missing"),
    ],
)
def test_amounts_that_are_none_make_their_own_combination_unusable(entry: Any, reason: str) -> None:
    said = read({"tags": ALICE, **entry}, {"tags": BOB, "total": {"memory": 1}})
    assert said.limits == [LimitTerms(BOB, {"memory": 1}, {})]
    assert list(said.unusable) == [label_key(ALICE)]
    assert reason in said.unusable[label_key(ALICE)]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ([{"tags": {"user": "eve"}, "total": {}}], "limits.0.tags: this combination was not asked for"),
        ([{"tags": {"user": "*"}, "total": {}}], "limits.0.tags: this combination was not asked for"),
        ([{"tags": ALICE, "total": {}}] * 2, "limits.1.tags: this combination is answered twice"),
        ([{"total": {}}], "limits.0.tags"),
        ([{"tags": {"user": 7}, "total": {}}], "limits.0.tags"),
        (["alice"], "limits.0: must be an object"),
    ],
)
def test_an_answer_to_something_else_is_refused_whole(limits: list[Any], reason: str) -> None:
    with pytest.raises(MalformedError) as caught:
        read(*limits)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff", b"limits", b"[]", b"{}", b'{"limits": {}}', b"[" * 100_000, b'{"limits": ' + b"9" * 5000],
)
def test_what_is_no_such_document_is_refused_whole(body: bytes) -> None:
    with pytest.raises(MalformedError):
        read_answer(body, [ALICE])
