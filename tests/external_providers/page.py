"""The listings of docs/external-providers.md, by the titles that their fences bear."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
PAGE = ROOT / "docs" / "external-providers.md"


def listing(title: str) -> str:
    """The one listing of this title."""
    pattern = rf"^```[a-z]+ title={re.escape(title)}\n(.*?)^```$"
    (text,) = re.findall(pattern, PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert isinstance(text, str)
    return text
