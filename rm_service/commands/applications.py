"""`rm-service applications`: what was asked for, and what became of it."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import click
from rich.console import RenderableType
from rich.text import Text

from rm_service.api_client import Document
from rm_service.commands.connection import Service, asks_service
from rm_service.commands.devices import held_devices
from rm_service.commands.paging import next_page, page_options
from rm_service.commands.tables import amounts_text, facts, moment_text, table, tags_text
from rm_service.domain.application import State


@click.command()
@click.argument("application_id", metavar="[ID]", required=False)
@click.option(
    "--state",
    "states",
    type=click.Choice([state.value for state in State]),
    multiple=True,
    help="Only those in this state; may be repeated.",
)
@click.option("--selector", help="Only those whose tags fit, e.g. 'user=alice,creator=IDE'.")
@page_options
@asks_service
def applications(
    service: Service,
    application_id: str | None,
    states: tuple[str, ...],
    selector: str | None,
    page: dict[str, Any],
) -> None:
    """List applications, or show all about the one with that ID."""
    if application_id is not None:
        path = f"/applications/{quote(application_id, safe='')}"
        service.show(service.client.get(path), application_view)
        return
    query = {"state": ",".join(states) or None, "tag": selector, **page}
    service.show(service.client.get("/applications", query), applications_view)


def applications_view(document: Document) -> Iterator[RenderableType]:
    """A line for each application."""
    rows = [
        [one["id"], one["state"], amounts_text(one.get("resource")), tags_text(one["tags"])]
        for one in document["items"]
    ]
    yield table(["id", "state", "resource", "tags"], rows, whole=["id", "state"])
    yield from next_page(document)


def application_view(one: Document) -> Iterator[RenderableType]:
    """Everything that is known of one application."""
    pairs = [
        ("id", one["id"]),
        ("state", one["state"]),
        ("reason", one.get("reason")),
        ("position", one.get("position")),
        ("node", one.get("node")),
        ("engine", one.get("engine")),
        ("resource", amounts_text(one.get("resource"))),
        ("requested", amounts_text(one.get("requested"))),
        ("classes", tags_text(one.get("classes") or {})),
        ("tags", tags_text(one["tags"])),
        ("priority", one.get("priority")),
        ("over limit", "yes" if one.get("over_limit") else None),
        ("lock deadline", moment_text(one.get("lock_deadline"))),
        ("wait deadline", moment_text(one.get("wait_deadline"))),
    ]
    yield facts([(name, value) for name, value in pairs if value not in {None, "-"}])
    yield from held_devices(one)
    if one.get("labels"):
        yield Text("\ncharged to")
        yield table(["label"], [[tags_text(label)] for label in one["labels"]])
    if one.get("transitions"):
        yield Text("\nhistory")
        rows = [[moment_text(step["time"]), step["state"]] for step in one["transitions"]]
        yield table(["time", "state"], rows)
