"""The documents of devices and resource classes."""

from typing import Any

from rm_service.domain.accounts import Account
from rm_service.domain.amounts import DEVICE, Amounts
from rm_service.domain.application import Application
from rm_service.domain.device_annotations import annotations
from rm_service.domain.device_attributes import write_attributes
from rm_service.domain.device_selection import UNIT, Device, Held, free_units, largest_fraction
from rm_service.domain.exact_quantities import format_milli
from rm_service.domain.resource_classes import SelectorReason, write_spec
from rm_service.ledger.queries.assignments import Assignment, Assignments
from rm_service.services.resource_classes import ClassExplained, ClassStanding, Overlap, SignatureExplained

Document = dict[str, Any]


def without_devices(amounts: Amounts | None) -> Amounts | None:
    """A node's amounts beside its devices, which it shows by themselves."""
    if amounts is None or not any(name.startswith(DEVICE) for name in amounts):
        return amounts
    return {name: amount for name, amount in amounts.items() if not name.startswith(DEVICE)}


def free_devices(account: Account) -> list[Document]:
    """What is free of each device of a node; of one that is gone and still held nothing is."""
    return [_free(device) for device in account.balance.devices or ()]


def _free(device: Device) -> Document:
    return {
        "name": device.name,
        "signature": device.signature,
        "count": device.count,
        "free": free_units(device),
        "largest_fraction": format_milli(largest_fraction(device)),
    }


def application_devices(application: Application) -> Document:
    """What an application asked for by class, and what it was given."""
    classes = (application.placement or {}).get("classes")
    return {
        "classes": None if classes is None else {name: format_milli(milli) for name, milli in classes},
        "devices": [held_document(each) for each in application.devices],
        "annotations": annotations(application.devices),
    }


def held_document(held: Held) -> Document:
    """`units` has the number of each unit with the part of it that is held."""
    return {
        "class": held.resource_class,
        "device": held.device,
        "quantity": format_milli(held.milli),
        "units": [{"unit": unit, "quantity": format_milli(milli)} for unit, milli in held.units],
    }


def assignments_document(assignments: Assignments) -> Document:
    """All assignments of a node."""
    items = [_assignment(each) for each in assignments.items]
    return {"seq": assignments.seq, "items": items, "next_cursor": None}


def _assignment(assignment: Assignment) -> Document:
    """What a node's agent is to set up for one application."""
    return {
        "application": assignment.application_id,
        "state": assignment.state.value,
        "tags": assignment.tags,
        "devices": [held_document(each) for each in assignment.devices],
        "annotations": annotations(assignment.devices),
    }


def class_document(standing: ClassStanding) -> Document:
    known, status = standing.resource_class, standing.status
    return {
        "name": known.name,
        "uid": known.uid,
        "spec": write_spec(known.spec),
        "allocatable": format_milli(status.allocatable),
        "requested": format_milli(status.requested),
        "free": format_milli(max(0, status.allocatable - status.requested)),
        "uncomparable": status.uncomparable,
        "uncomparable_reasons": list(status.reasons),
    }


def explained_document(explained: ClassExplained) -> Document:
    return {
        **class_document(explained.standing),
        "signatures": [_signature(each) for each in explained.signatures],
        "overlaps": [_overlap(each) for each in explained.overlaps],
    }


def _signature(explained: SignatureExplained) -> Document:
    standing = explained.standing
    return {
        "signature": standing.name,
        "attributes": write_attributes(standing.attributes),
        "selected": explained.selected,
        "devices": standing.total // UNIT,
        "requested": format_milli(standing.held),
        "selectors": [_selector(each) for each in explained.selectors],
    }


def _selector(reason: SelectorReason) -> Document:
    return {
        "outcome": reason.outcome.value,
        "expressions": [
            {"outcome": each.outcome.value, "text": each.text, "why": each.why} for each in reason.expressions
        ],
    }


def _overlap(overlap: Overlap) -> Document:
    return {
        "class": overlap.other,
        "shared": format_milli(overlap.allocatable),
        "shared_free": format_milli(overlap.free),
        "free_without_shared": format_milli(overlap.free_without),
    }
