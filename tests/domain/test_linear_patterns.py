import re
import string
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.linear_patterns import LinearPattern, PatternError


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        ("dev", "my-devs", True),
        ("^dev$", "devs", False),
        ("^dev-.*", "dev-1", True),
        ("[a-c]+x", "zzbcax", True),
        ("^[^a-z]$", "5", True),
        (r"\d{2,3}$", "user12", True),
        (r"^\d{2,3}$", "1234", False),
        ("^(alice|bob)$", "bob", True),
        ("^(alice|bob)$", "bobby", False),
        ("^a?b*c{2}$", "bbcc", True),
        ("^x{2,}$", "x", False),
        ("(?i)^ALICE$", "alice", True),
        (r"^a\.b$", "axb", False),
        ("", "anything", True),
    ],
)
def test_a_pattern_is_found_as_everywhere(pattern: str, name: str, found: bool) -> None:
    assert LinearPattern(pattern).found_in(name) is found


UNKNOWN = [
    "(",
    ")",
    "a)",
    "*a",
    "a**",
    r"\1",
    r"\b",
    r"\Aa",
    "(?=a)",
    "[a",
    "[[a]",
    "[z-a]",
    "a{65}",
    "a{3,2}",
]
TOO_LARGE = ["a" * 257, "((((a{60}){60}){60}){60})", "(((){60}){60}){60}"]


@pytest.mark.parametrize("pattern", [*UNKNOWN, *TOO_LARGE])
def test_what_is_not_understood_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        LinearPattern(pattern)


def test_a_hostile_pattern_takes_no_exponential_time() -> None:
    pattern = LinearPattern("^(a+)+(a|a?)+(a*)*$")
    before = process_time()
    assert not pattern.found_in("a" * 250 + "!")
    assert process_time() - before < 5


atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", "a?", "b*", "a+", "b{1,2}", "^", "$"])
patterns = st.recursive(
    st.lists(atoms, max_size=4).map("".join),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        inner.map(lambda one: f"(?:{one})?"),
        st.tuples(inner, inner).map("".join),
    ),
    max_leaves=6,
).filter(lambda text: len(text) < 100)


@given(patterns, st.text(alphabet=string.ascii_lowercase[:3], max_size=6))
def test_it_finds_what_pythons_own_engine_finds(pattern: str, name: str) -> None:
    assert LinearPattern(pattern).found_in(name) is (re.search(pattern, name) is not None)
