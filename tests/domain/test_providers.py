"""Which provider speaks for a label, and when two could be meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.providers import (
    StalePolicy,
    StoredProvider,
    StoreProvider,
    are_disjoint,
    most_specific_first,
    speaking_for,
    tied_with,
)
from rm_service.domain.selectors import parse_selector

TERMS = [
    "a=1",
    "a=2",
    "a in (1,2)",
    "a in (2,3)",
    "a!=1",
    "a notin (1,2,3)",
    "a",
    "!a",
    "a>1",
    "a>=2",
    "a<1",
    "a<=2",
    "b=1",
    "!b",
]
SELECTORS = st.lists(st.sampled_from(TERMS), max_size=3).map(",".join).map(parse_selector)


def stored(name: str, labels: str) -> StoredProvider:
    return StoredProvider(
        "yarn", name, parse_selector(labels), {}, None, StalePolicy.DENY, 10, 60, {}, 1, 0, 0
    )


def test_the_one_with_the_most_requirements_speaks() -> None:
    ordered = most_specific_first([stored("all", ""), stored("c1", "c=1"), stored("q", "c=1,q=root")])
    assert [each.name for each in ordered] == ["q", "c1", "all"]

    def speaker(**tags: str) -> str:
        found = speaking_for(ordered, tags)
        return "" if found is None else found.name

    assert [speaker(c="1", q="root"), speaker(c="1", q="etl"), speaker(c="2")] == ["q", "c1", "all"]
    assert speaking_for(ordered[:2], {"c": "2"}) is None


@pytest.mark.parametrize(
    ("left", "right", "disjoint"),
    [
        ("a=1", "a=2", True),
        ("a in (1,2)", "a in (2,3)", False),
        ("a in (1,2)", "a notin (1,2,3)", True),
        ("a", "!a", True),
        ("a!=1", "!a", False),
        ("a>2", "a<=2", True),
        ("a>2", "a<4", False),
        ("a>2", "a in (1,2)", True),
        ("a>2", "a in (x,3)", False),
        ("a=1,b=1", "a=1,b=2", True),
        ("a=1", "b=2", False),
        ("", "a=1", False),
        ("a in (1,2)", "a!=1,a!=2", True),
    ],
)
def test_selectors_are_disjoint_if_some_key_cannot_be_as_both_want_it(
    left: str, right: str, *, disjoint: bool
) -> None:
    assert are_disjoint(parse_selector(left), parse_selector(right)) is disjoint
    assert are_disjoint(parse_selector(right), parse_selector(left)) is disjoint


@given(
    SELECTORS, SELECTORS, st.dictionaries(st.sampled_from("ab"), st.sampled_from(["0", "1", "2", "3", "x"]))
)
def test_what_is_called_disjoint_never_matches_the_same(left: object, right: object, tags: object) -> None:
    if left.matches(tags) and right.matches(tags):  # type: ignore[attr-defined]
        assert not are_disjoint(left, right)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("labels", "tie"),
    [
        ("c=1", "c1"),
        ("c in (1,2)", "c1"),
        ("c=2", None),
        ("c=1,q=root", None),
        ("", None),
    ],
)
def test_a_tie_is_with_another_of_the_same_type_and_specificity(labels: str, tie: str | None) -> None:
    others = [stored("c1", "c=1")]
    wanted = StoreProvider("yarn", "c2", parse_selector(labels), {})
    found = tied_with(wanted, others)
    assert (None if found is None else found.name) == tie
    assert tied_with(StoreProvider("kubernetes", "c2", parse_selector(labels), {}), others) is None
    assert tied_with(StoreProvider("yarn", "c1", parse_selector(labels), {}), others) is None
