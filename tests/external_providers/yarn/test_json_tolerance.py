"""Hadoop's JSON is read as it is meant; what cannot be meant is refused in words that are safe to show."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from external_providers.base import MalformedError
from external_providers.yarn.json_tolerance import count, excerpt, member, members, number, read, text


@pytest.mark.parametrize(
    ("document", "found"),
    [
        (b'{"queue": [{"n": 1}, {"n": 2}]}', [1, 2]),
        (b'{"queue": {"n": 1}}', [1]),
        (b'{"queue": {"n": 1}, "queue": {"n": 2}}', [1, 2]),
        (b'{"queue": [{"n": 1}], "queue": {"n": 2}, "queue": [{"n": 3}]}', [1, 2, 3]),
        (b'{"queue": null}', []),
        (b'{"queue": [null]}', []),
        (b'{"queue": []}', []),
        (b'{"queue": ""}', []),
        (b"{}", []),
    ],
)
def test_a_list_is_a_list_however_it_is_written(document: bytes, found: list[int]) -> None:
    assert [item["n"] for item in members(read(document), "queue")] == found


def test_the_later_of_two_values_counts_where_no_list_is_meant() -> None:
    document = read(b'{"type": "a", "n": 1, "type": "b", "n": 2, "o": {"x": 1}, "o": {"x": 2}}')
    assert text(document, "type") == "b"
    assert count(document, "n", "here") == 2
    assert member(document, "o") == {"x": 2}


@pytest.mark.parametrize(("written", "meant"), [("7", 7), ('"7"', 7), ("7.0", 7), ('"7.00"', 7), ("7e1", 70)])
def test_a_whole_number_may_be_written_in_many_ways(written: str, meant: int) -> None:
    assert count(read(f'{{"n": {written}}}'.encode()), "n", "here") == meant


@pytest.mark.parametrize("written", ["null", "NaN", '"NaN"', "Infinity", '""', "[]"])
def test_no_number_is_none(written: str) -> None:
    assert count(read(f'{{"n": {written}}}'.encode()), "n", "here") is None


@pytest.mark.parametrize(
    "written",
    [
        "-1",
        "1.5",
        '"many"',
        "true",
        "{}",
        str(2**62 + 1),
        "1e400",
        "1e-400",
        "1e999999999",
        f'"{"9" * 5000}"',
    ],
)
def test_what_is_no_amount_is_refused_by_name(written: str) -> None:
    with pytest.raises(MalformedError, match=r"^queue root.a: memory is "):
        count(read(f'{{"memory": {written}}}'.encode()), "memory", "queue root.a")


def test_fractions_are_exact() -> None:
    assert str(number(read(b'{"n": 33.333333333333333333}'), "n", "here")) == "33.333333333333333333"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>Sign in</html>",
        b'{"a":',
        b"[1]",
        b"7",
        b'{"n": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_what_is_no_object_is_refused(answer: bytes) -> None:
    with pytest.raises(MalformedError, match="JSON"):
        read(answer)


@given(st.binary(max_size=300))
def test_an_excerpt_is_one_short_line_of_plain_characters(answer: bytes) -> None:
    shown = excerpt(answer)
    assert len(shown) <= 165  # 80 characters, each of which may need a backslash
    assert shown.isprintable()
    assert shown.isascii()


def test_an_excerpt_does_not_hold_secrets() -> None:
    assert excerpt(b"you said hunter2, hunter2!", ("hunter2", "")) == "'you said ***, ***!'"


names = st.text(max_size=3)
values = st.recursive(
    st.integers() | names | st.none(), lambda inner: st.dictionaries(names, inner, max_size=3), max_leaves=8
)


@given(values)
def test_an_object_without_double_keys_is_as_json_has_it(value: object) -> None:
    assert read(json.dumps({"value": value}).encode()) == {"value": value}
