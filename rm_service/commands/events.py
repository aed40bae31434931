"""`rm-service events`: the history, and what happens now."""

import click

from rm_service.api_client import Document
from rm_service.commands.connection import Service, asks_service, print_json
from rm_service.commands.tables import amounts_text, moment_text, plain, tags_text


@click.command()
@click.option("--after", type=click.IntRange(0), help="Only events with a higher number than this.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="How many.")
@click.option("--follow", is_flag=True, help="Go on with new events as they come, until Ctrl-C.")
@asks_service
def events(service: Service, after: int | None, limit: int, *, follow: bool) -> None:
    """Print events, one a line: number, time, kind, subject, amounts, tags, and a warning if there is one.

    With --json and --follow each line is one event as JSON.
    """
    if follow:
        _follow(service, after)
        return
    page = service.client.get("/events", {"after": after, "limit": limit})
    if service.as_json:
        print_json(page)
        return
    for event in page["items"]:
        click.echo(event_line(event))


def _follow(service: Service, after: int | None) -> None:
    try:
        for event in service.client.events(after):
            if service.as_json:
                print_json(event)
            else:
                click.echo(event_line(event))
    except KeyboardInterrupt:
        return


def event_line(event: Document) -> str:
    """One event on one line."""
    parts = [
        f"{event['seq']:>8}",
        moment_text(event["time"]),
        f"{plain(event['kind']):<22}",
        plain(event["subject"]),
        amounts_text(event.get("resource")),
        tags_text(event.get("tags") or {}),
    ]
    warning = (event.get("detail") or {}).get("warning")
    if warning:
        parts.append(f"warning: {plain(warning)}")
    return "  ".join(parts)
