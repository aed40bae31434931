"""What applications hold, now or at a past moment, grouped by the values of some of their tags.

The database groups applications of the same tags that hold the same amounts; the sums are made of these
groups in Python, where no number can overflow.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    Select,
    Text,
    case,
    cast,
    func,
    literal,
    or_,
    select,
    type_coerce,
    union_all,
)

from rm_service.domain.amounts import Amounts
from rm_service.domain.application import HOLDING, Instant, State
from rm_service.domain.devices import amounts_of, read_held
from rm_service.domain.selectors import Requirement
from rm_service.ledger import tables
from rm_service.ledger.queries.tag_index import fulfilling, live_with, value_of

_APPLICATION = tables.application
_INTERVAL = tables.application_interval


@dataclass(frozen=True, slots=True)
class Held:
    """So many applications with these tags hold these amounts each. `tags` has only those asked for."""

    tags: dict[str, str]
    state: State
    amounts: Amounts
    applications: int


def held_now(
    connection: Connection, keys: Sequence[str], needed: Sequence[str], named: Sequence[Requirement]
) -> Iterator[Held]:
    """What the live applications hold that carry the tags `needed` and the values that `named` names.

    Index: that of the tags for values (on SQLite also for keys), else ix_application_live.
    """
    held = case(
        (_APPLICATION.c.state == State.LOCKED, _text(_APPLICATION.c.requested)),
        else_=_text(_APPLICATION.c.used),
    )
    devices = _text(_APPLICATION.c.devices).label("devices")
    query = select(*_values(connection, keys), _APPLICATION.c.state, held.label("held"), devices).where(
        _APPLICATION.c.finished_at.is_(None),
        _APPLICATION.c.state.in_(HOLDING),
        *live_with(connection, named),
        *_carrying(connection, needed, [term.key for term in named]),
    )
    return _grouped(connection, query, keys)


def held_at(
    connection: Connection,
    keys: Sequence[str],
    needed: Sequence[str],
    named: Sequence[Requirement],
    at: Instant,
) -> Iterator[Held]:
    """The same for a moment, which belongs to what begins at it.

    Looked at is what lives now (ix_application_live) and what has ended since (ix_application_finished_at),
    with the earlier amounts of these (primary key of application_interval).
    """
    row, then = _APPLICATION.c, _INTERVAL.c
    values = _values(connection, keys)
    devices = _text(row.devices).label("devices")
    there = [
        or_(row.finished_at.is_(None), row.finished_at > at),
        row.created_at <= at,
        *fulfilling(connection, named),
        *[value_of(connection, key).is_not(None) for key in needed],
    ]
    lock_end = func.coalesce(row.used_at, row.finished_at, at + 1)
    locked = select(
        *values, literal(State.LOCKED.value).label("state"), _text(row.requested).label("held"), devices
    ).where(row.locked_at <= at, lock_end > at, *there)
    used = select(
        *values, literal(State.USED.value).label("state"), _text(row.used).label("held"), devices
    ).where(row.used_at.is_not(None), row.since <= at, *there)
    before = (
        select(*values, then.state, _text(then.amounts).label("held"), devices)
        .select_from(_APPLICATION.join(_INTERVAL, then.application_id == row.id))
        .where(then.since <= at, then.until > at, *there)
    )
    return _grouped(connection, union_all(locked, used, before), keys)


def _grouped(
    connection: Connection, query: Select[Any] | CompoundSelect[Any], keys: Sequence[str]
) -> Iterator[Held]:
    each = query.subquery()
    columns = [each.c[f"value{place}"] for place in range(len(keys))]
    group = [*columns, each.c.state, each.c.held, each.c.devices]
    counted: Select[Any] = select(*group, func.count().label("applications")).group_by(*group)
    for *values, state, held, devices, applications in connection.execute(
        counted.execution_options(yield_per=5000)
    ):
        tags = {key: value for key, value in zip(keys, values, strict=True) if value is not None}
        amounts = orjson.loads(held)
        if devices is not None and devices != "[]":
            amounts |= amounts_of(read_held(orjson.loads(devices)))
        yield Held(tags, State(state), amounts, applications)


def _values(connection: Connection, keys: Sequence[str]) -> list[ColumnElement[Any]]:
    return [value_of(connection, key).label(f"value{place}") for place, key in enumerate(keys)]


def _carrying(
    connection: Connection, needed: Sequence[str], named: Sequence[str]
) -> list[ColumnElement[bool]]:
    """Only applications with these keys: on SQLite the tag table finds them, unless a value does."""
    if connection.dialect.name == "postgresql" or named or not needed:
        return [value_of(connection, key).is_not(None) for key in needed]
    tag = tables.application_tag.c
    return [_APPLICATION.c.id.in_(select(tag.application_id).where(tag.key == key)) for key in needed]


def _text(column: ColumnElement[Any]) -> ColumnElement[str]:
    """A JSON column as the text that it is stored as, so that equal amounts can be grouped."""
    return cast(type_coerce(column, Text), Text)
