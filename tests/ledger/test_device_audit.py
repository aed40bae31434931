"""The audit of devices: clean after honest work, and it names whatever somebody has changed by hand."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, delete, select, update

from rm_service.domain import operations as op
from rm_service.ledger import tables
from rm_service.ledger.audit import Check, Difference, audit
from rm_service.ledger.ledger import Ledger
from tests.domain.device_ledger import cards, ports
from tests.ledger.asking import done
from tests.ledger.device_asking import WHOLE, create_classes, given, with_devices

BALANCE, CLAIM = tables.balance, tables.application_device


@pytest.fixture
def busy(ledger: Ledger) -> Ledger:
    """Units whole and in part, locked and used; a node that is lost, and devices that are gone."""
    create_classes(ledger)
    with_devices(ledger, "n1", cards("g", 4), ports("p"))
    with_devices(ledger, "n2", cards("g", 2, "40G"))
    with_devices(ledger, "n3", cards("g", 2, "80G"))
    with_devices(ledger, "n4", ports("q"))
    given(ledger, {"small": 300, "fast": 500})
    done(ledger, op.Use(given(ledger, {"any": 2 * WHOLE, "fast": 200}).id))
    given(ledger, {"big": WHOLE})
    given(ledger, {"big": 2 * WHOLE}, tags={"node": "n3"})
    with_devices(ledger, "n3", cards("g", 1, "90G"))
    given(ledger, {"fast": 100}, tags={"node": "n4"})
    with_devices(ledger, "n4")
    done(ledger, op.LoseNode("n2", "silent"))
    assert audit(ledger.readers).differences == []
    return ledger


def label_id(connection: Connection, key: str) -> int:
    found: int = connection.execute(select(tables.label.c.id).where(tables.label.c.key == key)).scalar_one()
    return found


def changed(connection: Connection, column: str, key: str, change: Callable[[Any], Any]) -> None:
    """Change a JSON column of a label's balance."""
    row = BALANCE.c.label_id == label_id(connection, key)
    document = connection.execute(select(BALANCE.c[column]).where(row)).scalar_one()
    connection.execute(update(BALANCE).where(row).values({column: change(document)}))


def found(ledger: Ledger) -> list[Difference]:
    result = audit(ledger.readers)
    assert not result.consistent
    return [each for each in result.differences if each.check is Check.DEVICES]


def more_taken(devices: list[Any]) -> list[Any]:
    devices[0]["taken"]["0"] += 1
    return devices


def one_less(devices: list[Any]) -> list[Any]:
    devices[0]["count"] -= 1
    return devices


def test_a_unit_that_is_taken_by_nobody_is_found(busy: Ledger) -> None:
    with busy.readers.begin() as connection:
        changed(connection, "devices", "node=n1", more_taken)
    (difference,) = found(busy)
    assert (difference.label, difference.field) == ({"node": "n1"}, "g unit 0")
    assert isinstance(difference.found, int)
    assert difference.found - 1 == difference.expected


def test_a_device_with_another_count_is_found_by_its_node_and_its_signature(busy: Ledger) -> None:
    with busy.readers.begin() as connection:
        changed(connection, "devices", "node=n1", one_less)
    labels = [difference.label for difference in found(busy)]
    assert {"node": "n1"} in labels
    assert any(label is not None and "@device" in label for label in labels)


def test_a_device_under_another_signature_than_its_holders_say_is_found(busy: Ledger) -> None:
    def other(devices: list[Any]) -> list[Any]:
        devices[0]["signature"], devices[1]["signature"] = devices[1]["signature"], devices[0]["signature"]
        return devices

    with busy.readers.begin() as connection:
        changed(connection, "devices", "node=n1", other)
    assert {"signature of g", "signature of p"} <= {each.field for each in found(busy)}


def test_devices_that_are_forgotten_are_found(busy: Ledger) -> None:
    with busy.readers.begin() as connection:
        row = BALANCE.c.label_id == label_id(connection, "node=n1")
        connection.execute(update(BALANCE).where(row).values(devices=None))
    assert found(busy)


@pytest.mark.parametrize("change", ["missing", "milli", "unit", "node"])
def test_an_assignment_that_differs_from_what_its_application_holds_is_found(
    busy: Ledger, change: str
) -> None:
    with busy.readers.begin() as connection:
        row = connection.execute(select(CLAIM).order_by(CLAIM.c.milli, CLAIM.c.unit)).mappings().first()
        assert row is not None
        same = [CLAIM.c[name] == row[name] for name in ("application_id", "device", "unit", "resource_class")]
        values = {
            "milli": {"milli": row["milli"] + 1},
            "unit": {"unit": row["unit"] + 7},
            "node": {"label_id": label_id(connection, "node=n2")},
        }
        if change == "missing":
            connection.execute(delete(CLAIM).where(*same))
        else:
            connection.execute(update(CLAIM).where(*same).values(**values[change]))
    assert str(row["application_id"]) in {str(each.subject) for each in found(busy)}


def test_an_application_that_holds_other_units_than_its_node_knows_is_found(busy: Ledger) -> None:
    table = tables.application
    with busy.readers.begin() as connection:
        row = connection.execute(
            select(table.c.id, table.c.devices).where(table.c.state == "used", table.c.finished_at.is_(None))
        ).first()
        assert row is not None
        devices = [
            {**each, "units": [[unit + 1, milli] for unit, milli in each["units"]]} for each in row.devices
        ]
        connection.execute(update(table).where(table.c.id == row.id).values(devices=devices))
    assert found(busy)


@pytest.mark.parametrize(
    ("column", "key"),
    [("total", "@device"), ("total", "node=n1"), ("used", "@device"), ("locked", "@device")],
)
def test_a_changed_sum_of_a_signature_is_found(busy: Ledger, column: str, key: str) -> None:
    with busy.readers.begin() as connection:
        labels = connection.execute(select(tables.label.c.key).where(tables.label.c.key.like(f"{key}%")))
        balance = BALANCE.c[column]
        for name in labels.scalars():
            row = BALANCE.c.label_id == label_id(connection, name)
            document = connection.execute(select(balance).where(row)).scalar_one()
            dimensions = [each for each, amount in (document or {}).items() if amount and "device/" in each]
            if dimensions:
                more = {**document, dimensions[0]: document[dimensions[0]] + 1}
                connection.execute(update(BALANCE).where(row).values({column: more}))
                break
        else:
            raise AssertionError("there is one")
    result = audit(busy.readers)
    assert {each.dimension or name for each in result.differences} & {dimensions[0], name}
    expected = {Check.DEVICES} if column == "total" else {Check.BALANCE, Check.EVENTS}
    assert {each.check for each in result.differences} >= expected


def test_a_signature_without_a_label_is_found_when_nodes_have_it(busy: Ledger) -> None:
    with busy.readers.begin() as connection:
        signatures = connection.execute(
            select(tables.label.c.id).where(tables.label.c.key.like("@device=nic%"))
        ).scalars()
        connection.execute(delete(BALANCE).where(BALANCE.c.label_id.in_(list(signatures))))
    assert "total" in {each.field for each in found(busy)}
