"""The audit of devices: who holds which units, and what there is of each signature."""

from collections import Counter
from collections.abc import Iterator

from sqlalchemy import Connection, select

from rm_service.domain.amounts import DEVICE
from rm_service.domain.application import HOLDING
from rm_service.domain.device_selection import Held
from rm_service.domain.devices import DEVICE_KEY, device_tags, dimension_of, read_held, totals
from rm_service.domain.view import LOST
from rm_service.ledger import tables
from rm_service.ledger.audit_balances import Books
from rm_service.ledger.audit_findings import Check, Findings

Unit = tuple[int, str, int]
"""A node's label, a device, and the number of a unit of it."""

_CHUNK = {"yield_per": 2_000}


def check_devices(connection: Connection, books: Books, findings: Findings) -> None:
    """Applications, assignments and nodes say the same of each unit; signatures sum up the nodes."""
    nodes = {label_id: balance for label_id, balance in books.balances.items() if balance.devices is not None}
    signatures = {
        (label_id, each.name): each.signature
        for label_id, balance in nodes.items()
        for each in balance.devices or ()
    }
    held = Counter[tuple[str, *Unit, str]]()
    for application_id, label_id, each in _held(connection, books):
        what, expected = f"signature of {each.device}", signatures.get((label_id, each.device))
        label = books.tags(label_id)
        findings.add(Check.DEVICES, what, expected, each.signature, label=label, subject=application_id)
        for unit, milli in each.units:
            held[application_id, label_id, each.device, unit, each.resource_class] += milli
    assigned = Counter(dict(_assigned(connection)))
    for key in sorted(held.keys() | assigned.keys()):
        what = f"{key[2]} unit {key[3]} by {key[4]}"
        findings.add(Check.DEVICES, what, held[key], assigned[key], label=books.tags(key[1]), subject=key[0])
    taken = Counter[Unit]()
    for (_, label_id, name, unit, _), milli in held.items():
        taken[label_id, name, unit] += milli
    found = Counter[Unit]()
    for label_id, balance in nodes.items():
        for device in balance.devices or ():
            found.update({(label_id, device.name, unit): milli for unit, milli in device.taken.items()})
    for unit_key in sorted(taken.keys() | found.keys()):
        what = f"{unit_key[1]} unit {unit_key[2]}"
        findings.add(Check.DEVICES, what, taken[unit_key], found[unit_key], label=books.tags(unit_key[0]))
    _check_sums(books, findings)


def _check_sums(books: Books, findings: Findings) -> None:
    there_is = Counter[str]()
    for label_id, balance in books.balances.items():
        if balance.devices is None or balance.total is None:
            continue
        own = totals(balance.devices)
        tags = books.tags(label_id)
        for dimension, amount in own.items():
            known = balance.total.get(dimension, 0)
            findings.add(Check.DEVICES, "total", amount, known, label=tags, dimension=dimension)
        if balance.closed != LOST:
            there_is.update(own)
    summed_up: dict[str, int] = {}
    for label_id, label in books.labels.items():
        signature = label.tags.get(DEVICE_KEY)
        balance_of_it = books.balances.get(label_id)
        if signature is not None and balance_of_it is not None:
            dimension = dimension_of(signature)
            summed_up[dimension] = (balance_of_it.total or {}).get(dimension, 0)
    for dimension in sorted(there_is.keys() | summed_up.keys()):
        found = summed_up.get(dimension, 0)
        tags = device_tags(dimension.removeprefix(DEVICE))
        findings.add(Check.DEVICES, "total", there_is[dimension], found, label=tags)


def _held(connection: Connection, books: Books) -> Iterator[tuple[str, int, Held]]:
    """What the applications say: application, node, and what it holds of one of its devices."""
    table = tables.application.c
    live = select(table.id, table.state, table.label_ids, table.devices).where(table.finished_at.is_(None))
    for row in connection.execute(live.execution_options(**_CHUNK)):
        if row.state not in HOLDING or not row.devices:
            continue
        nodes = [each for each in row.label_ids if _has_devices(books, each)]
        label_id = nodes[0] if nodes else 0
        for held in read_held(row.devices):
            yield row.id, label_id, held


def _has_devices(books: Books, label_id: int) -> bool:
    balance = books.balances.get(label_id)
    return balance is not None and balance.devices is not None


def _assigned(connection: Connection) -> Iterator[tuple[tuple[str, int, str, int, str], int]]:
    for row in connection.execute(select(tables.application_device).execution_options(**_CHUNK)):
        yield (row.application_id, row.label_id, row.device, row.unit, row.resource_class), row.milli
