"""Who holds what is charged to one label.

Applications carry their label ids, but no index leads from a label to them: they are found by the label's
tags, which every application that is charged to it carries. A hierarchical tag may also be a level below;
where the label has only such tags all live applications are looked through (ix_application_live).
"""

from dataclasses import dataclass

from sqlalchemy import BigInteger, ColumnElement, Connection, Select, case, cast, func, select
from sqlalchemy.dialects.postgresql import JSONB

from rm_service.domain.accounts import Label
from rm_service.domain.application import Application, State
from rm_service.domain.label_rules import LabelRules
from rm_service.ledger import tables
from rm_service.ledger.queries.rows import APPLICATION, application_of
from rm_service.ledger.queries.tag_index import live_with, requirements_of

_TABLE = tables.application


@dataclass(frozen=True, slots=True)
class Holder:
    """An application and how much of one dimension it holds, locked or used."""

    application: Application
    amount: int


def largest_holders(
    connection: Connection, rules: LabelRules, label: Label, dimension: str, limit: int = 5
) -> list[Holder]:
    """The live applications that hold most of `dimension` on this label, the largest first."""
    held = case((_TABLE.c.state == State.LOCKED, _TABLE.c.requested), else_=_TABLE.c.used)
    if connection.dialect.name == "postgresql":
        amount: ColumnElement[int] = cast(cast(held, JSONB)[dimension].astext, BigInteger)
    else:
        each = func.json_each(held).table_valued("key", "value")
        amount = select(cast(each.c.value, BigInteger)).where(each.c.key == dimension).scalar_subquery()
    query = _charged(connection, select(*APPLICATION, amount.label("amount")), rules, label).where(amount > 0)
    rows = connection.execute(query.order_by(amount.desc(), _TABLE.c.id).limit(limit)).mappings()
    return [Holder(application_of(row), row["amount"]) for row in rows]


def holder_ids(
    connection: Connection, rules: LabelRules, label: Label, limit: int, after: str | None = None
) -> list[str]:
    """The ids of applications that hold something on this label, in order, behind the id `after`."""
    query = _charged(connection, select(_TABLE.c.id), rules, label)
    if after is not None:
        query = query.where(_TABLE.c.id > after)
    return [str(row.id) for row in connection.execute(query.order_by(_TABLE.c.id).limit(limit))]


def _charged(
    connection: Connection, query: Select[tuple[object, ...]], rules: LabelRules, label: Label
) -> Select[tuple[object, ...]]:
    """Restrict a query to the live applications that hold something and are charged to the label."""
    flat = {key: value for key, value in label.tags.items() if key not in rules.separators}
    if connection.dialect.name == "postgresql":
        charged = cast(_TABLE.c.label_ids, JSONB).contains([label.id])
    else:
        each = func.json_each(_TABLE.c.label_ids).table_valued("value")
        charged = select(each.c.value).where(each.c.value == label.id).exists()
    return query.where(
        _TABLE.c.finished_at.is_(None),
        _TABLE.c.state.in_([State.LOCKED, State.USED]),
        charged,
        *live_with(connection, requirements_of(flat)),
    )
