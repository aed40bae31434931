"""External places as the ledger knows them: which are in use, and by which applications of ours."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, or_, select

from rm_service.domain.amounts import NOTHING, Amounts, minus, plus
from rm_service.domain.application import HOLDING
from rm_service.domain.label_rules import LabelRules
from rm_service.domain.selectors import Operator, Requirement, Selector
from rm_service.domain.tags import Tags
from rm_service.ledger import tables
from rm_service.ledger.queries.labels import having
from rm_service.ledger.queries.tag_index import live_with, named

_EVERYTHING = Selector()
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


@dataclass(frozen=True, slots=True)
class ObservedPlace:
    """A place of which something was seen at some time, whether or not it is in use."""

    tags: Tags
    provider: str
    """Who spoke for it, `yarn/c1`."""
    manager: str
    """A mark of whom that provider asked."""
    is_shut: bool
    """Nothing is known of it any more, and so nothing new is granted there."""


def observed_places(connection: Connection, rules: LabelRules, type_: str) -> list[ObservedPlace]:
    """The places of this type of manager that were ever observed. Index: ix_label_key_set."""
    label, balance = tables.label, tables.balance
    rows = connection.execute(
        select(label.c.tags, balance.c.total, balance.c.closed, balance.c.observation)
        .join(balance, balance.c.label_id == label.c.id)
        .where(label.c.key_set.in_(_key_sets(rules, type_)), balance.c.observation.is_not(None))
        .order_by(label.c.id)
    )
    places = []
    for row in rows:
        seen = row.observation
        is_shut = row.total is None and row.closed is not None and not seen["ignored_when_stale"]
        places.append(ObservedPlace(row.tags, seen["provider"], seen.get("manager", ""), is_shut))
    return places


def used_places(
    connection: Connection,
    rules: LabelRules,
    type_: str,
    cluster_key: str | None = None,
    labels: Selector = _EVERYTHING,
) -> list[UsedPlace]:
    """The places of this type of manager that somebody holds something at, or waits for.

    `cluster_key` is the tag by which their applications are found; without it no tenants are. `labels`: only
    places whose tags it matches, and their tenants. Index: ix_label_key_set and label_tag, then the live
    applications by that tag.
    """
    label, balance = tables.label, tables.balance
    used = (
        select(label.c.id, label.c.tags, balance.c.locked, balance.c.used, balance.c.seen)
        .join(balance, balance.c.label_id == label.c.id)
        .where(
            label.c.key_set.in_(_key_sets(rules, type_)),
            *[having(term) for term in named(labels)],
            or_(balance.c.applications > 0, balance.c.first_priority.is_not(None)),
        )
        .order_by(label.c.id)
    )
    places = {row.id: row for row in connection.execute(used) if labels.matches(row.tags)}
    clusters: list[str] = []
    if cluster_key is not None:
        clusters = sorted({row.tags[cluster_key] for row in places.values() if cluster_key in row.tags})
    tenants: dict[int, list[Tenant]] = defaultdict(list)
    for start in range(0, len(clusters), _VALUES):
        for tags, label_ids, tenant in _tenants(
            connection, str(cluster_key), clusters[start : start + _VALUES]
        ):
            for label_id in label_ids:
                if label_id in places and places[label_id].tags.items() <= tags.items():
                    tenants[label_id].append(tenant)
    return [
        UsedPlace(row.tags, tuple(tenants[row.id]), minus(plus(row.locked, row.used), row.seen))
        for row in places.values()
    ]


def external_types(rules: LabelRules) -> list[str]:
    """The types of managers that some label rule names."""
    return sorted({rule.external for rule in rules.external if rule.external is not None})


def _key_sets(rules: LabelRules, type_: str) -> list[str]:
    return [",".join(sorted(rule.keys)) for rule in rules.rules if rule.external == type_]


def _tenants(
    connection: Connection, key: str, values: Sequence[str]
) -> list[tuple[Tags, Sequence[int], Tenant]]:
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
            row.tags,
            row.label_ids,
            Tenant(
                str(row.id),
                () if row.external is None else tuple(row.external["ids"]),
                NOTHING if row.external is None else row.external["shown"],
            ),
        )
        for row in rows
    ]
