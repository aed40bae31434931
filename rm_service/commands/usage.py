"""`rm-service usage`: who uses what, by any tag."""

from collections.abc import Iterator

import click
from rich.console import RenderableType
from rich.text import Text

from rm_service.api_client import Document
from rm_service.commands.connection import Service, asks_service
from rm_service.commands.tables import balances


@click.command()
@click.option("--by", required=True, help="The tag key to sum by; several with commas: user,engineType.")
@click.option("--where", help="Only what fits this selector, e.g. 'engineType=spark-3.3,!test'.")
@click.option("--at", help="A past moment, RFC 3339: 2026-11-20T06:00:00Z. Default: now.")
@asks_service
def usage(service: Service, by: str, where: str | None, at: str | None) -> None:
    """Show what is locked and used by tag, with the limit and what is left of it."""
    service.show(service.client.get("/usage", {"by": by, "where": where, "at": at}), usage_view)


def usage_view(document: Document) -> Iterator[RenderableType]:
    """Each combination of values with its amounts; the order is the service's."""
    keys: list[str] = document["by"]
    if not document["rows"]:
        yield Text("nothing is held or limited there")
        return
    records = [
        ([*[row["tags"].get(key) for key in keys], row["applications"]], row) for row in document["rows"]
    ]
    yield balances([*keys, "apps"], records, right=["apps"])
