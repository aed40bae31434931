"""`rm-service classes`: how many devices of each resource class there are, and why."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import click
from rich.console import RenderableType
from rich.text import Text

from rm_service.api_client import Document
from rm_service.commands.connection import Service, asks_service
from rm_service.commands.devices import attributes_text
from rm_service.commands.show_by_default import ShowByDefault
from rm_service.commands.tables import plain, table

STANDING = ("allocatable", "requested", "free", "uncomparable")


@click.group(cls=ShowByDefault)
def classes() -> None:
    """List and explain resource classes: how many devices each selects, and how many of them are free.

    `classes` lists them, `classes NAME` shows one. A device counts in every class that selects it.
    Classes are created and removed with kubectl.
    """


@classes.command()
@click.argument("name", required=False)
@asks_service
def show(service: Service, name: str | None) -> None:
    """List all classes, or show one."""
    if name is None:
        service.show(service.client.get("/classes"), classes_view)
    else:
        service.show(service.client.get(_path(name)), lambda one: classes_view({"items": [one]}))


@classes.command()
@click.argument("name")
@asks_service
def explain(service: Service, name: str) -> None:
    """Show which devices the class NAME selects and why, and what other classes may take of them."""
    service.show(service.client.get(f"{_path(name)}/explain"), explained_view)


def _path(name: str) -> str:
    return f"/classes/{quote(name, safe='')}"


def classes_view(document: Document) -> Iterator[RenderableType]:
    """A line for each class."""
    if not document["items"]:
        yield Text("there are no resource classes")
        return
    rows = [[one["name"], *[one[amount] for amount in STANDING]] for one in document["items"]]
    yield table(["name", *STANDING], rows, right=STANDING)


def explained_view(document: Document) -> Iterator[RenderableType]:
    """How the class stands, what decided for each set of attributes, and what it shares."""
    yield from classes_view({"items": [document]})
    for reason in document["uncomparable_reasons"]:
        yield Text(f"cannot be compared: {plain(reason)}")
    for signature in document["signatures"]:
        if signature["devices"] or signature["requested"] != "0":
            yield from _signature(signature)
    if document["overlaps"]:
        yield Text("\nshared with")
        columns = ["class", "shared", "shared free", "free without them"]
        rows = [
            [one["class"], one["shared"], one["shared_free"], one["free_without_shared"]]
            for one in document["overlaps"]
        ]
        yield table(columns, rows, right=columns[1:])


def _signature(signature: dict[str, Any]) -> Iterator[RenderableType]:
    """The devices of one set of attributes, and each expression with both values."""
    selectors = signature["selectors"]
    if signature["selected"]:
        verdict = "selected"
    elif any(selector["outcome"] == "uncomparable" for selector in selectors):
        verdict = "not selected, because it cannot be compared"
    else:
        verdict = "not selected"
    yield Text(
        f"\n{plain(signature['signature'])}: {verdict}; devices: {signature['devices']:,},"
        f" requested: {plain(signature['requested'])}"
    )
    yield Text(attributes_text(signature["attributes"]))
    rows = [
        [number, expression["outcome"], expression["text"], expression["why"]]
        for number, selector in enumerate(selectors, 1)
        for expression in selector["expressions"] or [{"outcome": "fails", "text": "", "why": "it is empty"}]
    ]
    if any(why for *_, why in rows):
        yield table(["selector", "outcome", "device OP class", "why"], rows, right=["selector"])
    elif rows:
        yield table(["selector", "outcome", "device OP class"], [row[:3] for row in rows], right=["selector"])
