"""The floor on SQLite: the grant of the other floor by Python's own driver, one durable commit each."""

import random
import sqlite3
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from benchmarks.floor import CLIENTS, LABELS
from benchmarks.rounds import Load

SCHEMA = """
CREATE TABLE balance (id INTEGER, dim TEXT, total INTEGER, used INTEGER NOT NULL, locked INTEGER NOT NULL,
    protected INTEGER, PRIMARY KEY (id, dim)) WITHOUT ROWID;
CREATE TABLE application (id TEXT PRIMARY KEY, amounts TEXT, created INTEGER) WITHOUT ROWID;
CREATE TABLE application_label (application TEXT, label INTEGER,
    PRIMARY KEY (application, label)) WITHOUT ROWID;
CREATE TABLE event (seq INTEGER PRIMARY KEY, body TEXT);
"""
CHARGE = (
    "UPDATE balance SET locked = locked + 1 WHERE id = ? AND dim = 'memory'"
    " AND total - used - locked - protected >= 1"
)


class SqliteFloor:
    """The same grant on SQLite: one durable commit a grant, one after another on one connection."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._connection = connection = _sqlite(file)
        connection.executescript(SCHEMA)
        rows = [
            (label, dim) for label in range(1, 3 * LABELS + 1) for dim in ("memory", "vcore", "instances")
        ]
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO balance VALUES (?, ?, 1000000000000000, 0, 0, 0)", rows)
        connection.execute("COMMIT")

    def grants(self, where: str, seconds: float) -> Load:
        """Grants one after another, on one `hot` set of labels or `spread` over 1,000."""
        begun = time.perf_counter()
        latencies = _grants_until(self._connection, where, begun + seconds)
        return Load(len(latencies) / (time.perf_counter() - begun), sorted(latencies))

    def contended(self, where: str, seconds: float) -> Load:
        """Grants by 32 threads with a connection each, who wait for one another in SQLite."""

        def work() -> list[float]:
            with closing(_sqlite(self._file)) as connection:
                return _grants_until(connection, where, begun + seconds)

        begun = time.perf_counter()
        with ThreadPoolExecutor(CLIENTS) as pool:
            working = [pool.submit(work) for _ in range(CLIENTS)]
            latencies = sorted(latency for worker in working for latency in worker.result())
        return Load(len(latencies) / (time.perf_counter() - begun), latencies)

    def close(self) -> None:
        self._connection.close()


def _sqlite(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None, timeout=60)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    return connection


def _grants_until(connection: sqlite3.Connection, where: str, end: float) -> list[float]:
    """Grants, each in a transaction of its own; their latencies (ms)."""
    latencies: list[float] = []
    before = time.perf_counter()
    while before < end:
        if where == "hot":
            _grant(connection, (1, 2, 3))
        else:
            _grant(connection, [random.randint(LABELS * i + 1, LABELS * (i + 1)) for i in range(3)])
        after = time.perf_counter()
        latencies.append((after - before) * 1e3)
        before = after
    return latencies


def _grant(connection: sqlite3.Connection, labels: Sequence[int]) -> None:
    execute = connection.execute
    application = f"{random.getrandbits(128):032x}"
    execute("BEGIN IMMEDIATE")
    for label in labels:
        execute(CHARGE, (label,))
    execute("INSERT INTO application VALUES (?, '{\"memory\": 1}', ?)", (application, time.time_ns()))
    for label in labels:
        execute("INSERT INTO application_label VALUES (?, ?)", (application, label))
    execute('INSERT INTO event (body) VALUES (\'{"kind": "locked"}\')')
    execute("COMMIT")
