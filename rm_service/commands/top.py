"""`rm-service top`: who holds most just now, looked at again and again."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from rm_service.api_client import Document
from rm_service.commands.connection import Service, asks_service
from rm_service.commands.tables import plain
from rm_service.commands.usage import usage_view


@click.command()
@click.option("--by", default="user", show_default=True, help="The tag key to sum by.")
@click.option("--where", help="Only what fits this selector.")
@click.option("--dimension", default="memory", show_default=True, help="Who holds most of this stands first.")
@click.option("--rows", type=click.IntRange(1), default=10, show_default=True, help="How many are shown.")
@click.option(
    "--seconds", type=click.FloatRange(min=0.2), default=2, show_default=True, help="Between two looks."
)
@asks_service
def top(service: Service, by: str, where: str | None, dimension: str, *, rows: int, seconds: float) -> None:
    """Show the largest holders, live, until Ctrl-C; with --json or when piped: once."""
    query = {"by": by, "where": where}
    if service.as_json or not service.console.is_terminal:
        service.show(
            service.client.get("/usage", query),
            lambda usage: top_view(usage, dimension, rows, service.client.url),
        )
        return
    try:
        with Live(console=service.console, screen=True, auto_refresh=False) as live:
            while True:
                usage = service.client.get("/usage", query)
                live.update(Group(*top_view(usage, dimension, rows, service.client.url)), refresh=True)
                time.sleep(seconds)
    except KeyboardInterrupt:
        return


def top_view(usage: Document, dimension: str, rows: int, url: str) -> Iterator[RenderableType]:
    """A headline, then the usage table of the largest holders of `dimension`."""
    held = sorted(usage["rows"], key=lambda row: _held(row, dimension), reverse=True)
    applications = sum(row["applications"] for row in held)
    now = datetime.now(UTC).strftime("%H:%M:%SZ")
    head = f"{plain(url)}  {now}  {len(held):,} x {','.join(usage['by'])}  {applications:,} applications"
    yield Text(head, style="bold")
    yield from usage_view({**usage, "rows": held[:rows]})


def _held(row: Document, dimension: str) -> int:
    """What the row's applications hold of a dimension, locked and used together."""
    parts = (row.get("locked") or {}, row.get("used") or {})
    return sum(part.get(dimension, 0) for part in parts)
