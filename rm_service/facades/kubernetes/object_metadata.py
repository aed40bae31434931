"""The metadata that a client gives a class: its name, labels and annotations, checked as Kubernetes does."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from rm_service.domain.resource_classes import MAX_NAME_LENGTH, ResourceClassError, check_class_name
from rm_service.facades.kubernetes.statuses import Cause, bad_request, invalid_value

MAX_LABELS = 256
MAX_ANNOTATION_BYTES = 256 * 2**10
_MAX_PART = 63
_MAX_SHOWN = 64
_SUFFIX_LENGTH = 5
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels, so that no words come out."""

_PART = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")
_PART_RULE = "needs at most 63 letters, digits, '-', '_' or '.', and a letter or digit first and last"


@dataclass(frozen=True, slots=True)
class ObjectMetadata:
    """`generate_name` is how the name begins where `name` is empty."""

    name: str
    generate_name: str = ""
    uid: str | None = None
    version: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    def new_name(self) -> str:
        """The name, or one that begins as asked for and ends by chance."""
        if self.name:
            return self.name
        suffix = "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(_SUFFIX_LENGTH))
        return self.generate_name[: MAX_NAME_LENGTH - _SUFFIX_LENGTH] + suffix


def read_metadata(document: object, causes: list[Cause]) -> ObjectMetadata:
    """Read `metadata`; what is wrong is added to `causes`. Raises StatusError (400) if it is no object."""
    if document is None:
        document = {}
    if not isinstance(document, Mapping):
        raise bad_request("metadata: must be an object")
    texts = {name: _text(document, name) for name in ("name", "generateName", "uid", "resourceVersion")}
    name, generate_name = texts["name"] or "", texts["generateName"] or ""
    _check_name(name or (f"{generate_name}x" if generate_name else ""), causes)
    for unsupported in ("finalizers", "ownerReferences"):
        if document.get(unsupported):
            message = "Forbidden: a resource class has none"
            causes.append(Cause(f"metadata.{unsupported}", "FieldValueForbidden", message))
    return ObjectMetadata(
        name,
        generate_name,
        texts["uid"] or None,
        texts["resourceVersion"] or None,
        _labels(document.get("labels"), causes),
        _annotations(document.get("annotations"), causes),
    )


def _text(document: Mapping[object, object], name: str) -> str | None:
    value = document.get(name)
    if value is None or isinstance(value, str):
        return value
    raise bad_request(f"metadata.{name}: must be a text")


def _check_name(name: str, causes: list[Cause]) -> None:
    try:
        check_class_name(name)
    except ResourceClassError as error:
        causes.extend(invalid_value(*fault) for fault in error.faults)


def _labels(document: object, causes: list[Cause]) -> dict[str, str]:
    path = "metadata.labels"
    labels = _texts(document, path)
    if len(labels) > MAX_LABELS:
        causes.append(invalid_value(path, f"{len(labels)} labels", f"at most {MAX_LABELS} are kept"))
        return {}
    for key, value in labels.items():
        _check_key(key, path, causes)
        if value and not (len(value) <= _MAX_PART and _PART.fullmatch(value)):
            causes.append(invalid_value(path, _shown(value), f"a label's value {_PART_RULE}"))
    return labels


def _annotations(document: object, causes: list[Cause]) -> dict[str, str]:
    path = "metadata.annotations"
    annotations = _texts(document, path)
    size = 0
    for key, value in annotations.items():
        _check_key(key.lower(), path, causes)
        if _NO_TEXT.search(value):
            causes.append(invalid_value(path, _shown(key), "its value holds what is no character"))
            continue
        size += len(key) + len(value.encode())
    if size > MAX_ANNOTATION_BYTES:
        message = f"Too long: may not be more than {MAX_ANNOTATION_BYTES} bytes"
        causes.append(Cause(path, "FieldValueTooLong", message))
    return annotations


def _texts(document: object, path: str) -> dict[str, str]:
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise bad_request(f"{path}: must be an object")
    for key, value in document.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise bad_request(f"{path}: {_shown(str(key))}: must be a text (quote it)")
    return dict(document)


def _check_key(key: str, path: str, causes: list[Cause]) -> None:
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= MAX_NAME_LENGTH and _PREFIX.fullmatch(prefix)):
        causes.append(invalid_value(path, _shown(key), "before its '/' a key has a DNS subdomain"))
    if not (len(name) <= _MAX_PART and _PART.fullmatch(name)):
        causes.append(invalid_value(path, _shown(key), f"a key {_PART_RULE}"))


def _shown(text: str) -> str:
    return text[:_MAX_SHOWN].encode(errors="backslashreplace").decode()
