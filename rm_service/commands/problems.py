"""A refusal for people: what was wrong, field by field, and what was short."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from rm_service.api_client import Document
from rm_service.commands.tables import amount_text, plain, table, tags_text

SHORT = ("requested", "left", "total", "protected", "locked", "used", "others")
SELDOM = frozenset({"protected", "others"})
"""Left out where they are 0 everywhere."""


def describe_problem(problem: Document) -> Iterator[RenderableType]:
    """A problem document (RFC 9457): its detail, then the faults of fields and the shortfalls."""
    detail = problem.get("detail") or problem.get("title") or f"status {problem.get('status')}"
    code = problem.get("code")
    yield Text(f"Refused: {plain(detail)}" + (f" ({plain(code)})" if code else ""))
    for path, faults in (problem.get("errors") or {}).items():
        yield Text(f"  {plain(path)}: {plain(' '.join(map(str, faults)))}")
    if problem.get("shortfalls"):
        yield shortfalls_table(problem["shortfalls"])


def shortfalls_table(shortfalls: Iterable[Mapping[str, Any]]) -> RenderableType:
    """Every label and dimension that is short, with the amounts that led to it.

    The reason is left out where it is nothing but `short`.
    """
    known = list(shortfalls)
    amounts = [name for name in SHORT if name not in SELDOM or any(one.get(name) for one in known)]
    reasons = ["because"] if any(one.get("reason", "short") != "short" for one in known) else []
    rows = [
        [
            tags_text(one["label"]),
            one["dimension"],
            *[amount_text(one["dimension"], one.get(name)) for name in amounts],
            *[str(one["reason"]).replace("_", " ") for _ in reasons],
        ]
        for one in known
    ]
    return table(["short on", "dimension", *amounts, *reasons], rows, right=amounts)
