"""`rm-service audit`: whether the books balance."""

import sys
from collections.abc import Iterator, Mapping

import click
from rich.console import RenderableType
from rich.text import Text

from rm_service.api_client import Document
from rm_service.commands.connection import REFUSED, Service, asks_service
from rm_service.commands.tables import plain, table, tags_text


@click.command()
@asks_service
def audit(service: Service) -> None:
    """Count everything anew and compare it with the books; exits with 1 if they differ."""
    verdict = service.client.get("/audit")
    service.show(verdict, audit_view)
    if not verdict["consistent"]:
        sys.exit(REFUSED)


def audit_view(verdict: Document) -> Iterator[RenderableType]:
    """The verdict in one line, then each difference."""
    yield Text(verdict_text(verdict))
    differences: list[Document] = verdict["differences"]
    columns = list(
        dict.fromkeys(name for one in differences for name, value in one.items() if value is not None)
    )
    if differences:
        yield table(columns, [[_cell(one.get(name)) for name in columns] for one in differences])


def _cell(value: object) -> str:
    return tags_text(value) if isinstance(value, Mapping) else plain(value)


def verdict_text(verdict: Document) -> str:
    """`consistent: 12 labels and 3 applications checked`"""
    word = (
        "consistent"
        if verdict["consistent"]
        else f"NOT CONSISTENT: {len(verdict['differences'])} differences"
    )
    checked = (
        f"{verdict['labels_checked']:,} labels and {verdict['applications_checked']:,} applications checked"
    )
    return f"{word}; {checked}"
