"""Writing down what changed about devices: what nodes have, what is held of it, what signatures mean."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rm_service.domain.device_attributes import write_attributes
from rm_service.domain.devices import write_devices
from rm_service.domain.view import View
from rm_service.ledger.documents import to_json
from rm_service.ledger.turn import Turn


@dataclass(frozen=True, slots=True)
class _Devices:
    label_id: int
    devices: list[list[Any]] | None


@dataclass(frozen=True, slots=True)
class _Signature:
    name: str
    attributes: dict[str, object]


@dataclass(frozen=True, slots=True)
class _Claim:
    application_id: str
    label_id: int
    device: str
    unit: int
    resource_class: str
    milli: int


def write_device_changes(turn: Turn, view: View) -> None:
    """Write every change of a view that concerns devices. The balances themselves have their rows already."""
    texts = turn.texts
    turn.write(
        texts.insert_signatures,
        [_Signature(name, write_attributes(attributes)) for name, attributes in view.signatures.items()],
    )
    turn.write(
        texts.update_devices,
        [
            _Devices(label_id, write_devices(view.accounts[label_id].balance.devices))
            for label_id in view.changed_devices
        ],
    )
    if view.changed_claims:
        turn.execute(texts.delete_claims, to_json(sorted(view.changed_claims)))
        turn.write(texts.insert_claims, list(_claims(view)))


def _claims(view: View) -> Iterator[_Claim]:
    for application_id in view.changed_claims:
        application = view.applications.get(application_id)
        if application is None or not application.devices_now:
            continue
        label_id = next(
            account.label.id
            for account in view.accounts_of(application.label_ids)
            if account.balance.devices is not None
        )
        for held in application.devices_now:
            for unit, milli in held.units:
                yield _Claim(application.id, label_id, held.device, unit, held.resource_class, milli)
