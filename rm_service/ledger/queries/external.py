"""External places as the ledger knows them: which are in use, and by which applications of ours."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, or_, select

from rm_service.domain.amounts import NOTHING, Amounts, minus, plus
from rm_service.domain.application import HOLDING
from rm_service.domain.label_rules import LabelRules
from rm_service.domain.selectors import Operator, Requirement
from rm_service.domain.tags import Tags, label_key
from rm_service.ledger import tables
from rm_service.ledger.queries.tag_index import live_with

_VALUES = 200
"""Values of a tag that are looked up at a time."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """An application of ours that holds something at a place."""

    id: str
    external_ids: tuple[str, ...]
    """What its engine said that it is called there."""
    shown: Amounts
    """What was seen of it at the last look."""


@dataclass(frozen=True, slots=True)
class UsedPlace:
    """A place where something is held, or waited for."""

    tags: Tags
    tenants: tuple[Tenant, ...] = ()
    """Those whose own place it is, the oldest first; who asked for one beneath it is a tenant there."""
    unseen: Amounts = field(default_factory=dict)
    """What is held there and was not shown at the last look."""
    is_top: bool = True
    """No other place in use holds this one, and all that is held here, too."""


def used_places(connection: Connection, rules: LabelRules, type_: str, cluster_key: str) -> list[UsedPlace]:
    """The places of this type of manager that somebody holds something at, or waits for.

    `cluster_key` is the tag by which their applications are found. Index: ix_label_key_set, then the live
    applications by that tag.
    """
    key_sets = [",".join(sorted(rule.keys)) for rule in rules.rules if rule.external == type_]
    label, balance = tables.label, tables.balance
    used = (
        select(label.c.id, label.c.tags, balance.c.locked, balance.c.used, balance.c.seen)
        .join(balance, balance.c.label_id == label.c.id)
        .where(
            label.c.key_set.in_(key_sets),
            or_(balance.c.applications > 0, balance.c.first_priority.is_not(None)),
        )
        .order_by(label.c.id)
    )
    places = {row.id: row for row in connection.execute(used)}
    clusters = sorted({row.tags[cluster_key] for row in places.values() if cluster_key in row.tags})
    tenants: dict[int, list[Tenant]] = defaultdict(list)
    for start in range(0, len(clusters), _VALUES):
        for row, tenant in _tenants(connection, cluster_key, clusters[start : start + _VALUES]):
            for label_id in row.label_ids:
                if label_id in places and places[label_id].tags.items() <= row.tags.items():
                    tenants[label_id].append(tenant)
    keys = {label_key(row.tags) for row in places.values()}
    return [
        UsedPlace(
            row.tags,
            tuple(tenants[row.id]),
            minus(plus(row.locked, row.used), row.seen),
            is_top=len(keys.intersection(label.key for label in rules.labels_for(row.tags))) == 1,
        )
        for row in places.values()
    ]


def _tenants(connection: Connection, key: str, values: Sequence[str]) -> list[tuple[Row[Any], Tenant]]:
    table = tables.application.c
    carrying = Requirement(key, Operator.IN, tuple(values))
    rows = connection.execute(
        select(table.id, table.tags, table.label_ids, table.external)
        .where(
            table.finished_at.is_(None),
            table.state.in_(sorted(HOLDING)),
            *live_with(connection, [carrying]),
        )
        .order_by(table.created_at, table.id)
    )
    return [
        (
            row,
            Tenant(
                str(row.id),
                () if row.external is None else tuple(row.external["ids"]),
                NOTHING if row.external is None else row.external["shown"],
            ),
        )
        for row in rows
    ]
