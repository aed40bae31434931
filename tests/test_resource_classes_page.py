"""docs/resource-classes.md goes through the proposal sentence by sentence and names a test for each."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "resource-classes.md"
TITLE = "\n## The proposal, sentence by sentence\n"
NAMED = re.compile(r"`([a-z_/]+\.py)::(test_\w+)`")
CELLS = 4
"""What the proposal says, what we do, by which test it is shown, what is different and why."""

DECISIONS = ["D25", "D26", "D27", "D28", "D29", "D30", "D31"]
CORRECTED = [
    "two overlapping classes in one request",
    "its prose says",
    "no units",
    "does not say what becomes",
    "added, removed and replaced",
    "what is requested grows",
]


@pytest.fixture(scope="module")
def section() -> str:
    _, found, rest = PAGE.read_text(encoding="utf-8").partition(TITLE)
    assert found
    return rest.split("\n## ", maxsplit=1)[0]


@pytest.fixture(scope="module")
def rows(section: str) -> list[list[str]]:
    """The cells of each row, without heads."""
    lines = re.findall(r"^\|(?! ---| the proposal )(.*)\|$", section, re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines]


def test_every_test_that_the_page_names_is_there(section: str) -> None:
    named = NAMED.findall(section)
    missing = {
        f"{file}::{name}"
        for file, name in named
        if not (TESTS / file).is_file() or f"def {name}(" not in (TESTS / file).read_text(encoding="utf-8")
    }
    assert missing == set()


def test_every_sentence_has_its_row_with_a_test(rows: list[list[str]]) -> None:
    assert len(rows) == 62
    for row in rows:
        assert len(row) == CELLS, row
        assert row[0], row
        assert row[1], row
        assert NAMED.search(row[2]), row


def test_every_decision_and_every_corrected_defect_is_said(rows: list[list[str]]) -> None:
    said = [row[-1] for row in rows]
    assert [each for each in DECISIONS if not any(each in cell for cell in said)] == []
    corrected = [cell for cell in said if cell.startswith("corrected")]
    assert len(corrected) == len(CORRECTED)
    assert [each for each in CORRECTED if not any(each in cell for cell in corrected)] == []


@pytest.mark.parametrize("module", ["test_resource_classes", "test_resource_class_events"])
def test_every_test_of_the_proposal_is_named(section: str, module: str) -> None:
    file = f"system/{module}.py"
    there = re.findall(r"^def (test_\w+)\(", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE)
    named = {name for of, name in NAMED.findall(section) if of == file}
    assert set(there) - named == set()
