"""Versions: which texts are some, and their order."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.versions import Version, VersionError, read_version

ASCENDING = [
    "0",
    "0.0.1",
    "0.9",
    "0.10",
    "1.0.0-1",
    "1.0.0-2",
    "1.0.0-11",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.0.1",
    "1.2",
    "1.10",
    "535.54.03",
    "535.104.05",
    "550.54.14",
    "1000000000000000000000",
]

tails = st.lists(st.from_regex(r"[0-9A-Za-z-]{1,5}", fullmatch=True), min_size=1, max_size=3).map(".".join)
versions = st.tuples(
    st.lists(st.integers(0, 999).map(str), min_size=1, max_size=4).map(".".join),
    st.just("") | tails.map(lambda tail: f"-{tail}"),
    st.just("") | tails.map(lambda tail: f"+{tail}"),
).map("".join)


def test_versions_are_ordered_by_their_numbers_and_a_pre_release_comes_first() -> None:
    for less, more in pairwise(ASCENDING):
        assert read_version(less) < read_version(more), (less, more)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.2", "1.2.0"),
        ("1", "1.0.0.0"),
        ("0", "0.0"),
        ("535.104.05", "535.104.5"),
        ("1.2+cuda12", "1.2"),
        ("1.2+a.b-c", "1.2+d"),
        ("1-rc.01", "1-rc.1"),
    ],
)
def test_zeros_and_the_build_do_not_count(one: str, other: str) -> None:
    assert read_version(one) == read_version(other)
    assert hash(read_version(one)) == hash(read_version(other))


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        ("v1.2", 0),
        (".1", 0),
        ("-1", 0),
        ("1.", 1),
        ("1..2", 1),
        ("1.2.x", 3),
        ("1.2 ", 3),
        ("1.2\n", 3),
        ("1,2", 1),
        ("1.2-", 4),
        ("1.2-a..b", 5),
        ("1.2-a_b", 5),
        ("1.2+", 4),
        ("1.2+a+b", 5),
        ("1.2rc1", 3),
        ("1.٣", 1),
        ("1." * 500_000, 64),
        ("," * 1_000_000, 64),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_text_that_is_no_version_is_refused_with_the_position(text: str, position: int) -> None:
    with pytest.raises(VersionError) as refusal:
        read_version(text)
    assert refusal.value.position == position
    assert refusal.value.reason
    assert len(str(refusal.value)) < 250


@given(versions)
def test_a_version_reads_back(text: str) -> None:
    version = read_version(text)
    assert read_version(str(version)) == version


@given(versions, versions, versions)
def test_the_order_is_total(one: str, two: str, three: str) -> None:
    a, b, c = sorted(map(read_version, (one, two, three)))
    assert a <= b <= c
    assert a <= c
    assert (a < b) + (a == b) + (a > b) == 1


@given(
    st.lists(st.integers(0, 99), min_size=1, max_size=5), st.lists(st.integers(0, 99), min_size=1, max_size=5)
)
def test_releases_compare_like_lists_of_numbers_filled_with_zeros(one: list[int], two: list[int]) -> None:
    length = max(len(one), len(two))
    filled = [numbers + [0] * (length - len(numbers)) for numbers in (one, two)]
    a, b = (read_version(".".join(map(str, numbers))) for numbers in (one, two))
    assert (a < b) == (filled[0] < filled[1])
    assert (a == b) == (filled[0] == filled[1])


@given(st.text(max_size=70) | st.text("0123456789.-+ab", max_size=10))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        version = read_version(text)
    except VersionError as error:
        assert 0 <= error.position <= len(text)  # noqa: PT017 - either way is fine
    else:
        assert isinstance(version, Version)
