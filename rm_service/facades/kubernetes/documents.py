"""Resource classes in the form that a client asked for: objects, rows of a table, metadata; one or a list."""

import time
from collections.abc import Sequence

from rm_service.domain.application import SECOND
from rm_service.domain.exact_quantities import format_milli
from rm_service.facades.kubernetes.durations import short_duration
from rm_service.facades.kubernetes.group import GROUP_VERSION, KIND, LIST_KIND, META_VERSION
from rm_service.facades.kubernetes.media_types import Form, Include, View
from rm_service.facades.kubernetes.objects import Document, class_metadata, class_object, free
from rm_service.services.resource_classes import ClassStanding

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark behind everything that was there when a watch began."""

_COLUMNS = (
    # name, type, format, priority (above 0: only shown by `-o wide`), description
    ("Name", "string", "name", 0, "Name of the class."),
    ("Allocatable", "string", "", 0, "Devices that the class selects, on nodes that are not lost."),
    ("Requested", "string", "", 0, "What of them is held, whoever asked for it and by which class."),
    ("Free", "string", "", 0, "What of them is left. Classes that overlap share it."),
    ("Age", "string", "", 0, "How long ago the class was created."),
    (
        "Uncomparable",
        "integer",
        "",
        1,
        "Devices of which it cannot be said whether the class selects them.",
    ),
)
_DEFINITIONS = [
    {"name": name, "type": kind, "format": form, "description": description, "priority": priority}
    for name, kind, form, priority, description in _COLUMNS
]


def one(form: Form, standing: ClassStanding, version: int) -> Document:
    """One class."""
    match form.view:
        case View.TABLE:
            return _table({"resourceVersion": str(version)}, [_row(form.include, standing, version)])
        case View.METADATA:
            return class_metadata(standing, version)
        case View.OBJECT:
            return class_object(standing, version)


def many(form: Form, standings: Sequence[ClassStanding], version: int, more: Document) -> Document:
    """A list; `more` is what else its metadata says, like where it goes on."""
    metadata: Document = {"resourceVersion": str(version), **more}
    match form.view:
        case View.TABLE:
            return _table(metadata, [_row(form.include, each, version) for each in standings])
        case View.METADATA:
            items = [class_metadata(each, version) for each in standings]
            return _list(META_VERSION, "PartialObjectMetadataList", metadata, items)
        case View.OBJECT:
            items = [class_object(each, version) for each in standings]
            return _list(GROUP_VERSION, LIST_KIND, metadata, items)


def bookmark(form: Form, version: int, *, end_of_initial: bool = False) -> Document:
    """What a watch says when it says only how far it has come."""
    metadata: Document = {"resourceVersion": str(version)}
    if end_of_initial:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    match form.view:
        case View.TABLE:
            cells: Document = {"cells": [""] * len(_COLUMNS), "object": _marked(metadata)}
            return _table({"resourceVersion": str(version)}, [cells] if end_of_initial else [])
        case View.METADATA:
            return _marked(metadata)
        case View.OBJECT:
            return {"apiVersion": GROUP_VERSION, "kind": KIND, "metadata": metadata}


def _marked(metadata: Document) -> Document:
    return {"apiVersion": META_VERSION, "kind": "PartialObjectMetadata", "metadata": metadata}


def _list(version: str, kind: str, metadata: Document, items: list[Document]) -> Document:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "items": items}


def _table(metadata: Document, rows: list[Document]) -> Document:
    return {
        "apiVersion": META_VERSION,
        "kind": "Table",
        "metadata": metadata,
        "columnDefinitions": _DEFINITIONS,
        "rows": rows,
    }


def _row(include: Include, standing: ClassStanding, version: int) -> Document:
    known, status = standing.resource_class, standing.status
    cells = [
        known.name,
        format_milli(status.allocatable),
        format_milli(status.requested),
        format_milli(free(status)),
        short_duration(int(time.time()) - known.created_at // SECOND),
        status.uncomparable,
    ]
    match include:
        case Include.NONE:
            return {"cells": cells}
        case Include.METADATA:
            return {"cells": cells, "object": class_metadata(standing, version)}
        case Include.OBJECT:
            return {"cells": cells, "object": class_object(standing, version)}
