"""`rm-service nodes`: what is registered, and what is free there."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import click
from rich.console import RenderableType

from rm_service.api_client import Document
from rm_service.commands.connection import Service, asks_service
from rm_service.commands.devices import assignments_view, free_devices
from rm_service.commands.paging import next_page, page_options
from rm_service.commands.tables import balances, facts, moment_text, tags_text


@click.command()
@click.argument("instance", required=False)
@click.option(
    "--partition", help="Only this partition's nodes; without it INSTANCE is one of the ledger's own."
)
@click.option("--selector", help="Only nodes whose tags and attributes fit, e.g. 'model in (T4,A10)'.")
@click.option("--assignments", is_flag=True, help="Who holds which devices of INSTANCE.")
@page_options
@asks_service
def nodes(
    service: Service,
    instance: str | None,
    partition: str | None,
    selector: str | None,
    page: dict[str, Any],
    *,
    assignments: bool,
) -> None:
    """List the nodes with what they have left, or show all about one INSTANCE."""
    if instance is None:
        if assignments:
            raise click.UsageError("--assignments are those of one INSTANCE")
        if partition is not None:
            quoted = partition.replace("\\", "\\\\").replace('"', '\\"')
            selector = ",".join([f'partition="{quoted}"', *([selector] if selector else [])])
        service.show(service.client.get("/nodes", {"selector": selector, **page}), nodes_view)
        return
    path, whose = f"/nodes/{quote(instance, safe='')}", {"partition": partition}
    if assignments:
        service.show(service.client.get(f"{path}/assignments", whose), assignments_view)
    else:
        service.show(service.client.get(path, whose), node_view)


def nodes_view(document: Document) -> Iterator[RenderableType]:
    """A line for each node and dimension."""
    items = document["items"]
    if any(node.get("partition") for node in items):
        records = [([node["instance"], node["partition"] or "", _state(node)], node) for node in items]
        yield balances(["node", "partition", "state"], records)
    else:
        yield balances(["node", "state"], [([node["instance"], _state(node)], node) for node in items])
    yield from next_page(document)


def node_view(node: Document) -> Iterator[RenderableType]:
    """Everything that is known of one node."""
    yield facts(
        [
            ("node", node["instance"]),
            ("partition", node.get("partition")),
            ("state", _state(node)),
            ("reason", node.get("reason")),
            ("type", node.get("resource_type")),
            ("tags", tags_text(node.get("tags") or {})),
            ("attributes", tags_text(node.get("attributes") or {})),
            ("last heartbeat", moment_text(node.get("last_heartbeat"))),
        ]
    )
    yield balances([], [([], node)])
    yield from free_devices(node)


def _state(node: Document) -> str:
    return f"{node['state']}{', over its limit' if node.get('over_limit') else ''}"
