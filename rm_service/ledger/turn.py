"""A turn: the one transaction that may change the ledger, from taking it to giving it back.

Whoever has locked the single row of `ledger_head` (on SQLite: holds the write lock) has the turn. Everything
that the turn reads is therefore settled and stays so until it commits; no other row has to be locked.
"""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

import orjson
from sqlalchemy import Connection

from rm_service.domain.accounts import Balance
from rm_service.domain.application import Application, Instant, State
from rm_service.domain.events import Event
from rm_service.domain.registrations import Engine, Node
from rm_service.ledger import tables
from rm_service.ledger.documents import Bulk, Documents, to_json

HEADS_READ = 17
"""One more than a wake looks at, to know whether there are others."""

_BALANCE_READ = tuple(column.name for column in fields(Balance))
_BALANCE_WRITTEN = ("locked", "used", "applications", "wake")
_ROOM_WRITTEN = ("total", "protected", "closed")
_APPLICATION = tuple(column.name for column in fields(Application))
_APPLICATION_FIXED = {"id", "request", "requested", "priority", "lock_seconds", "created_at", "placement"}
_APPLICATION_WRITTEN = tuple(name for name in _APPLICATION if name not in _APPLICATION_FIXED)
_NODE = tuple(column.name for column in fields(Node))
_ENGINE = tuple(column.name for column in fields(Engine) if column.name != "removed")
_EVENT = tuple(column.name for column in fields(Event))
_INTERVAL = tuple(column.name for column in tables.application_interval.columns)
_WAITER = ("label_id", "application_id", "priority", "seq")
_LABEL = tuple(column.name for column in tables.label.columns)
_LABEL_TAG = tuple(column.name for column in tables.label_tag.columns)
_BALANCE_NEW = ("label_id", "locked", "used", "applications", "wake", "is_pool")
_TAG = ("key", "value", "application_id")


Question = tuple[str, tuple[str, ...]]
"""A statement that answers one document, and its parameters."""


class Cursor(Protocol):
    """What a turn needs of a driver's cursor."""

    def execute(self, text: str, parameters: Sequence[object], /) -> object: ...

    def fetchone(self) -> Any: ...  # noqa: ANN401 - a row is whatever the statement selects

    def fetchall(self) -> list[Any]: ...


@dataclass(frozen=True, slots=True)
class Head:
    """Where the ledger stands at the beginning of a turn."""

    seq: int
    targets: int
    labels: int
    epoch: int
    now: Instant
    """The database's clock, read after the turn was taken; never before the last event's time."""
    swept_at: Instant
    """When a sweep last gave a sign of life; 0 before the first."""


@dataclass(slots=True)
class Wanted:
    """The rows that a batch works on, by their keys."""

    application_ids: set[str] = field(default_factory=set)
    label_ids: set[int] = field(default_factory=set)
    node_label_ids: set[int] = field(default_factory=set)
    engines: set[str] = field(default_factory=set)
    heads_of: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Rows:
    """What was found of them."""

    applications: list[Application]
    balances: list[Balance]
    nodes: list[Node]
    engines: list[Engine]
    heads: dict[int, list[str]]
    pool_ids: list[int]


class Statements:
    """The texts of a turn's statements in one dialect."""

    def __init__(self, *, sqlite: bool) -> None:
        documents = Documents(sqlite=sqlite)
        mark = documents.mark
        members = documents.members()
        self.take = (
            "UPDATE ledger_head SET one = 1 WHERE one = 1 RETURNING seq, targets, labels, epoch, max(time, ?)"
            if sqlite
            else "UPDATE ledger_head SET one = 1 WHERE one = 1 RETURNING seq, targets, labels, epoch,"
            " greatest(time, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)"
        ) + ", (SELECT succeeded_at FROM sweep)"
        self.give_back = f"UPDATE ledger_head SET seq = {mark}, time = {mark}, targets = {mark} WHERE one = 1"
        ids = members if sqlite else f"{members}::uuid"
        numbers = members if sqlite else f"{members}::bigint"
        charged = (
            "SELECT l.value FROM application AS a, json_each(a.label_ids) AS l WHERE a.id IN ({0})"
            " UNION SELECT w.value FROM application AS a, json_each(a.waits_on) AS w WHERE a.id IN ({0})"
            if sqlite
            else "SELECT json_array_elements_text(a.label_ids)::bigint FROM application AS a"
            " WHERE a.id IN ({0}) UNION SELECT json_array_elements_text(a.waits_on)::bigint"
            " FROM application AS a WHERE a.id IN ({0})"
        ).format(ids)
        self.balances = documents.select(tables.balance, _BALANCE_READ, f"label_id IN ({numbers})")
        self.balances_of = documents.select(
            tables.balance, _BALANCE_READ, f"label_id IN ({numbers} UNION {charged})"
        )
        pools = "json_group_array(label_id)" if sqlite else "json_agg(label_id)::text"
        self.pools = f"SELECT {pools} FROM balance WHERE is_pool AND first_priority IS NOT NULL"
        self.applications = documents.select(tables.application, _APPLICATION, f"id IN ({ids})")
        self.nodes = documents.select(tables.node, _NODE, f"label_id IN ({numbers})")
        self.engines = documents.select(tables.engine, _ENGINE, f"instance IN ({members})")
        self.engines_of = documents.select(tables.engine, _ENGINE, f"application_id IN ({ids})")
        self.heads = (
            "SELECT application_id FROM waiter WHERE label_id ="
            f" {mark} ORDER BY priority DESC, seq LIMIT {HEADS_READ}"
        )
        self.waiters = (
            "SELECT application_id, priority, seq FROM waiter WHERE label_id ="
            f" {mark} ORDER BY priority DESC, seq LIMIT {mark}"
        )
        self.insert_applications = documents.insert(tables.application, _APPLICATION)
        self.update_applications = documents.update(tables.application, "id", _APPLICATION_WRITTEN)
        self.insert_intervals = documents.insert(tables.application_interval, _INTERVAL)
        self.update_balances = documents.update(tables.balance, "label_id", _BALANCE_WRITTEN)
        self.update_rooms = documents.update(tables.balance, "label_id", _ROOM_WRITTEN)
        self.upsert_nodes = documents.upsert(tables.node, _NODE)
        self.upsert_engines = documents.upsert(tables.engine, _ENGINE)
        self.delete_engines = f"DELETE FROM engine WHERE instance IN ({members})"
        self.insert_events = documents.insert(tables.event, _EVENT)
        self.delete_waiters = f"DELETE FROM waiter WHERE application_id IN ({ids})"
        self.insert_waiters = documents.insert(tables.waiter, _WAITER)
        self.rank_waiters = (
            "UPDATE balance SET (first_priority, first_seq) = (SELECT priority, seq FROM waiter"
            " WHERE waiter.label_id = balance.label_id ORDER BY priority DESC, seq LIMIT 1)"
            f" WHERE label_id IN ({numbers})"
        )
        self.insert_labels = documents.insert(tables.label, _LABEL)
        self.insert_label_tags = documents.insert(tables.label_tag, _LABEL_TAG)
        self.insert_balances = documents.insert(tables.balance, _BALANCE_NEW)
        self.number_labels = f"UPDATE ledger_head SET labels = {mark} WHERE one = 1"
        self.insert_tags = documents.insert(tables.application_tag, _TAG, "ON CONFLICT DO NOTHING")
        self.delete_tags = "DELETE FROM application_tag WHERE key = ? AND value = ? AND application_id = ?"
        self.notify = "SELECT pg_notify('rm_ledger', '')"


POSTGRES = Statements(sqlite=False)
SQLITE = Statements(sqlite=True)


class Turn:
    """One turn on an open connection; leave it by `commit` or `roll_back`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.sqlite = connection.dialect.name == "sqlite"
        self.texts = SQLITE if self.sqlite else POSTGRES
        self._head: Head | None = None
        self.driver: Any = connection.connection.driver_connection
        self._pipeline: Any = None

    @property
    def connection(self) -> Connection:
        """For statements that are not a turn's own: each waits for its answer."""
        self.flush()
        return self._connection

    def commit(self) -> None:
        """Commit what was written, and give the turn back."""
        self._connection.commit()
        self.flush()

    def roll_back(self) -> None:
        """Take back everything, and give the turn back."""
        self.flush()
        self._connection.rollback()

    def flush(self) -> None:
        """Wait until everything that was sent is done; raises what went wrong with it."""
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            pipeline.__exit__(None, None, None)

    def stream(self) -> None:
        """From here on send statements without waiting for their answers, where the database can do that."""
        if self._pipeline is None and not self.sqlite:
            self._pipeline = self.driver.pipeline()
            self._pipeline.__enter__()

    def take(self) -> Head:
        """Wait for the turn, unless it is taken already."""
        if self._head is None:
            self._head = self._take()()
        return self._head

    def _take(self) -> Callable[[], Head]:
        host_time = (time.time_ns() // 1000,) if self.sqlite else ()
        cursor = self.execute(self.texts.take, *host_time)
        return lambda: Head(*cursor.fetchone())

    def read(self, wanted: Wanted) -> Rows:
        """Take the turn, and read the wanted rows and those that they lead to.

        Engines lead to their applications, waiters and applications to their labels.
        """
        self.stream()
        head = self._take() if self._head is None else None
        rows = self._read(wanted)
        if head is not None:
            self._head = head()
        return rows

    def _read(self, wanted: Wanted) -> Rows:
        texts = self.texts
        heads = {
            label_id: [str(row[0]) for row in self.execute(texts.heads, label_id).fetchall()]
            for label_id in sorted(wanted.heads_of)
        }
        (named,) = self._ask([_about(texts.engines, wanted.engines)]) if wanted.engines else ([],)
        engines = [Engine(*row) for row in named]
        ids = wanted.application_ids.union(*heads.values(), (engine.application_id for engine in engines))
        labels, keys = to_json(sorted(wanted.label_ids)), to_json(sorted(ids))
        balances, pools, applications, engines_of, nodes = self._ask(
            [
                (texts.balances_of, (labels, keys, keys)) if ids else (texts.balances, (labels,)),
                (texts.pools, ()),
                _about(texts.applications, ids),
                _about(texts.engines_of, ids),
                _about(texts.nodes, wanted.node_label_ids),
            ]
        )
        return Rows(
            applications=[_application(row) for row in applications],
            balances=[_balance(row) for row in balances],
            nodes=[_node(row) for row in nodes],
            engines=engines + [Engine(*row) for row in engines_of],
            heads=heads,
            pool_ids=pools,
        )

    def _ask(self, questions: Sequence[Question]) -> list[list[Any]]:
        """Put several questions as one statement: what it costs is mostly its being sent."""
        texts = ", ".join(f"({text})" for text, _ in questions)
        parameters = [parameter for _, several in questions for parameter in several]
        documents = self.execute(f"SELECT {texts}", *parameters).fetchone()
        return [[] if document is None else orjson.loads(document) for document in documents]

    def write_together(self, writes: Sequence[tuple[Bulk, Sequence[object]]], head: Sequence[int]) -> None:
        """Write rows of different tables, and the new head if it moved (`head` is not empty).

        On PostgreSQL it is one statement, which also tells the other replicas. No two of the writes may
        concern the same row.
        """
        writes = [(bulk, rows) for bulk, rows in writes if rows]
        if self.sqlite:
            for bulk, rows in writes:
                self.write(bulk, rows)
            if head:
                self.execute(self.texts.give_back, *head)
            return
        texts = [bulk.text for bulk, _ in writes]
        if head:
            texts.append(self.texts.give_back)
        if texts:
            parts = ", ".join(f"w{place} AS ({text})" for place, text in enumerate(texts))
            done = self.texts.notify if head else "SELECT 1"
            self.execute(f"WITH {parts} {done}", *[to_json(rows) for _, rows in writes], *head)

    def write(self, bulk: Bulk, rows: Sequence[object]) -> None:
        """Write rows by one statement; nothing is done when there are none."""
        if not rows:
            return
        if bulk.values is None:
            self.execute(bulk.text, to_json(rows))
        else:
            self.driver.executemany(bulk.text, [bulk.values(row) for row in rows])

    def execute(self, text: str, *parameters: object) -> Cursor:
        cursor: Cursor = self.driver.cursor()
        cursor.execute(text, parameters)
        return cursor


def _about(text: str, keys: Collection[Any]) -> Question:
    """Ask for the rows with these keys; nothing is asked when there are none."""
    return (text, (to_json(sorted(keys)),)) if keys else ("SELECT NULL", ())


def _application(row: list[Any]) -> Application:
    application = Application(*row)
    application.state = State(application.state)
    application.label_ids = tuple(application.label_ids)
    application.waits_on = tuple(application.waits_on)
    application.over_limit = bool(application.over_limit)
    return application


def _balance(row: list[Any]) -> Balance:
    balance = Balance(*row)
    balance.wake = bool(balance.wake)
    return balance


def _node(row: list[Any]) -> Node:
    node = Node(*row)
    return replace(node, devices=tuple(node.devices), removed=bool(node.removed))
