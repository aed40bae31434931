"""`rm-service resource-managers`: who has registered through the Scheduler Interface."""

from collections.abc import Iterator

import click
from rich.console import RenderableType
from rich.text import Text

from rm_service.api_client import Document
from rm_service.commands.connection import Service, asks_service
from rm_service.commands.tables import moment_text, table


@click.command("resource-managers")
@asks_service
def resource_managers(service: Service) -> None:
    """List the resource managers of the Scheduler Interface."""
    service.show(service.client.get("/resource-managers"), resource_managers_view)


def resource_managers_view(document: Document) -> Iterator[RenderableType]:
    """A line for each resource manager."""
    if not document["items"]:
        yield Text("no resource manager has registered")
        return
    rows = [
        [
            one["id"],
            one["state"],
            one.get("dialect"),
            one.get("version"),
            one.get("policy_group"),
            moment_text(one.get("registered_at")),
            one["registrations"],
        ]
        for one in document["items"]
    ]
    heads = ["id", "state", "dialect", "version", "policy group", "last registered", "times"]
    yield table(heads, rows, right=["times"])
