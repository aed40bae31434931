"""`rm-service labels`: the accounts, with their balances."""

from collections.abc import Iterator
from typing import Any

import click
from rich.console import RenderableType

from rm_service.api_client import Document
from rm_service.commands.connection import Service, asks_service
from rm_service.commands.paging import next_page, page_options
from rm_service.commands.tables import balances, tags_text


@click.command()
@click.option("--selector", help="Only labels whose tags fit, e.g. 'user=alice' or '!node'.")
@page_options
@asks_service
def labels(service: Service, selector: str | None, page: dict[str, Any]) -> None:
    """List the labels that applications are charged to, with their balances."""
    service.show(service.client.get("/labels", {"selector": selector, **page}), labels_view)


def labels_view(document: Document) -> Iterator[RenderableType]:
    """A line for each label and dimension."""
    records = [
        ([tags_text(label["tags"]), label.get("applications")], label | _external(label))
        for label in document["items"]
    ]
    yield balances(["label", "apps"], records, right=["apps"])
    yield from next_page(document)


def _external(label: Document) -> Document:
    """What an external manager shows there that is not known to be ours; what it does not show of ours."""
    external = label.get("external")
    return {name: external[name] for name in ("others", "unseen")} if external else {}
