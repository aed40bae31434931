"""Short forms of what the tests ask of a ledger about devices, and what must be true of them at any time."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select

from rm_service.domain import operations as op
from rm_service.domain.application import HOLDING, Application, State
from rm_service.domain.device_attributes import read_attributes, signature_of
from rm_service.domain.device_selection import UNIT, Device
from rm_service.domain.devices import read_devices, read_held
from rm_service.domain.outcomes import Done, Outcome
from rm_service.ledger import tables
from rm_service.ledger.audit import audit
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.applications import read_application
from rm_service.services.resource_classes import ResourceClasses
from tests.domain.device_ledger import ANY, BIG, FAST, SMALL
from tests.ledger.asking import application, asking, done

WHOLE = UNIT
SPECS = {"any": ANY, "big": BIG, "small": SMALL, "fast": FAST}


def create_classes(ledger: Ledger, *names: str) -> None:
    """Create these of `SPECS`, or all."""
    for name in names or SPECS:
        outcome = ResourceClasses(ledger).create(name, SPECS[name])
        assert isinstance(outcome, Done), outcome


def with_devices(ledger: Ledger, instance: str, *devices: Mapping[str, Any], **more: Any) -> None:
    """Register a node."""
    done(ledger, op.RegisterNode(instance, "Special", {"memory": 100}, devices=devices, **more))


def for_classes(
    classes: Mapping[str, int], tags: Mapping[str, str] | None = None, memory: int = 1, **more: Any
) -> op.Apply:
    """An apply with an id of its own; amounts of classes are thousandths of a unit."""
    placement = op.Placement(
        more.pop("selector", ""), classes=tuple(classes.items()), devices=more.pop("devices", "first_fit")
    )
    return asking({"user": "alice", **(tags or {})}, {"memory": memory}, placement=placement, **more)


def given(ledger: Ledger, classes: Mapping[str, int], **more: Any) -> Application:
    """The application that is granted, or waits."""
    return application(ledger, for_classes(classes, **more))


def refused(ledger: Ledger, classes: Mapping[str, int], **more: Any) -> Outcome:
    (outcome,) = ledger.submit([for_classes(classes, **more)])
    assert not isinstance(outcome, Done), outcome
    return outcome


def read(ledger: Ledger, application_id: str) -> Application:
    with ledger.readers.connect() as connection:
        found = read_application(connection, application_id)
    assert found is not None
    return found


def devices_of(ledger: Ledger, instance: str) -> dict[str, Device]:
    """A node's devices by their names, from its row."""
    columns = select(tables.balance.c.devices).join(
        tables.node, tables.node.c.label_id == tables.balance.c.label_id
    )
    with ledger.readers.connect() as connection:
        document = connection.execute(columns.where(tables.node.c.instance == instance)).scalar_one()
    return {device.name: device for device in read_devices(document) or ()}


def standing(ledger: Ledger, name: str) -> tuple[int, int]:
    """Allocatable and requested of a class."""
    _, found = ResourceClasses(ledger).standing(name)
    assert found is not None
    return found.status.allocatable, found.status.requested


def recomputed(ledger: Ledger) -> dict[str, tuple[int, int]]:
    """Allocatable and requested of every class, from nothing but registrations and live applications."""
    node, row = tables.node.c, tables.application.c
    there_is: Counter[str] = Counter()
    held: Counter[str] = Counter()
    closed = select(node.devices, tables.balance.c.closed).join(
        tables.balance, tables.balance.c.label_id == node.label_id
    )
    live = select(row.devices).where(row.state.in_([state.value for state in HOLDING]))
    with ledger.readers.connect() as connection:
        for registered in connection.execute(closed.where(~node.removed)):
            if registered.closed != "lost":
                there_is.update(_counted(registered.devices))
        for application_row in connection.execute(live):
            held.update({each.signature: 0 for each in read_held(application_row.devices)})
            for each in read_held(application_row.devices):
                held[each.signature] += each.milli
    classes = ledger.book(fresh=True).classes
    return {
        name: (_selected(classes, name, there_is), _selected(classes, name, held)) for name in classes.classes
    }


def check(ledger: Ledger) -> None:
    """The audit is clean, and each class says what a recomputation says."""
    assert audit(ledger.readers).differences == []
    items = ResourceClasses(ledger).standings().items
    found = {each.resource_class.name: (each.status.allocatable, each.status.requested) for each in items}
    assert found == recomputed(ledger)


def states(ledger: Ledger, ids: Sequence[str]) -> list[State]:
    return [read(ledger, each).state for each in ids]


def _counted(documents: Sequence[Mapping[str, Any]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for document in documents:
        signature = signature_of(read_attributes(document["attributes"], "attributes"))
        found[signature] += document.get("count", 1) * UNIT
    return found


def _selected(classes: Any, name: str, counted: Mapping[str, int]) -> int:
    return sum(milli for signature, milli in counted.items() if classes.selects(name, signature))
