"""A resource class as a Kubernetes object."""

import datetime as dt

from rm_service.domain.application import SECOND, Instant
from rm_service.domain.class_book import ResourceClass
from rm_service.domain.exact_quantities import format_milli
from rm_service.domain.resource_classes import write_spec
from rm_service.facades.kubernetes.group import GROUP_VERSION, KIND, META_VERSION
from rm_service.services.resource_classes import ClassStanding, ClassStatus

Document = dict[str, object]


def class_object(standing: ClassStanding, version: int) -> Document:
    """The whole object, as it stood when the outbox had come to number `version`."""
    known = standing.resource_class
    return {
        "apiVersion": GROUP_VERSION,
        "kind": KIND,
        "metadata": metadata(known, version),
        "spec": write_spec(known.spec),
        "status": status(standing.status),
    }


def class_metadata(standing: ClassStanding, version: int) -> Document:
    """Only what is about the object as such."""
    return {
        "apiVersion": META_VERSION,
        "kind": "PartialObjectMetadata",
        "metadata": metadata(standing.resource_class, version),
    }


def metadata(known: ResourceClass, version: int) -> Document:
    labels = {"labels": dict(known.labels)} if known.labels else {}
    annotations = {"annotations": dict(known.annotations)} if known.annotations else {}
    return {
        "name": known.name,
        "uid": known.uid,
        "resourceVersion": str(version),
        "generation": 1,
        "creationTimestamp": write_time(known.created_at),
        **labels,
        **annotations,
    }


def status(of: ClassStatus) -> Document:
    """How a class stands. What is not free may be more than there is: `free` is then 0."""
    document: Document = {
        "allocatable": format_milli(of.allocatable),
        "requested": format_milli(of.requested),
        "free": format_milli(free(of)),
        "uncomparable": of.uncomparable,
    }
    if of.reasons:
        document["uncomparableReasons"] = list(of.reasons)
    return document


def free(of: ClassStatus) -> int:
    """In thousandths of a device."""
    return max(0, of.allocatable - of.requested)


def write_time(instant: Instant) -> str:
    """As Kubernetes has times: whole seconds, UTC."""
    return dt.datetime.fromtimestamp(instant // SECOND, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
