"""docs/scheduler-interface.md names a test for what it says; none of these names may be out of date."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "scheduler-interface.md"
NAMED = re.compile(r"`([a-z_/]+\.py)::(test_\w+)`")


def test_every_test_that_the_page_names_is_there() -> None:
    named = NAMED.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) > 40
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not (TESTS / file).is_file() or f"def {name}(" not in (TESTS / file).read_text(encoding="utf-8")
    ]
    assert missing == []


def test_every_decision_has_its_row_and_a_test_or_says_what_is_absent() -> None:
    rows = re.findall(r"^\| ([0-9]+) \| .* \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(number) for number in rows] == list(range(1, 38))
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if re.match(r"\| [0-9]+ \| ", line):
            assert NAMED.search(line) or "not yet" in line, line
