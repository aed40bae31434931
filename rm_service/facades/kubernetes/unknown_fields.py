"""Fields that an object does not have: found, told or refused as `fieldValidation` says, and left out."""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from rm_service.facades.kubernetes.group import KIND, VERSION
from rm_service.facades.kubernetes.statuses import StatusError, bad_request

MAX_TOLD = 32
_MAX_SHOWN = 64

Shape = Mapping[str, Any] | list[Any] | None
"""Of an object its fields, of a list the shape of its entries, None for what is not looked into."""


class FieldValidation(StrEnum):
    """What becomes of fields that are unknown or stand twice."""

    STRICT = "Strict"
    WARN = "Warn"
    IGNORE = "Ignore"


_METADATA = (
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)
CLASS_SHAPE: Shape = {
    "apiVersion": None,
    "kind": None,
    "metadata": dict.fromkeys(_METADATA),
    "spec": {"resourceSelector": [{"matchExpressions": [dict.fromkeys(("key", "operator", "values"))]}]},
    "status": None,
}


def without_unknown(document: object, shape: Shape, unknown: list[str], path: str = "") -> Any:  # noqa: ANN401 - it is JSON
    """The document without the fields that its shape does not have; their paths are added to `unknown`."""
    if isinstance(shape, Mapping) and isinstance(document, Mapping):
        kept = {}
        for name, value in document.items():
            below = f"{path}.{_shown(name)}" if path else _shown(name)
            if name in shape:
                kept[name] = without_unknown(value, shape[name], unknown, below)
            else:
                unknown.append(below)
        return kept
    if isinstance(shape, list) and isinstance(document, Sequence) and not isinstance(document, str | bytes):
        return [
            without_unknown(each, shape[0], unknown, f"{path}[{number}]")
            for number, each in enumerate(document)
        ]
    return document


def warnings_of(
    validation: FieldValidation, unknown: Sequence[str], doubles: Sequence[str]
) -> list[tuple[str, str]]:
    """The headers that warn of these fields. Raises StatusError (400) where they are not to be there."""
    faults = [f"unknown field {_quoted(path)}" for path in unknown]
    faults += [f"duplicate field {_quoted(_shown(name))}" for name in doubles]
    if not faults or validation is FieldValidation.IGNORE:
        return []
    told = faults[:MAX_TOLD]
    if validation is FieldValidation.STRICT:
        raise _strict(told)
    return [("Warning", f"299 - {_quoted(fault)}") for fault in told]


def _strict(faults: Sequence[str]) -> StatusError:
    decoding = f"strict decoding error: {', '.join(faults)}"
    return bad_request(f'{KIND} in version "{VERSION}" cannot be handled as a {KIND}: {decoding}')


def _quoted(text: str) -> str:
    """In double quotes and ASCII, whatever the text holds: it stands in a header."""
    return json.dumps(text)


def _shown(name: object) -> str:
    return str(name)[:_MAX_SHOWN]
