"""Rows as the domain's values."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

from sqlalchemy import Column, RowMapping, Table

from rm_service.domain.account_rules import label_rule
from rm_service.domain.accounts import Account, Balance, Label
from rm_service.domain.application import Application, Standing, State
from rm_service.domain.devices import read_devices, read_held
from rm_service.domain.events import Event, Kind
from rm_service.domain.registrations import Engine, Node
from rm_service.ledger import tables
from rm_service.ledger.rulebook import RuleBook
from rm_service.ledger.turn import external_of, observation_of

T = TypeVar("T")


def _columns(table: Table, record: type, *without: str) -> tuple[Column[Any], ...]:
    return tuple(table.c[field.name] for field in fields(record) if field.name not in without)


APPLICATION = _columns(tables.application, Application)
BALANCE = _columns(tables.balance, Balance)
NODE = _columns(tables.node, Node)
ENGINE = _columns(tables.engine, Engine, "removed")
EVENT = _columns(tables.event, Event)
LABEL = (tables.label.c.key, tables.label.c.tags.label("label_tags"))
"""Beside BALANCE: what the label itself is."""


def application_of(row: RowMapping) -> Application:
    values = _values(row, APPLICATION)
    values["state"] = State(values["state"])
    values["label_ids"] = tuple(values["label_ids"])
    values["waits_on"] = tuple(values["waits_on"])
    values["standing"] = None if values["standing"] is None else Standing(**values["standing"])
    values["alternatives"] = tuple(values["alternatives"] or ())
    values["external"] = external_of(values["external"])
    values["devices"] = read_held(values["devices"])
    return Application(**values)


def balance_of(row: RowMapping) -> Balance:
    values = _values(row, BALANCE)
    values["observation"] = observation_of(values["observation"])
    values["devices"] = read_devices(values["devices"])
    return Balance(**values)


def account_of(row: RowMapping, book: RuleBook) -> Account:
    """The account of a row with the columns BALANCE and LABEL."""
    balance, tags = balance_of(row), row["label_tags"]
    rule = label_rule(book.rules, tags)
    return Account(Label(balance.label_id, row["key"], tags, rule), book.limits.resolve(tags), balance)


def node_of(row: RowMapping, prefix: str = "") -> Node:
    values = _values(row, NODE, prefix)
    values["devices"] = tuple(values["devices"])
    return Node(**values)


def engine_of(row: RowMapping, prefix: str = "") -> Engine:
    return Engine(**_values(row, ENGINE, prefix))


def event_of(row: RowMapping) -> Event:
    values = _values(row, EVENT)
    values["kind"] = Kind(values["kind"])
    values["label_ids"] = tuple(values["label_ids"])
    return Event(**values)


def prefixed(columns: Sequence[Column[T]], prefix: str) -> list[Any]:
    """The columns under names of their own, for a row that joins two tables."""
    return [column.label(prefix + column.name) for column in columns]


def _values(row: RowMapping, columns: Sequence[Column[Any]], prefix: str = "") -> dict[str, Any]:
    return {column.name: row[prefix + column.name] for column in columns}
