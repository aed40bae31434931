"""What a client wants to read: the objects, or the rows of a table, or only their metadata.

Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from rm_service.facades.kubernetes.group import META_GROUP
from rm_service.facades.kubernetes.statuses import not_acceptable

JSON = "application/json"
YAML = "application/yaml"
DISCOVERY_GROUP = "apidiscovery.k8s.io"
_ANY = frozenset({"", "*/*", "application/*", JSON})


class View(StrEnum):
    """What of an object is shown."""

    OBJECT = "object"
    TABLE = "table"
    METADATA = "metadata"


class Include(StrEnum):
    """What a row of a table carries beside its cells (`includeObject`)."""

    NONE = "None"
    METADATA = "Metadata"
    OBJECT = "Object"


@dataclass(frozen=True, slots=True)
class Form:
    """How objects are written. `include` is about tables."""

    view: View = View.OBJECT
    include: Include = Include.METADATA


_VIEWS = {
    "Table": View.TABLE,
    "PartialObjectMetadata": View.METADATA,
    "PartialObjectMetadataList": View.METADATA,
}


def read_view(accept: str) -> View:
    """The first view that the header `Accept` asks for and that there is. Raises StatusError (406)."""
    for media_type, parameters in _ranges(accept):
        if media_type not in _ANY:
            continue
        if "as" not in parameters:
            return View.OBJECT
        view = _VIEWS.get(parameters["as"])
        if view is not None and parameters.get("g") == META_GROUP and parameters.get("v") == "v1":
            return view
    raise not_acceptable()


def read_discovery_version(accept: str) -> str | None:
    """In which version the client wants to have all groups in one document; None: group by group.

    Raises StatusError (406).
    """
    acceptable = False
    for media_type, parameters in _ranges(accept):
        if media_type not in _ANY:
            continue
        if "as" not in parameters:
            return None
        acceptable = True
        if parameters["as"] == "APIGroupDiscoveryList" and parameters.get("g") == DISCOVERY_GROUP:
            version = parameters.get("v")
            if version in {"v2", "v2beta1"}:
                return version
    if acceptable:
        return None
    raise not_acceptable()


def check_accept(accept: str) -> None:
    """Raise StatusError (406) if the client takes no JSON."""
    if all(media_type not in _ANY for media_type, _ in _ranges(accept)):
        raise not_acceptable()


def media_type_of(content_type: str) -> str:
    """The media type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def _ranges(accept: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Each media range with its parameters, as they stand; weights are left aside, as kubectl sends none."""
    for each in accept.split(","):
        media_type, *parameters = [part.strip() for part in each.split(";")]
        pairs = [part.partition("=") for part in parameters]
        yield media_type.lower(), {name.strip().lower(): value.strip(' "') for name, _, value in pairs}
