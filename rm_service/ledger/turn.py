"""A turn: the one transaction that may change the ledger, from taking it to giving it back.

Whoever has locked the single row of `ledger_head` (on SQLite: holds the write lock) has the turn. Everything
that the turn reads is therefore settled and stays so until it commits; no other row has to be locked.
"""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import orjson
from sqlalchemy import Connection

from rm_service.domain.accounts import Balance, Observation
from rm_service.domain.application import Application, External, Instant, Standing, State
from rm_service.domain.devices import read_devices, read_held
from rm_service.domain.registrations import Engine, Node
from rm_service.ledger.documents import Bulk, to_json
from rm_service.ledger.pipeline import Pipeline
from rm_service.ledger.statements import POSTGRES, SQLITE

Question = tuple[str, tuple[str, ...]]
"""A statement that answers one document, and its parameters."""


class Cursor(Protocol):
    """What a turn needs of a statement that was executed."""

    def fetchone(self) -> Any: ...  # noqa: ANN401 - a row is whatever the statement selects

    def fetchall(self) -> list[Any]: ...


@dataclass(frozen=True, slots=True)
class Head:
    """Where the ledger stands at the beginning of a turn."""

    seq: int
    targets: int
    labels: int
    epoch: int
    away: str
    """The clients that get nothing new, as a JSON list."""
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
    names: set[str] = field(default_factory=set)
    """Live applications are also found by what their clients call them."""
    pools: bool = False
    """Which placement pools somebody waits in: whatever may free a node wakes them."""


@dataclass(slots=True)
class Rows:
    """What was found of them."""

    applications: list[Application]
    balances: list[Balance]
    nodes: list[Node]
    engines: list[Engine]
    heads: dict[int, list[str]]
    pool_ids: list[int] | None
    """None: they were not asked for."""


class Turn:
    """One turn on an open connection; leave it by `commit` or `roll_back`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.sqlite = connection.dialect.name == "sqlite"
        self.texts = SQLITE if self.sqlite else POSTGRES
        self._head: Head | None = None
        driver: Any = connection.connection.driver_connection
        self.driver = driver
        self._pipeline: Pipeline | None = None
        self._streaming = False
        if not self.sqlite:
            self._pipeline = connection.info.get(Pipeline) or Pipeline(driver)
            connection.info[Pipeline] = self._pipeline

    @property
    def connection(self) -> Connection:
        """For statements that are not a turn's own: each waits for its answer."""
        self.flush()
        return self._connection

    def commit(self) -> None:
        """Commit what was written, and give the turn back."""
        if self._pipeline is not None:
            self._pipeline.commit()
        self._connection.commit()

    def roll_back(self) -> None:
        """Take back everything, and give the turn back."""
        self.flush()
        self._connection.rollback()

    def flush(self) -> None:
        """Wait until everything that was sent is done; raises what went wrong with it."""
        self._streaming = False
        if self._pipeline is not None:
            self._pipeline.wait()

    def stream(self) -> None:
        """From here on send statements without waiting for their answers, where the database can do that."""
        self._streaming = True

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

    def read_rows(self, wanted: Wanted) -> Rows:
        """As `read`, whether this has the turn or not."""
        self.stream()
        return self._read(wanted)

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
        if wanted.names:
            return self._read_named(wanted, labels, keys, engines, heads)
        balances, pools, applications, engines_of, nodes = self._ask(
            [
                (texts.balances_of, (labels, keys, keys)) if ids else (texts.balances, (labels,)),
                (texts.pools if wanted.pools else "SELECT NULL", ()),
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
            pool_ids=pools if wanted.pools else None,
        )

    def _read_named(
        self, wanted: Wanted, labels: str, keys: str, engines: list[Engine], heads: dict[int, list[str]]
    ) -> Rows:
        """As above, with the live applications of these names and the parents of all."""
        texts = self.texts
        names = to_json(sorted(wanted.names))
        balances, pools, applications, engines_of, nodes = self._ask(
            [
                (texts.balances_of_chosen, (labels,)),
                (texts.pools if wanted.pools else "SELECT NULL", ()),
                (texts.chosen_applications, ()),
                (texts.engines_of_chosen, ()),
                _about(texts.nodes, wanted.node_label_ids),
            ],
            (texts.chosen, (keys, names)),
        )
        return Rows(
            applications=[_application(row) for row in applications],
            balances=[_balance(row) for row in balances],
            nodes=[_node(row) for row in nodes],
            engines=engines + [Engine(*row) for row in engines_of],
            heads=heads,
            pool_ids=pools if wanted.pools else None,
        )

    def pool_ids(self) -> list[int]:
        """The placement pools in which somebody waits."""
        (ids,) = self._ask([(self.texts.pools, ())])
        return ids

    def members_of(self, application_id: str) -> list[str]:
        """The live applications that are members of this one."""
        return [str(row[0]) for row in self.execute(self.texts.members, application_id).fetchall()]

    def tenants_of(self, label_id: int) -> list[str]:
        """The live applications that name the node of this label; of its namesakes elsewhere, too."""
        return [str(row[0]) for row in self.execute(self.texts.tenants, label_id).fetchall()]

    def _ask(self, questions: Sequence[Question], first: Question = ("", ())) -> list[list[Any]]:
        """Put several questions as one statement: what it costs is mostly its being sent."""
        texts = ", ".join(f"({text})" for text, _ in questions)
        parameters = [parameter for _, several in (first, *questions) for parameter in several]
        documents = self.execute(f"{first[0]}SELECT {texts}", *parameters).fetchone()
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
        """After `stream`, what went wrong shows when an answer is fetched, or by `flush`."""
        if self._pipeline is not None:
            answer = self._pipeline.execute(text, parameters)
            if not self._streaming:
                self._pipeline.wait()
            return answer
        cursor: Cursor = self.driver.cursor().execute(text, parameters)
        return cursor


def external_of(document: Any) -> External | None:  # noqa: ANN401 - as it was written, or None
    if document is None:
        return None
    return External(tuple(document["ids"]), document["shown"])


def observation_of(document: Any) -> Observation | None:  # noqa: ANN401 - as it was written, or None
    return None if document is None else Observation(**document)


def _about(text: str, keys: Collection[Any]) -> Question:
    """Ask for the rows with these keys; nothing is asked when there are none."""
    return (text, (to_json(sorted(keys)),)) if keys else ("SELECT NULL", ())


def _application(row: list[Any]) -> Application:
    application = Application(*row)
    application.state = State(application.state)
    application.label_ids = tuple(application.label_ids)
    application.waits_on = tuple(application.waits_on)
    application.over_limit = bool(application.over_limit)
    standing: Any = application.standing
    application.standing = None if standing is None else Standing(**standing)
    application.alternatives = tuple(application.alternatives or ())
    application.external = external_of(application.external)
    devices: Any = application.devices
    application.devices = read_held(devices)
    return application


def _balance(row: list[Any]) -> Balance:
    balance = Balance(*row)
    balance.wake = bool(balance.wake)
    balance.observation = observation_of(balance.observation)
    devices: Any = balance.devices
    balance.devices = read_devices(devices)
    return balance


def _node(row: list[Any]) -> Node:
    node = Node(*row)
    return replace(node, devices=tuple(node.devices), removed=bool(node.removed))
