"""What is due: one statement whose every part is a probe of a small partial index.

Nothing is locked. What it names is judged again, on settled rows, by the operations that follow.
"""

import time
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import BigInteger, ColumnElement, Connection, literal_column, text

from rm_service.domain.application import Instant
from rm_service.domain.clients import Client
from rm_service.domain.external_changes import GONE_AFTER

BOUND = 500
"""The most that is named of each kind; the rest is named by the next look."""

_STRANDED = (
    "SELECT a.id, n.instance, n.reason FROM balance AS b {joins}"
    " WHERE b.closed = 'lost' AND b.applications > 0 AND a.state IN ('locked', 'used')"
)
_UNREPORTED = "SELECT rm_id, registration FROM si_client WHERE resync_until <= {now} ORDER BY resync_until"
_CLIENTS = "SELECT rm_id, state, seen_at FROM si_client WHERE state = '{state}' ORDER BY seen_at"
_WOKEN = (
    "SELECT label_id FROM balance WHERE wake UNION SELECT label_id FROM balance"
    " WHERE first_priority IS NOT NULL AND observation IS NOT NULL AND ({ended_at} <= {now} - "
    f"{GONE_AFTER}"
    " OR ({stale_at} <= {now} AND {ignored}))"
)
_PARTS = {
    "applications": ("d.id", "SELECT id FROM application WHERE deadline <= {now} ORDER BY deadline"),
    "nodes": (
        "{array}(d.instance, d.partition)",
        "SELECT instance, partition FROM node WHERE deadline <= {now} ORDER BY deadline",
    ),
    "engines": ("d.instance", "SELECT instance FROM engine WHERE deadline <= {now} ORDER BY deadline"),
    "woken": ("d.label_id", _WOKEN),
    "stranded": ("{array}(d.id, d.instance, d.reason)", _STRANDED),
    "running": ("{array}(d.rm_id, d.state, d.seen_at)", _CLIENTS.format(state="running")),
    "paused": ("{array}(d.rm_id, d.state, d.seen_at)", _CLIENTS.format(state="paused")),
    "unreported": ("{array}(d.rm_id, d.registration)", _UNREPORTED),
}

_WORDS = {
    "postgresql": {
        "now": "CAST(extract(epoch FROM now()) * 1000000 AS bigint)",
        "joins": (
            "JOIN node AS n ON n.label_id = b.label_id JOIN application AS a"
            " ON a.finished_at IS NULL AND a.tags @> jsonb_build_object('node', n.instance)"
            " AND coalesce(a.tags ->> 'partition', '') = n.partition"
        ),
        "ended_at": "CAST(observation -> 'ended' -> 0 ->> 0 AS bigint)",
        "stale_at": "CAST(observation ->> 'stale_at' AS bigint)",
        "ignored": "observation ->> 'ignored_when_stale' = 'true'",
        "array": "json_build_array",
        "gather": "json_agg",
    },
    "sqlite": {
        "now": ":now",
        # A cross join is SQLite's way to say in which order to join: from the few lost nodes outwards.
        "joins": (
            "CROSS JOIN node AS n ON n.label_id = b.label_id"
            " CROSS JOIN application_tag AS t ON t.key = 'node' AND t.value = n.instance"
            " CROSS JOIN application AS a ON a.id = t.application_id"
            " AND coalesce(a.tags ->> 'partition', '') = n.partition"
        ),
        "ended_at": "json_extract(observation, '$.ended[0][0]')",
        "stale_at": "json_extract(observation, '$.stale_at')",
        "ignored": "json_extract(observation, '$.ignored_when_stale')",
        "array": "json_array",
        "gather": "json_group_array",
    },
}


@dataclass(frozen=True, slots=True)
class Stranded:
    """An application that still holds something on a lost node."""

    application_id: str
    node: str
    reason: str | None
    """Why the node is lost."""


@dataclass(frozen=True, slots=True)
class Presence:
    """Whether a client is there, as far as was noted."""

    client: str
    state: str
    seen_at: Instant


@dataclass(frozen=True, slots=True)
class Due:
    """What is due by the database's clock, at most `BOUND` of each kind, and when a sweep last succeeded."""

    now: Instant
    succeeded_at: Instant
    """0: none has, ever."""
    checkpoint_at: Instant
    applications: tuple[str, ...]
    """Ids of those past their deadline."""
    nodes: tuple[tuple[str, str], ...]
    """Instances, each with its partition, that have been silent for too long."""
    engines: tuple[str, ...]
    """Instances likewise."""
    stranded: tuple[Stranded, ...]
    clients: tuple[Presence, ...]
    """Those clients that run, and those that are paused, which were not seen for longest."""
    unreported: tuple[Client, ...]
    """Clients whose time is over to report again what they had before they registered anew."""
    woken: tuple[int, ...]
    """Ids of labels whose queue is to be looked at: it is marked, or the place is judged in another way since
    some moment without anybody having done anything.
    """


def due_statement(dialect: str) -> str:
    """The statement's text for `postgresql` or `sqlite`; there it takes the host's time as `:now`."""
    words = _WORDS[dialect]
    columns = [f"{words['now']} AS now", "succeeded_at", "checkpoint_at"]
    for name, (item, rows) in _PARTS.items():
        gather = f"{words['gather']}({item})".format(**words)
        columns.append(f"(SELECT {gather} FROM ({rows} LIMIT {BOUND}) AS d) AS {name}".format(**words))
    return f"SELECT {', '.join(columns)} FROM sweep WHERE one = 1"


def read_due(connection: Connection) -> Due:
    """Look at what is due."""
    dialect = connection.dialect.name
    if dialect == "sqlite":
        host_time = {"now": time.time_ns() // 1000}
    else:
        host_time = {}
        # A plan made while the tables were small must not read them whole when they have grown.
        connection.execute(text("SET LOCAL enable_seqscan = off"))
    row = connection.execute(text(due_statement(dialect)), host_time).mappings().one()
    return Due(
        now=row["now"],
        succeeded_at=row["succeeded_at"],
        checkpoint_at=row["checkpoint_at"],
        applications=tuple(_items(row["applications"])),
        nodes=tuple([(item[0], item[1]) for item in _items(row["nodes"])]),
        engines=tuple(_items(row["engines"])),
        stranded=tuple([Stranded(*item) for item in _items(row["stranded"])]),
        clients=tuple([Presence(*item) for item in (*_items(row["running"]), *_items(row["paused"]))]),
        unreported=tuple([Client(*item) for item in _items(row["unreported"])]),
        woken=tuple(_items(row["woken"])),
    )


def host_or_database_time(connection: Connection) -> Instant | ColumnElement[int]:
    """Now: PostgreSQL's own clock; SQLite has the host's."""
    if connection.dialect.name == "sqlite":
        return time.time_ns() // 1000
    return literal_column(_WORDS["postgresql"]["now"], BigInteger)


def _items(document: str | list[Any] | None) -> list[Any]:
    """An array as the driver gives it: PostgreSQL's is read already, and None when it is empty."""
    return orjson.loads(document) if isinstance(document, str) else document or []
