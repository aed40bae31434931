"""`rm-service explain`: would it fit, where, and if not: what is short, and who holds it."""

from collections.abc import Iterator
from typing import Any

import click
from rich.console import RenderableType
from rich.text import Text

from rm_service.api_client import Document
from rm_service.commands.connection import Service, asks_service
from rm_service.commands.devices import held_devices
from rm_service.commands.parameters import read_amounts, read_classes, read_tags
from rm_service.commands.problems import shortfalls_table
from rm_service.commands.tables import amount_text, plain, table, tags_text
from rm_service.domain.device_strategies import STRATEGIES as DEVICE_STRATEGIES
from rm_service.domain.placement import STRATEGIES


@click.command()
@click.option(
    "--tag",
    "tags",
    metavar="KEY=VALUE",
    multiple=True,
    callback=read_tags,
    help="A tag of the application; may be repeated.",
)
@click.option(
    "--resource",
    metavar="DIMENSION=QUANTITY,...",
    callback=read_amounts,
    help="The amounts, e.g. memory=2Gi,vcore=500m.",
)
@click.option(
    "--class",
    "classes",
    metavar="NAME=QUANTITY",
    multiple=True,
    callback=read_classes,
    help="So many devices of a resource class, or a fraction of one (500m); may be repeated.",
)
@click.option(
    "--device-strategy",
    type=click.Choice(DEVICE_STRATEGIES),
    help="Which devices of a node are taken; the default is a setting of the service.",
)
@click.option(
    "--selector", help="Ask for a node that fits this selector, instead of naming one by --tag node=."
)
@click.option("--strategy", type=click.Choice(STRATEGIES), default="first_fit", show_default=True)
@click.option("--priority", type=int, default=0, show_default=True)
@asks_service
def explain(
    service: Service,
    tags: dict[str, str],
    resource: dict[str, int] | None,
    classes: dict[str, str],
    device_strategy: str | None,
    selector: str | None,
    strategy: str,
    priority: int,
) -> None:
    """Say whether an application would be granted just now, without asking for it."""
    if resource is None and not classes:
        raise click.UsageError("say what is asked for: --resource, --class, or both")
    asked = {"resource": resource, "classes": classes or None, "device_strategy": device_strategy}
    body: dict[str, Any] = {"tags": tags, "priority": priority}
    body |= {name: value for name, value in asked.items() if value is not None}
    if selector is not None:
        body["placement"] = {"selector": selector, "strategy": strategy}
    service.show(service.client.post("/applications/explain", body), explanation_view)


def explanation_view(document: Document) -> Iterator[RenderableType]:
    """The verdict, then every shortfall, and who holds most of what is short."""
    for warning in document.get("warnings") or []:
        yield Text(f"warning: {plain(warning)}")
    if document["would_fit"]:
        node = document.get("node")
        yield Text(f"would be granted on {plain(node)}" if node else "would be granted")
        yield from held_devices(document)
        return
    yield Text(f"would not be granted: {plain(document.get('detail'))}")
    if document.get("shortfalls"):
        yield shortfalls_table(document["shortfalls"])
    if document.get("waiters_ahead"):
        yield Text(f"\n{document['waiters_ahead']:,} would wait before it")
    for full in document.get("largest_holders") or []:
        dimension = full["dimension"]
        yield Text(f"\n{plain(dimension)} of {tags_text(full['label'])} is held by")
        rows = [
            [one["id"], one["state"], amount_text(dimension, one["amount"]), tags_text(one["tags"])]
            for one in full["holders"]
        ]
        yield table(["id", "state", dimension, "tags"], rows, right=[dimension], whole=["id"])
