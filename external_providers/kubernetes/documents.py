"""Reading parsed JSON of which only some is known: each fault names its field."""

from collections.abc import Mapping, Sequence
from typing import Any

from external_providers.base import MalformedError

Document = Mapping[str, Any]


def mapping(parent: Document, name: str, where: str) -> Document:
    """The object under `name`; one that is absent or null is empty."""
    found = parent.get(name)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise MalformedError(f"{where}.{name}: is no object, but {type(found).__name__}")
    return found


def objects(parent: Document, name: str, where: str) -> Sequence[Document]:
    """The objects in the list under `name`; one that is absent or null is empty."""
    found = parent.get(name)
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(item, Mapping) for item in found):
        raise MalformedError(f"{where}.{name}: is no list of objects")
    return found


def text(parent: Document, name: str, where: str) -> str:
    """The text under `name`; one that is absent or null is empty."""
    found = parent.get(name)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise MalformedError(f"{where}.{name}: is no text, but {type(found).__name__}")
    return found


def name_of(item: Document, kind: str) -> str:
    """What an object of the API is called. Raises MalformedError when it has no name."""
    found = text(mapping(item, "metadata", kind), "name", f"{kind}.metadata")
    if not found:
        raise MalformedError(f"{kind}.metadata.name: is missing")
    return found
