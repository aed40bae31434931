"""Tables lose nothing: what does not fit beside the rest is folded, and amounts stay in one piece."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.commands.tables import amounts_text, balances, make_console, plain, table


def drawn(*parts: object) -> list[str]:
    console = make_console()
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return [line.rstrip() for line in capture.get().splitlines()]


@given(
    rows=st.lists(
        st.tuples(
            *[st.text(st.sampled_from("ab=, -.\u4e2d"), min_size=1, max_size=90)] * 2, st.integers(0, 10**18)
        ),
        min_size=1,
        max_size=3,
    )
)
def test_a_table_at_80_columns_loses_nothing(rows: list[tuple[str, str, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        lines = drawn(table(["one", "two", "amount"], rows, right=["amount"]))
    shown = "".join(lines)
    for character in "ab=.\u4e2d":
        written = sum((first + second).count(character) for first, second, _ in rows)
        assert shown.count(character) - "one two amount".count(character) == written
    for *_, amount in rows:
        assert any(line.endswith(f" {amount}") for line in lines)


def test_a_record_takes_a_line_for_each_dimension_and_is_named_once() -> None:
    record = {"total": {"memory": 2**30, "vcore": 500}, "used": {"vcore": 0}, "left": {}}
    assert [line.split() for line in drawn(balances(["node"], [(["n1"], record), (["n2"], {})]))] == [
        ["node", "dimension", "total"],
        ["n1", "memory", "1Gi"],
        ["vcore", "500m"],
        ["n2", "-", "-"],
    ]


def test_what_is_not_there_is_a_dash() -> None:
    assert [plain(None), plain(""), plain(0), amounts_text({}), amounts_text(None)] == [
        "-",
        "-",
        "0",
        "-",
        "-",
    ]


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\n", "\x7f", "\x9b", "\u2028", "\ud800"])
def test_control_characters_do_not_reach_the_terminal(character: str) -> None:
    assert plain(f"a{character}b") == "a\ufffdb"
