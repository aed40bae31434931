"""Writing down what changed about devices: which units are held, and what signatures mean."""

from collections.abc import Iterator
from dataclasses import dataclass

from rm_service.domain.device_attributes import write_attributes
from rm_service.domain.device_changes import node_of
from rm_service.domain.view import View
from rm_service.ledger.documents import to_json
from rm_service.ledger.turn import Turn


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
    """Write every change of a view that concerns devices, beside the balances of nodes."""
    texts = turn.texts
    turn.write(
        texts.insert_signatures,
        [_Signature(name, write_attributes(attributes)) for name, attributes in view.signatures.items()],
    )
    if view.changed_claims:
        turn.execute(texts.delete_claims, to_json(sorted(view.changed_claims)))
        turn.write(texts.insert_claims, list(_claims(view)))


def _claims(view: View) -> Iterator[_Claim]:
    for application_id in view.changed_claims:
        application = view.applications.get(application_id)
        if application is None or not application.devices_now:
            continue
        node = node_of(view, application.label_ids)
        if node is None:
            continue  # other rules charge no node any more
        for held in application.devices_now:
            for unit, milli in held.units:
                yield _Claim(application.id, node.label.id, held.device, unit, held.resource_class, milli)
