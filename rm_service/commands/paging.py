"""Lists come in pages: how many are shown, and how the next ones are asked for."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import click
from rich.console import RenderableType
from rich.text import Text

from rm_service.api_client import Document


def page_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --limit and --cursor; it is called with `page`, a part of the query."""

    @click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="How many.")
    @click.option("--cursor", help="Go on where the page before ended.")
    @functools.wraps(command)
    def with_page(*args: Any, limit: int, cursor: str | None, **options: Any) -> Any:  # noqa: ANN401
        return command(*args, page={"limit": limit, "cursor": cursor}, **options)

    return with_page


def next_page(document: Document) -> Iterator[RenderableType]:
    """The line below a list that says how it goes on, if it does."""
    if document.get("next_cursor"):
        yield Text(f"more: --cursor {document['next_cursor']}", style="dim")
