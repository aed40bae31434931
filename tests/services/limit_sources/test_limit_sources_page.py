"""What docs/limit-sources.md shows is what is sent and read."""

import json
import re
from pathlib import Path

from rm_service.domain.limits import LimitTerms
from rm_service.services.limit_sources.answers import question, read_answer

PAGE = Path(__file__).parents[3] / "docs" / "limit-sources.md"


def shown(name: str) -> str:
    found = re.search(rf"```json {name}\n(.+?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_question_is_the_one_that_is_sent() -> None:
    document = json.loads(shown("question"))
    assert json.loads(question(document["combinations"])) == document


def test_the_answer_is_read() -> None:
    combinations = json.loads(shown("question"))["combinations"]
    said = read_answer(shown("answer").encode(), combinations)
    total = {"memory": 64 * 2**30, "vcore": 32_000}
    assert said.limits == [LimitTerms({"user": "alice"}, total, {"memory": 2**30})]
