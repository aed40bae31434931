"""Bounds: devices and classes that nobody means to have so many of are refused, and the ledger goes on."""

from unittest.mock import Mock

import pytest

from rm_service.domain import class_book
from rm_service.domain import operations as op
from rm_service.domain.outcomes import Code, Done, Refused
from rm_service.domain.resource_classes import read_spec
from rm_service.ledger import class_rows, whole
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.services.resource_classes import ResourceClasses


def with_serial_numbers(instance: str, numbers: range) -> op.RegisterNode:
    devices = [
        {"name": f"g{number}", "attributes": {"Kind": "gpu", "serial": {"string": f"s{number}"}}}
        for number in numbers
    ]
    return op.RegisterNode(instance, "LoadInstance", {"memory": 1}, devices=devices)


def test_devices_that_are_all_told_apart_are_refused_and_nothing_changes(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_book, "MAX_SIGNATURES", 10)
    assert isinstance(ledger.submit([with_serial_numbers("h1", range(8))])[0], Done)
    refused = ledger.submit([with_serial_numbers("h2", range(8, 12))])[0]
    assert isinstance(refused, Refused)
    assert (refused.code, refused.field) == (Code.TOO_MANY_SIGNATURES, "devices")
    again, of_known_ones = ledger.submit(
        [with_serial_numbers("h1", range(8)), with_serial_numbers("h2", range(4))]
    )
    assert isinstance(again, Done)
    assert isinstance(of_known_ones, Done)


def test_there_are_only_so_many_classes_and_one_that_goes_makes_room(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "MAX_CLASSES", 2)
    classes = ResourceClasses(ledger)
    outcomes = [classes.create(f"c{number}", read_spec({})) for number in range(3)]
    assert [isinstance(outcome, Done) for outcome in outcomes] == [True, True, False]
    assert isinstance(outcomes[2], Refused)
    assert outcomes[2].code is Code.TOO_MANY_CLASSES
    classes.remove("c0")
    assert isinstance(classes.create("c2", read_spec({})), Done)


def test_what_was_met_once_is_not_read_again(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process knows hundreds of classes; each change of a rule would read them all."""
    classes = ResourceClasses(ledger)
    for number in range(3):
        classes.create(f"c{number}", read_spec({}))
    assert len(classes.standings().items) == 3
    read = Mock(side_effect=read_spec)
    monkeypatch.setattr(class_rows, "read_spec", read)
    ledger.submit_whole(op.SetLimit({"user": "alice"}, {"memory": 5}))
    assert len(classes.standings().items) == 3
    read.assert_not_called()


def test_more_signatures_than_one_question_names_are_learnt(
    ledger: Ledger, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_rows, "CHUNK", 3)
    assert isinstance(ledger.submit([with_serial_numbers("h1", range(10))])[0], Done)
    other = Ledger(LedgerSettings(database_url))  # another process, which has met none of them
    assert len(other.book().signatures) == 10
    other.readers.dispose()
