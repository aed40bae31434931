"""The fields that queue configurations are made of, read strictly: every fault names its place.

A scalar may come as the text that was written or as what YAML or JSON made of it. An absent field is None.
"""

import re
from collections.abc import Collection, Mapping

from rm_service.domain.amounts import INT64_MAX
from rm_service.domain.queue_config import ANY, AccessList, QueueConfigError
from rm_service.domain.tags import MAX_VALUE_LENGTH, key_fault

INT32_MAX = 2**31 - 1
MAX_RESOURCES = 100
APPLICATIONS = "apps"
"""The dimension in which the ledger counts applications."""

_SHOWN_RESOURCES = frozenset({"memory", "vcore", APPLICATIONS})
_NAME = re.compile(r"[A-Za-z0-9_:#/@\-]{1,64}")
_USER = re.compile(r"[_A-Za-z][A-Za-z0-9:#/_.@\-]*\$?")
_GROUP = re.compile(r"[_A-Za-z][A-Za-z0-9:_.\-]*")
_QUANTITY = re.compile(r"([0-9]{1,30}) *(|[kMGTPE]|[KMGTPE]i|m)")
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_SHOWN_FIELD = re.compile(r"[A-Za-z_]{1,32}")
_UNITS = {"": 1} | {
    suffix + binary: (1024 if binary else 1000) ** power
    for power, letter in enumerate("kMGTPE", 1)
    for suffix, binary in ((letter, ""), (letter.upper(), "i"))
}


def is_queue_name(text: str) -> bool:
    """Whether this can be the name of one queue: 1 to 64 letters, digits and `_ : # / @ -`."""
    return _NAME.fullmatch(text) is not None


def is_user_name(text: str) -> bool:
    """Whether this can be the name of a user."""
    return len(text) <= MAX_VALUE_LENGTH and _USER.fullmatch(text) is not None


def is_group_name(text: str) -> bool:
    """Whether this can be the name of a group."""
    return len(text) <= MAX_VALUE_LENGTH and _GROUP.fullmatch(text) is not None


def read_object(document: object, path: str, known: Collection[str] | None = None) -> dict[str, object]:
    """An object with text keys, and if `known` is given with none but these."""
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise QueueConfigError(path or "config", "must be an object")
    for key in document:
        if not isinstance(key, str):
            raise QueueConfigError(path or "config", "has a field whose name is not a text")
        if known is not None and key not in known:
            # What stands in the place of a field's name may be anything; only a plain word is repeated.
            place = f"{path}.{key}" if _SHOWN_FIELD.fullmatch(key) else path
            raise QueueConfigError(
                place.removeprefix(".") or "config", f"unknown field; known are {', '.join(known)}"
            )
    return dict(document)


def entry_place(path: str, at: int, name: str, shown: Collection[str]) -> str:
    """The place of an entry of a map whose names anybody may choose: its position, if it is not `shown`."""
    return f"{path}.{name}" if name in shown else f"{path}[{at}]"


def resource_place(path: str, at: int | None, name: str) -> str:
    """The place of a resource. Without a position it is that of the map, if the name is not shown."""
    if at is None:
        return f"{path}.{name}" if name in _SHOWN_RESOURCES else path
    return entry_place(path, at, name, _SHOWN_RESOURCES)


def read_list(document: object, path: str) -> list[object]:
    """A list."""
    if document is None:
        return []
    if not isinstance(document, list | tuple):
        raise QueueConfigError(path, "must be a list")
    return list(document)


def read_text(document: object, path: str) -> str:
    """A text, possibly empty."""
    if document is None:
        return ""
    if isinstance(document, int) and not isinstance(document, bool) and document.bit_length() <= 64:
        return str(document)
    if not isinstance(document, str):
        raise QueueConfigError(path, "must be a text")
    if len(document) > 4096:
        raise QueueConfigError(path, "is longer than 4096 characters")
    return document


def read_name(document: object, path: str) -> str:
    """The name of a queue or partition, in lower case."""
    text = read_text(document, path)
    if not is_queue_name(text):
        raise QueueConfigError(path, "must be 1 to 64 letters, digits and _ : # / @ -")
    return text.lower()


def read_user(document: object, path: str) -> str:
    """A user's name."""
    text = read_text(document, path)
    if not is_user_name(text):
        raise QueueConfigError(path, "is no user name")
    return text


def read_group(document: object, path: str) -> str:
    """A group's name."""
    text = read_text(document, path)
    if not is_group_name(text):
        raise QueueConfigError(path, "is no group name")
    return text


def read_flag(document: object, path: str, *, default: bool = False) -> bool:
    """True or false."""
    if document is None:
        return default
    if isinstance(document, bool):
        return document
    if document in {"true", "false"}:
        return document == "true"
    raise QueueConfigError(path, "must be true or false")


def read_whole(document: object, path: str, least: int, most: int) -> int:
    """A whole number from `least` to `most`."""
    text = read_text(document, path)
    if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
        raise QueueConfigError(path, f"must be a whole number from {least} to {most}")
    return int(text)


def read_applications(document: object, path: str) -> int | None:
    """How many applications at once; absent and 0 mean that this is not limited."""
    return None if document is None else read_whole(document, path, 0, INT64_MAX) or None


def read_weight(document: object, path: str) -> float:
    """A weight: a finite number that is not negative."""
    if isinstance(document, str) and re.fullmatch(r"[0-9]{1,15}(\.[0-9]{0,15})?", document):
        return float(document)
    if isinstance(document, int | float) and not isinstance(document, bool) and 0 <= document < 10**15:
        return float(document)
    raise QueueConfigError(path, "must be a number from 0 to 1e15")


def read_quantity(document: object, path: str, dimension: str) -> int:
    """Digits, spaces, one of k M G T P E Ki Mi Gi Ti Pi Ei; vcore counts cores and also takes m.

    Unlike `quantities.parse_quantity`, a bare number is not in base units: vcore 2 is 2000 milli-cores.
    """
    match = _QUANTITY.fullmatch(read_text(document, path))
    if match is None:
        raise QueueConfigError(path, "must be digits and a suffix among k, M, G, T, P, E, Ki, Mi ... Ei")
    digits, suffix = match.groups()
    milli = dimension == "vcore"
    if suffix == "m" and not milli:
        raise QueueConfigError(path, "only vcore is counted in thousandths (m)")
    amount = int(digits) if suffix == "m" else int(digits) * _UNITS[suffix] * (1000 if milli else 1)
    if amount > INT64_MAX:
        raise QueueConfigError(path, "is more than 2^63-1 base units")
    return amount


def read_amounts(document: object, path: str) -> dict[str, int]:
    """Quantities by resource name, in base units."""
    amounts: dict[str, int] = {}
    fields = read_object(document, path)
    if len(fields) > MAX_RESOURCES:
        raise QueueConfigError(path, f"at most {MAX_RESOURCES} resources are allowed")
    for at, (dimension, quantity) in enumerate(fields.items()):
        here = resource_place(path, at, dimension)
        if key_fault(dimension):
            raise QueueConfigError(path, "has a resource whose name is none")
        if dimension == APPLICATIONS:
            raise QueueConfigError(here, "is limited by maxapplications")
        amounts[dimension] = read_quantity(quantity, here, dimension)
    return amounts


def read_access_list(document: object, path: str) -> AccessList:
    """`users groups`: two lists with commas, divided by one space; `*` is everyone, empty is nobody."""
    text = read_text(document, path)
    if not text.strip():
        return AccessList()
    lists = text.split(" ")
    if len(lists) > 2:
        raise QueueConfigError(path, "must be a list of users, one space, a list of groups")
    if ANY in lists:
        return AccessList(everyone=True)
    users, groups = [[name for name in names.split(",") if name] for names in (*lists, "")[:2]]
    return AccessList(
        users=frozenset([read_user(user, path) for user in users]),
        groups=frozenset([read_group(group, path) for group in groups]),
    )
