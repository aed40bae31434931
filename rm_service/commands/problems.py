"""A refusal for people: what was wrong, field by field, and what was short."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from rm_service.api_client import Document
from rm_service.commands.tables import amount_text, plain, table, tags_text

SHORT = ("requested", "left", "total", "protected", "locked", "used")


def describe_problem(problem: Document) -> Iterator[RenderableType]:
    """A problem document (RFC 9457): its detail, then the faults of fields and the shortfalls."""
    detail = problem.get("detail") or problem.get("title") or f"status {problem.get('status')}"
    code = problem.get("code")
    yield Text(f"Refused: {plain(detail)}" + (f" ({plain(code)})" if code else ""))
    for field, faults in field_errors(problem.get("errors")):
        yield Text(f"  {plain(field)}: {plain(faults)}")
    if problem.get("shortfalls"):
        yield shortfalls_table(problem["shortfalls"])


def field_errors(errors: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Each field's path with what is wrong there, from an object of any depth."""
    if isinstance(errors, Mapping):
        for key, inner in errors.items():
            yield from field_errors(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(errors, list):
        yield path, "; ".join(map(str, errors))
    elif errors is not None:
        yield path, str(errors)


def shortfalls_table(shortfalls: Iterable[Mapping[str, Any]]) -> RenderableType:
    """Every label and dimension that is short, with the amounts that led to it."""
    known = list(shortfalls)
    reasons = ["reason"] if any(one.get("reason", "short") != "short" for one in known) else []
    rows = [
        [
            tags_text(one["label"]),
            *[str(one["reason"]).replace("_", " ") for _ in reasons],
            one["dimension"],
            *[amount_text(one["dimension"], one.get(name)) for name in SHORT],
        ]
        for one in known
    ]
    return table(["short on", *reasons, "dimension", *SHORT], rows, right=SHORT)
