"""What is due: one statement whose every part is a probe of a small partial index.

Nothing is locked: what it names is judged again, on settled rows, by the operations that follow.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from sqlalchemy import Connection, text

from rm_service.domain.application import Instant

BOUND = 500
"""The most that is named of each kind; the rest is named by the next look."""

_PARTS = {
    "applications": "SELECT id AS due FROM application WHERE deadline <= {now} ORDER BY deadline",
    "nodes": "SELECT instance AS due FROM node WHERE deadline <= {now} ORDER BY deadline",
    "engines": "SELECT instance AS due FROM engine WHERE deadline <= {now} ORDER BY deadline",
    "woken": "SELECT label_id AS due FROM balance WHERE wake",
    "stranded": (
        "SELECT {pair} AS due FROM balance AS b JOIN node AS n ON n.label_id = b.label_id"
        " JOIN {held_by_node} WHERE b.closed = 'lost' AND b.applications > 0"
    ),
}

_POSTGRES = {
    "now": "(extract(epoch FROM now()) * 1000000)::bigint",
    "pair": "json_build_array(a.id, n.instance, n.reason)",
    "held_by_node": (
        "application AS a ON a.finished_at IS NULL AND a.state IN ('locked', 'used')"
        " AND a.tags @> jsonb_build_object('node', n.instance)"
    ),
    "document": "coalesce(json_agg(d.due), '[]')::text",
}

_SQLITE = {
    "now": ":now",
    "pair": "json_array(a.id, n.instance, n.reason)",
    "held_by_node": (
        "application_tag AS t ON t.key = 'node' AND t.value = n.instance"
        " JOIN application AS a ON a.id = t.application_id AND a.state IN ('locked', 'used')"
    ),
    "document": "json_group_array(d.due)",
}


@dataclass(frozen=True, slots=True)
class Stranded:
    """An application that still holds something on a lost node."""

    application_id: str
    node: str
    reason: str | None
    """Why the node is lost."""


@dataclass(frozen=True, slots=True)
class Due:
    """What the database's clock says is due, at most `BOUND` of each kind, and when a sweep last succeeded."""

    now: Instant
    succeeded_at: Instant
    """0: no sweep ever succeeded."""
    checkpoint_at: Instant
    applications: tuple[str, ...]
    """Ids of those past their deadline."""
    nodes: tuple[str, ...]
    """Instances that have been silent for too long."""
    engines: tuple[str, ...]
    stranded: tuple[Stranded, ...]
    woken: tuple[int, ...]
    """Labels whose queue is marked to be looked at."""


def due_statement(*, sqlite: bool) -> str:
    """The statement's text; on SQLite it takes the host's time as `:now`."""
    words = _SQLITE if sqlite else _POSTGRES
    columns = [f"{words['now']} AS now", "succeeded_at", "checkpoint_at"]
    for name, part in _PARTS.items():
        rows = f"{part.format(**words)} LIMIT {BOUND}"
        columns.append(f"(SELECT {words['document']} FROM ({rows}) AS d) AS {name}")
    return f"SELECT {', '.join(columns)} FROM sweep"


_STATEMENTS = {name: text(due_statement(sqlite=name == "sqlite")) for name in ("sqlite", "postgresql")}


def read_due(connection: Connection) -> Due:
    """Look at what is due."""
    dialect = connection.dialect.name
    host_time = {"now": time.time_ns() // 1000} if dialect == "sqlite" else {}
    row = connection.execute(_STATEMENTS[dialect], host_time).one()
    found: dict[str, Sequence[object]] = {name: orjson.loads(row._mapping[name]) for name in _PARTS}
    return Due(row.now, row.succeeded_at, row.checkpoint_at, **_typed(found))
