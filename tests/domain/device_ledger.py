"""A ledger without a database whose nodes have cards, and what must be true of its devices at any time."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rm_service.domain import operations as op
from rm_service.domain.amounts import in_devices, plus, without_zeros
from rm_service.domain.application import HOLDING, Application
from rm_service.domain.device_selection import UNIT, Device
from rm_service.domain.devices import DEVICE_KEY, dimension_of
from rm_service.domain.outcomes import Outcome
from rm_service.domain.resource_classes import ResourceClassSpec, read_spec
from rm_service.domain.view import LOST
from tests.domain.pure_ledger import PureLedger, application_of

Document = dict[str, Any]


def selecting(*expressions: tuple[str, str, str]) -> ResourceClassSpec:
    """A class with one selector: key, operator and value (of `Exists` the value is left out)."""
    documents = [
        {"key": key, "operator": operator, "values": [value] if value else []}
        for key, operator, value in expressions
    ]
    return read_spec({"resourceSelector": [{"matchExpressions": documents}]})


ANY = selecting(("Kind", "In", "gpu"))
BIG = selecting(("Kind", "In", "gpu"), ("memory", "GtEq", "30G"))
SMALL = selecting(("Kind", "In", "gpu"), ("memory", "Lt", "30G"))
FAST = selecting(("Kind", "In", "nic"), ("speed", "GtEq", "40GBPS"))


def cards(name: str, count: int = 1, memory: str = "16G") -> Document:
    """A device: so many cards with so much memory."""
    return {"name": name, "count": count, "attributes": {"Kind": "gpu", "memory": memory}}


def ports(name: str, count: int = 1, speed: str = "40GBPS") -> Document:
    return {"name": name, "count": count, "attributes": {"Kind": "nic", "speed": speed}}


class DeviceLedger(PureLedger):
    """Knows the classes `any`, `big` (30G and more), `small` (less) and `fast` (a network card)."""

    def __init__(self, limits: Mapping[str, Mapping[str, int]] | None = None, **periods: int) -> None:
        super().__init__(limits, **periods)
        for name, spec in (("any", ANY), ("big", BIG), ("small", SMALL), ("fast", FAST)):
            self.create_class(name, spec)

    def register(self, instance: str, *devices: Document, memory: int = 100, **more: Any) -> Outcome:
        return self.do(op.RegisterNode(instance, "Special", {"memory": memory}, devices=devices, **more))

    def ask(self, classes: Mapping[str, int], **more: Any) -> Outcome:
        """Apply for classes, in thousandths of a unit."""
        return self.do(self.asking(classes, **more))

    def asking(
        self,
        classes: Mapping[str, int],
        *,
        tags: Mapping[str, str] | None = None,
        memory: int = 1,
        selector: str = "",
        partition: str = "",
        devices: str = "first_fit",
        **more: Any,
    ) -> op.Apply:
        asked = tuple(classes.items())
        placement = op.Placement(selector, partition=partition, classes=asked, devices=devices)
        return op.Apply(
            id=f"app-{next(self._numbers)}",
            tags=tags or {},
            resource={"memory": memory},
            placement=placement,
            lock_seconds=60,
            **more,
        )

    def given(self, classes: Mapping[str, int], **more: Any) -> Application:
        """The application that is granted, or waits."""
        return application_of(self.ask(classes, **more))

    def devices(self, instance: str) -> dict[str, Device]:
        """A node's devices by their names, as its balance has them."""
        return {each.name: each for each in self.account(node=instance).balance.devices or ()}

    def standing(self, name: str) -> tuple[int, int]:
        """Allocatable and requested of a class: the sums over the signatures that it selects."""
        allocatable = requested = 0
        for account in self.view.accounts.values():
            signature = account.label.tags.get(DEVICE_KEY)
            if signature is not None and self.book.selects(name, signature):
                balance, dimension = account.balance, dimension_of(signature)
                allocatable += (balance.total or {}).get(dimension, 0)
                requested += plus(balance.locked, balance.used).get(dimension, 0)
        return allocatable, requested


def units(application: Application) -> list[tuple[str, str, tuple[tuple[int, int], ...]]]:
    """What an application was given: class, device, units."""
    return [(held.resource_class, held.device, held.units) for held in application.devices]


def check_devices(ledger: DeviceLedger) -> None:
    """What is true at any time, reckoned anew from the nodes and the applications."""
    taken = Counter[tuple[int, str, int]]()
    held = Counter[str]()
    for application in ledger.view.applications.values():
        if application.state not in HOLDING:
            assert application.devices_now == ()
            continue
        for each in application.devices:
            held[each.signature] += each.milli
            for unit, milli in each.units:
                taken[_node_of(ledger, application), each.device, unit] += milli
    there_is = Counter[str]()
    found = Counter[tuple[int, str, int]]()
    signatures = Counter[str]()
    for node in ledger.view.nodes.values():
        balance = ledger.view.accounts[node.label_id].balance
        devices: Sequence[Device] = balance.devices or ()
        assert len({each.name for each in devices}) == len(devices)
        for device in devices:
            found.update({(node.label_id, device.name, unit): milli for unit, milli in device.taken.items()})
            signatures[device.signature] += sum(device.taken.values())
            if balance.closed != LOST:
                there_is[device.signature] += device.count * UNIT
    assert found == taken, "a unit is taken by those who hold it, and by nobody else"
    assert +signatures == held, "what is held stands under the signature that the device has"
    _check_labels(ledger, there_is, held)
    for name in ledger.book.classes:
        selects = ledger.book.selects
        allocatable = sum(milli for each, milli in there_is.items() if selects(name, each))
        requested = sum(milli for each, milli in held.items() if selects(name, each))
        assert ledger.standing(name) == (allocatable, requested), name


def _check_labels(ledger: DeviceLedger, there_is: Mapping[str, int], held: Mapping[str, int]) -> None:
    totals: dict[str, int] = {}
    sums: dict[str, int] = {}
    for account in ledger.view.accounts.values():
        signature = account.label.tags.get(DEVICE_KEY)
        if signature is not None:
            balance = account.balance
            totals |= {signature: (balance.total or {}).get(dimension_of(signature), 0)}
            sums |= {signature: plus(balance.locked, balance.used).get(dimension_of(signature), 0)}
        elif account.is_capacity and account.balance.devices:
            own = Counter[str]()
            for each in account.balance.devices:
                own[dimension_of(each.signature)] += each.count * UNIT
            assert in_devices(account.total or {}).items() >= (+own).items()
    assert without_zeros(totals) == without_zeros(there_is)
    assert without_zeros(sums) == without_zeros(held)


def _node_of(ledger: DeviceLedger, application: Application) -> int:
    (label_id,) = [
        account.label.id
        for account in ledger.view.accounts_of(application.label_ids)
        if "node" in account.label.tags
    ]
    return label_id
