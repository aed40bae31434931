"""Reading the operator's rule documents strictly: every fault names the place in the configuration."""

from collections.abc import Mapping, Sequence

from rm_service.domain.tags import key_fault


class RuleError(ValueError):
    """A rule document is wrong. `path` is the place, like `label_rules[3].kind`; `reason` says why."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}")


def read_object(document: object, path: str, known: Sequence[str]) -> Mapping[str, object]:
    """An object that has none but the known keys; an absent document (None) is empty."""
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise RuleError(path, "must be an object")
    for key in document:
        if key not in known:
            raise RuleError(f"{path}.{key}", f"unknown; known are {', '.join(known)}")
    return document


def read_list(document: object, path: str) -> list[object]:
    """A list; an absent document (None) is empty."""
    if document is None:
        return []
    if not isinstance(document, list | tuple):
        raise RuleError(path, "must be a list")
    return list(document)


def read_text(document: object, path: str) -> str:
    """A text that is not empty."""
    if not isinstance(document, str) or not document:
        raise RuleError(path, "must be a text that is not empty")
    return document


def read_tag_key(document: object, path: str) -> str:
    """A tag key."""
    key = read_text(document, path)
    fault = key_fault(key)
    if fault:
        raise RuleError(path, fault)
    return key


def read_tag_keys(document: object, path: str, at_most: int) -> frozenset[str]:
    """A list of different tag keys, possibly empty."""
    keys = [read_tag_key(key, f"{path}[{at}]") for at, key in enumerate(read_list(document, path))]
    if len(set(keys)) < len(keys):
        raise RuleError(path, "names a tag key twice")
    if len(keys) > at_most:
        raise RuleError(path, f"at most {at_most} tag keys are allowed")
    return frozenset(keys)
