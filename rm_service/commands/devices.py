"""How devices are shown: what is free of them, and what an application or a node's agent has of them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from rm_service.api_client import Document
from rm_service.commands.tables import BLANK, plain, table, tags_text


def attributes_text(attributes: Mapping[str, Any]) -> str:
    """`Kind=nvidia-gpu, memory=40G`; a value that says its kind by its text alone."""
    return tags_text({key: _value(value) for key, value in attributes.items()})


def _value(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(map(str, value.values())) if isinstance(value, Mapping) else value


def free_devices(node: Document) -> Iterator[RenderableType]:
    """What is free of each device of a node: whole units, and the largest part that one unit has left."""
    found = node.get("free_devices")
    if not found:
        return
    known = {device["name"]: device.get("attributes") or {} for device in node.get("devices") or []}
    rows = [
        [
            device["name"],
            device["count"],
            device["free"],
            device["largest_fraction"],
            attributes_text(known[device["name"]]) if device["name"] in known else "gone, and still held",
        ]
        for device in found
    ]
    yield Text("\ndevices")
    yield table(
        ["device", "count", "free", "fraction", "attributes"], rows, right=["count", "free", "fraction"]
    )


def held_rows(held: Iterable[Mapping[str, Any]]) -> Iterator[list[object]]:
    """Class, device, quantity and units of each."""
    for each in held:
        units = " ".join(str(unit["unit"]) for unit in each["units"])
        yield [each["class"], each["device"], each["quantity"], units]


HELD = ("class", "device", "quantity", "units")


def held_devices(document: Document) -> Iterator[RenderableType]:
    """The devices that an application has, or would be given."""
    if document.get("devices"):
        yield Text("\ndevices")
        yield table(HELD, held_rows(document["devices"]), right=["quantity"])


def assignments_view(document: Document) -> Iterator[RenderableType]:
    """A line for each device that an application holds on a node."""
    rows: list[list[object]] = []
    for item in document["items"]:
        lead: list[object] = [item["application"], item["state"]]
        for held in held_rows(item["devices"]):
            rows.append([*lead, *held])
            lead = [BLANK, BLANK]
    if rows:
        yield table(["application", "state", *HELD], rows, right=["quantity"], whole=["application"])
    else:
        yield Text(f"nobody holds devices there, as of event {plain(document['seq'])}")
