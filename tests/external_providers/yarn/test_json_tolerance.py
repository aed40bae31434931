"""Hadoop's JSON is read as it is meant; what cannot be meant is refused in words that are safe to show."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from external_providers.base import AbsurdError, MalformedError
from external_providers.yarn.json_tolerance import _merged, count, limit, member, members, number, read, text
from external_providers.yarn.words import plain


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


@pytest.mark.parametrize("written", ['"many"', "true", "{}", f'"{"9" * 5000}"'])
def test_what_is_no_number_is_refused_by_name(written: str) -> None:
    with pytest.raises(MalformedError, match=r"^queue root.a: memory is no number$"):
        count(read(f'{{"memory": {written}}}'.encode()), "memory", "queue root.a")


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ("-1", "is below 0"),
        ("-1e400", "is below 0"),
        ("1.5", "is no whole number"),
        ("1e-400", "is no whole number"),
        (str(2**62 + 1), "is more than 2^62"),
        ("1e400", "is more than 2^62"),
        ("1e999999999", "is more than 2^62"),
    ],
)
def test_a_number_that_is_no_amount_is_absurd(written: str, fault: str) -> None:
    document = read(f'{{"memory": {written}}}'.encode())
    with pytest.raises(AbsurdError) as caught:
        count(document, "memory", "queue root.a")
    assert str(caught.value) == f"queue root.a: memory {fault}"
    absurd: list[str] = []
    assert count(document, "memory", "queue root.a", absurd) is None
    assert absurd == [f"memory {fault}"]


@pytest.mark.parametrize(("written", "meant"), [("-1", None), ('"-1"', None), ("7", 7), ("null", None)])
def test_minus_one_is_no_limit(written: str, meant: int | None) -> None:
    absurd: list[str] = []
    assert limit(read(f'{{"n": {written}}}'.encode()), "n", "here", absurd) == meant
    assert absurd == []


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


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b'{"a": hunter2}', "it cannot be read from line 1, column 7 on"),
        (b"<html>hunter2</html>", "it cannot be read from line 1, column 1 on"),
        (b'{"a": "hunter2 \xff"}', "byte 15 is no UTF-8"),
        (b"[" * 100_000, "it is nested too deeply"),
    ],
)
def test_what_is_wrong_is_told_by_its_kind_and_place_and_nothing_of_it_is_repeated(
    answer: bytes, said: str
) -> None:
    with pytest.raises(MalformedError) as caught:
        read(answer)
    assert str(caught.value) == f"the answer is not JSON: {said}"
    assert (caught.value.__cause__, caught.value.__suppress_context__) == (None, True)


class Name(str):
    """A key that counts how often it is compared."""

    __slots__ = ()
    __hash__ = str.__hash__
    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)


def test_many_keys_of_which_one_is_there_twice_take_work_in_proportion() -> None:
    Name.compared = 0
    pairs = [(Name(f"k{number}"), number) for number in range(2000)]
    merged = _merged([*pairs, (Name("k0"), -1)])
    assert (merged["k0"], merged["k1"], len(merged)) == ([0, -1], 1, 2000)
    assert Name.compared < 10 * len(pairs)


@given(st.text(max_size=300))
def test_what_is_said_of_a_fault_is_one_short_line_of_plain_characters(said: str) -> None:
    shown = plain(said)
    assert len(shown) <= 80
    assert shown.isascii()
    assert shown.isprintable()


names = st.text(max_size=3)
values = st.recursive(
    st.integers() | names | st.none(), lambda inner: st.dictionaries(names, inner, max_size=3), max_leaves=8
)


@given(values)
def test_an_object_without_double_keys_is_as_json_has_it(value: object) -> None:
    assert read(json.dumps({"value": value}).encode()) == {"value": value}
