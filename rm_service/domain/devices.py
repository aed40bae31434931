"""Devices of a node: what was registered, as the ledger counts it, and what applications hold of it.

A device is a name with a number of units; each unit has a thousand thousandths (milli). Devices with the
same attributes are of one signature, and each signature is a dimension of the amounts: a node has a total of
it, an application is charged with it like with memory. A label of its own (`@device=SIGNATURE`) sums it up
over all nodes, so that what a resource class has is the sum of a few labels. Which units an application holds
is kept with the node's balance.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from rm_service.domain.amounts import DEVICE, Amounts
from rm_service.domain.declared_rules import Kind
from rm_service.domain.device_attributes import Attributes, read_attributes, signature_of
from rm_service.domain.device_selection import UNIT, Device, Held, give_back, take
from rm_service.domain.label_rules import LabelRule

DEVICE_KEY = "@device"
"""A label with this tag sums up the devices of one signature, which is its value."""

Signatures = Mapping[str, Attributes]


def dimension_of(signature: str) -> str:
    return f"{DEVICE}{signature}"


def device_tags(signature: str) -> dict[str, str]:
    """The tags of the label that sums up this signature."""
    return {DEVICE_KEY: signature}


def device_labels(amounts: Amounts) -> list[dict[str, str]]:
    """The labels that an application with these amounts is charged to because of its devices."""
    return [device_tags(name.removeprefix(DEVICE)) for name in sorted(amounts) if name.startswith(DEVICE)]


@lru_cache(maxsize=4096)
def device_rule(signature: str) -> LabelRule:
    """What is charged to the label of a signature. It counts and never refuses: the nodes do that."""
    return LabelRule(DEVICE_KEY, frozenset({DEVICE_KEY}), Kind.ROLLUP, ((dimension_of(signature),),))


def of_registered(documents: Sequence[Mapping[str, Any]]) -> tuple[tuple[Device, ...], Signatures]:
    """The devices of a registration, nothing taken, and the attributes of their signatures."""
    devices, signatures = [], {}
    for document in documents:
        attributes = read_attributes(document.get("attributes") or {}, "attributes")
        signature = signature_of(attributes)
        signatures[signature] = attributes
        devices.append(Device(str(document["name"]), signature, int(document.get("count", 1)), {}))
    return tuple(devices), signatures


def with_taken(devices: Sequence[Device], before: Sequence[Device]) -> tuple[Device, ...]:
    """The devices as they are registered now, with what is held of them.

    One that is gone stays, without units, for as long as somebody holds something of it.
    """
    known = {device.name: device for device in before}
    now = [
        Device(device.name, device.signature, device.count, known[device.name].taken)
        if device.name in known
        else device
        for device in devices
    ]
    names = {device.name for device in devices}
    gone = [
        Device(device.name, device.signature, 0, device.taken)
        for device in before
        if device.taken and device.name not in names
    ]
    return (*now, *gone)


def totals(devices: Iterable[Device]) -> dict[str, int]:
    """What there is of each signature, as amounts."""
    counted: Counter[str] = Counter()
    for device in devices:
        counted[dimension_of(device.signature)] += device.count * UNIT
    return dict(counted)


def amounts_of(held: Iterable[Held]) -> dict[str, int]:
    """What is held, as amounts."""
    counted: Counter[str] = Counter()
    for each in held:
        counted[dimension_of(each.signature)] += each.milli
    return dict(counted)


def taken_by(devices: Sequence[Device], held: Iterable[Held]) -> tuple[Device, ...]:
    """The devices after somebody was given units of them."""
    return _changed(devices, held, take)


def given_back_by(devices: Sequence[Device], held: Iterable[Held]) -> tuple[Device, ...]:
    """The devices after somebody has given units back; those that are gone and held by nobody drop out."""
    left = _changed(devices, held, give_back)
    return tuple([device for device in left if device.count or device.taken])


def _changed(devices: Sequence[Device], held: Iterable[Held], change: Any) -> tuple[Device, ...]:  # noqa: ANN401
    by_name = {device.name: device for device in devices}
    for each in held:
        device = by_name.get(each.device) or Device(each.device, each.signature, 0, {})
        by_name[each.device] = change(device, each.units)
    return tuple(by_name.values())


def relabelled(held: Sequence[Held], devices: Sequence[Device]) -> tuple[Held, ...]:
    """What is held, under the signatures that the devices have now; a device that is gone keeps its last."""
    now = {device.name: device.signature for device in devices}
    return tuple(
        [
            Held(each.resource_class, each.device, now.get(each.device, each.signature), each.units)
            for each in held
        ]
    )


def read_devices(document: Sequence[Mapping[str, Any]] | None) -> tuple[Device, ...] | None:
    """The devices of a node's balance as its row has them."""
    if document is None:
        return None
    return tuple(
        [
            Device(
                each["name"],
                each["signature"],
                each["count"],
                {int(unit): milli for unit, milli in each["taken"].items()},
            )
            for each in document
        ]
    )


def read_held(document: Sequence[Mapping[str, Any]] | None) -> tuple[Held, ...]:
    """What an application holds as its row has it."""
    return tuple(
        [
            Held(
                each["resource_class"],
                each["device"],
                each["signature"],
                tuple([(unit, milli) for unit, milli in each["units"]]),
            )
            for each in document or ()
        ]
    )
