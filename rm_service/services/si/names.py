"""What a client's things are called in the ledger: names, and the tags that they carry."""

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote

from rm_service.domain.amounts import DEVICE, PORT
from rm_service.domain.tags import MAX_VALUE_LENGTH, key_fault, value_fault
from rm_service.domain.view import SLOT

DEFAULT_PARTITION = "default"
REQUIRED_NODE = "yunikorn.apache.org/requiredNode"
NODE_SELECTOR = "rm-service/nodeSelector"
"""An allocation tag of ours: a selector over the attributes and tags of nodes."""
CONTAINER_IMAGE = "si/container-image"
CONTAINER_PORTS = "si/container-ports"
FOREIGN = "foreign"
CREATION_TIME = "creationTime"

RESERVED = frozenset(
    {"partition", "app", "queue", "user", "group", "node", "taskGroup", "allocationKey", "nodePool"}
)
"""Tags that only we set: they decide what is charged, or name what was asked for."""
KEPT_UNDER = "tag/"
"""A tag from outside that is named like one of ours is kept under this beginning."""
MAX_OWN_TAGS = 48
_SAFE = "[]@:+= ,"


def partition_name(rm_id: str, name: str) -> str:
    """The partition as the ledger knows it: each RM has its own, whatever it calls them, in lower case."""
    if name.startswith("["):
        owner, _, name = name.rpartition("]")
        return f"{owner}]{name.lower()}"
    return f"[{rm_id}]{name.lower() or DEFAULT_PARTITION}"


def plain_partition(partition: str) -> str:
    """The name that the RM's own configuration has for it."""
    return partition.rpartition("]")[2]


def application_name(partition: str, application: str) -> str:
    """The name of an application within the ledger."""
    return f"{_quoted(partition)}/{_quoted(application)}"


def allocation_name(partition: str, application: str, key: str) -> str:
    """The name that an ask and its allocations share. Without an application they stand for themselves."""
    return f"{_quoted(partition)}/{_quoted(application)}/{_quoted(key)}"


def outside_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Those of an RM's tags that can be tags of the ledger.

    Left out - they stay in the request, and are given back - is what is too long or no text for a tag, and
    what is beyond the first 48 by name.
    """
    kept: dict[str, str] = {}
    for key in sorted(tags) if len(tags) > MAX_OWN_TAGS else tags:
        name = f"{KEPT_UNDER}{key}" if key in RESERVED else key
        if len(kept) < MAX_OWN_TAGS and key_fault(name) is None and value_fault(tags[key]) is None:
            kept[name] = tags[key]
    return kept


def printable(text: str) -> str:
    """A name that may be none, as it can stand in a row."""
    return text[:MAX_VALUE_LENGTH] if value_fault(text[:MAX_VALUE_LENGTH]) is None else ""


def tag_fault(*values: str) -> str | None:
    """What is wrong with names that become values of our own tags, or None."""
    for value in values:
        fault = value_fault(value)
        if fault is not None:
            return f"{value[:40]!r}: {fault}"
    return None


def resource_fault(*names: str) -> str | None:
    """What is wrong with the names of an RM's resources, or None."""
    for name in names:
        if not name:
            return "a resource needs a name"
        if name == SLOT or name.startswith((PORT, DEVICE)):
            return f"{name[:40]!r} is counted by the ledger itself"
    return tag_fault(*names)


@lru_cache(maxsize=65_536)
def _quoted(text: str) -> str:
    return quote(text, safe=_SAFE)
