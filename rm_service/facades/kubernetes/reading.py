"""The objects that clients send: a class to be created or compared, and how one is to be deleted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rm_service.domain.class_book import ResourceClass
from rm_service.domain.resource_classes import ResourceClassError, ResourceClassSpec, read_spec
from rm_service.facades.kubernetes.body_text import Text, read_text
from rm_service.facades.kubernetes.group import GROUP_VERSION, KIND
from rm_service.facades.kubernetes.object_metadata import ObjectMetadata, read_metadata
from rm_service.facades.kubernetes.parameters import DRY_RUN, Parameters
from rm_service.facades.kubernetes.statuses import (
    Cause,
    bad_request,
    invalid,
    invalid_value,
    unsupported_value,
)
from rm_service.facades.kubernetes.unknown_fields import CLASS_SHAPE, warnings_of, without_unknown

PROPAGATION = ("Background", "Foreground", "Orphan")
_IMMUTABLE = "a resource class cannot be changed: delete it and create it anew"


@dataclass(frozen=True, slots=True)
class Sent:
    """A class as a client sent it, checked; `warnings` are headers of the answer."""

    metadata: ObjectMetadata
    spec: ResourceClassSpec
    warnings: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Deletion:
    """Delete a class, but only this one: `uid`, and not one created after event `version`."""

    uid: str | None = None
    version: int | None = None
    dry_run: bool = False


def read_class(content_type: str, body: bytes, parameters: Parameters) -> Sent:
    """Read the class in a body. Raises StatusError: with 422 it has a cause for every fault."""
    return check_class(read_text(content_type, body), parameters)


def check_class(text: Text, parameters: Parameters) -> Sent:
    """As `read_class`."""
    document = text.document
    if not isinstance(document, Mapping):
        raise bad_request("the body of the request must be an object")
    _check_kind(document)
    unknown: list[str] = []
    known = without_unknown(document, CLASS_SHAPE, unknown)
    warnings = warnings_of(parameters.field_validation, unknown, text.doubles)
    causes: list[Cause] = []
    metadata = read_metadata(known.get("metadata"), causes)
    spec = ResourceClassSpec()
    try:
        spec = read_spec(known.get("spec"))
    except ResourceClassError as error:
        causes.extend(invalid_value(*fault) for fault in error.faults)
    if causes:
        raise invalid(metadata.name or metadata.generate_name, causes)
    return Sent(metadata, spec, warnings)


def check_unchanged(sent: Sent, stored: ResourceClass) -> None:
    """Raise StatusError (422) with a cause for each part of a class that is to become another one."""
    parts = (
        ("spec", sent.spec == stored.spec),
        ("metadata.labels", dict(sent.metadata.labels) == dict(stored.labels)),
        ("metadata.annotations", dict(sent.metadata.annotations) == dict(stored.annotations)),
    )
    causes = [invalid_value(path, "object", _IMMUTABLE) for path, same in parts if not same]
    if causes:
        raise invalid(stored.name, causes)


def read_deletion(content_type: str, body: bytes, parameters: Parameters) -> Deletion:
    """How a class is to be deleted, from the parameters and the DeleteOptions. Raises StatusError."""
    document: Any = read_text(content_type, body).document if body.strip() else {}
    if document is None:
        document = {}
    if not isinstance(document, Mapping):
        raise bad_request("the body of the request must be an object of kind DeleteOptions")
    kind = document.get("kind", "DeleteOptions")
    if kind != "DeleteOptions":
        raise bad_request(f'the body of the request is of kind "{str(kind)[:64]}", not DeleteOptions')
    policy = document.get("propagationPolicy") or parameters.given.get("propagationPolicy") or PROPAGATION[0]
    if policy not in PROPAGATION:
        cause = unsupported_value("propagationPolicy", str(policy)[:64], PROPAGATION)
        raise invalid("", [cause])
    return _deletion(document, parameters.dry_run)


def _deletion(document: Mapping[str, Any], dry_run: bool) -> Deletion:  # noqa: FBT001 - a part of the document
    rehearsed = document.get("dryRun") or []
    if rehearsed not in ([], [DRY_RUN]):
        raise invalid("", [unsupported_value("dryRun", str(rehearsed)[:64], (DRY_RUN,))])
    conditions = document.get("preconditions") or {}
    if not isinstance(conditions, Mapping):
        raise bad_request("preconditions: must be an object")
    uid, version = conditions.get("uid"), conditions.get("resourceVersion")
    for name, value in (("uid", uid), ("resourceVersion", version)):
        if value is not None and not isinstance(value, str):
            raise bad_request(f"preconditions.{name}: must be a text")
    number = None if version is None else Parameters({"resourceVersion": version}).resource_version or 0
    return Deletion(uid, number, dry_run or bool(rehearsed))


def _check_kind(document: Mapping[str, object]) -> None:
    """What an object says that it is must be what is asked for; it may say nothing."""
    version, kind = document.get("apiVersion") or GROUP_VERSION, document.get("kind") or KIND
    if version != GROUP_VERSION:
        message = (
            f"the API version in the data ({str(version)[:64]}) does not match"
            f" the expected API version ({GROUP_VERSION})"
        )
        raise bad_request(message)
    if kind != KIND:
        message = f"the kind in the data ({str(kind)[:64]}) does not match the expected kind ({KIND})"
        raise bad_request(message)
