"""`rm-service engines`: what was started, where, and for which application."""

from collections.abc import Iterator
from typing import Any

import click
from rich.console import RenderableType

from rm_service.api_client import Document
from rm_service.commands.connection import Service, asks_service
from rm_service.commands.paging import next_page, page_options
from rm_service.commands.tables import amounts_text, moment_text, table, tags_text


@click.command()
@click.option("--selector", help="Only engines whose tags fit, e.g. 'engineType=spark-3.3'.")
@page_options
@asks_service
def engines(service: Service, selector: str | None, page: dict[str, Any]) -> None:
    """List the engines that run."""
    service.show(service.client.get("/engines", {"selector": selector, **page}), engines_view)


def engines_view(document: Document) -> Iterator[RenderableType]:
    """A line for each engine."""
    rows = [
        [
            one["instance"],
            one.get("node"),
            amounts_text(one.get("resource")),
            tags_text(one.get("tags") or {}),
            moment_text(one.get("last_heartbeat")),
            one.get("application"),
        ]
        for one in document["items"]
    ]
    yield table(["engine", "node", "resource", "tags", "last heartbeat", "application"], rows)
    yield from next_page(document)
