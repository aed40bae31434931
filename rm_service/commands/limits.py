"""`rm-service limits`: how much the holders of a tag combination may hold together."""

from collections.abc import Iterator
from typing import Any

import click
from rich.console import RenderableType
from rich.text import Text

from rm_service.api_client import Document
from rm_service.commands.connection import Service, asks_service
from rm_service.commands.paging import next_page, page_options
from rm_service.commands.parameters import read_amounts, read_tags
from rm_service.commands.tables import balances, plain, tags_text


@click.group()
def limits() -> None:
    """List, set and remove limits."""


@limits.command("list")
@page_options
@asks_service
def list_limits(service: Service, page: dict[str, Any]) -> None:
    """List the limits with their ids, and whose word each is (source)."""
    service.show(service.client.get("/limits", page), limits_view)


@limits.command("set")
@click.option(
    "--tag",
    "tags",
    metavar="KEY=VALUE",
    multiple=True,
    required=True,
    callback=read_tags,
    help="A tag of the combination; may be repeated. The value * gives every value a limit of its own.",
)
@click.option(
    "--total",
    metavar="DIMENSION=QUANTITY,...",
    required=True,
    callback=read_amounts,
    help="The limit, e.g. memory=8Gi,vcore=4.",
)
@click.option(
    "--protected",
    metavar="DIMENSION=QUANTITY,...",
    callback=read_amounts,
    help="What must stay free of it when something is granted.",
)
@asks_service
def set_limit(
    service: Service,
    tags: dict[str, str],
    total: dict[str, int],
    protected: dict[str, int] | None,
) -> None:
    """Set the limit of a tag combination; what runs already is counted in."""
    body = {"tags": tags, "total": total, "protected": protected or {}}
    service.show(service.client.put("/limits", body), lambda limit: limits_view({"items": [limit]}))


@limits.command("remove")
@click.argument("limit_id", metavar="ID", type=click.IntRange(1))
@asks_service
def remove_limit(service: Service, limit_id: int) -> None:
    """Take the limit with that ID away."""
    service.client.delete(f"/limits/{limit_id}")
    service.show({"id": limit_id}, lambda limit: [Text(f"limit {plain(limit['id'])} is removed")])


def limits_view(document: Document) -> Iterator[RenderableType]:
    """A line for each limit and dimension."""
    if document["items"]:
        records = [
            ([limit["id"], tags_text(limit["tags"]), limit["source"]], limit) for limit in document["items"]
        ]
        yield balances(["id", "limit", "source"], records, right=["id"])
    else:
        yield Text("there are no limits")
    yield from next_page(document)
