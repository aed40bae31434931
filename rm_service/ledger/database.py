"""Connections: an engine for readers, one connection for the writer, each set up to fail in time."""

import sqlite3
from collections.abc import Mapping

import orjson
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url

READ_POOL = 8
"""More connections than this on two busy rows make PostgreSQL slower, not faster."""

_KEEPALIVES: Mapping[str, object] = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}

WRITER_SETTINGS: Mapping[str, str] = {
    # A replica that was stopped while it had the turn must not keep it.
    "idle_in_transaction_session_timeout": "2s",
    "lock_timeout": "10s",
    "statement_timeout": "10s",
    # Each of the writer's statements is meant to find its rows by an index. A plan made while the tables
    # were empty would read them whole for ever after.
    "enable_seqscan": "off",
    # The same goes for joins with a batch's few keys: these two would read the other side whole.
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    # The first of those who wait come out of their index in order; a sort would read all of them first.
    "enable_sort": "off",
    "jit": "off",
}

READER_SETTINGS: Mapping[str, str] = {
    "jit": "off",
    "statement_timeout": "60s",
    "idle_in_transaction_session_timeout": "60s",
}


def reader_engine(url: str) -> Engine:
    """The engine of everything that only reads (and of migrations)."""
    return _engine(url, READER_SETTINGS, "BEGIN", READ_POOL)


def writer_engine(url: str) -> Engine:
    """The engine of this process' one writer; on SQLite each transaction takes the write lock at once."""
    return _engine(url, WRITER_SETTINGS, "BEGIN IMMEDIATE", 1)


def is_sqlite(url: str) -> bool:
    return make_url(url).get_backend_name() == "sqlite"


def _engine(url: str, settings: Mapping[str, str], begin: str, pool_size: int) -> Engine:
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _sqlite(parsed, begin, pool_size)
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    return create_engine(
        parsed,
        connect_args={
            **_KEEPALIVES,
            "options": options,
            "application_name": "rm-service",
            # With a rollback the driver would drop all prepared statements, those of the pipeline as well.
            "prepare_threshold": None,
        },
        pool_size=pool_size,
        max_overflow=0,
        hide_parameters=True,  # what a client keeps secret must not reach a log by way of an error
        pool_timeout=10,
        pool_pre_ping=True,
        json_deserializer=orjson.loads,
    )


def _sqlite(url: URL, begin: str, pool_size: int) -> Engine:
    engine = create_engine(
        url,
        connect_args={"timeout": 30, "check_same_thread": False},
        pool_size=pool_size,
        max_overflow=0,
        hide_parameters=True,
        json_deserializer=orjson.loads,
    )

    @event.listens_for(engine, "connect")
    def set_up(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # the driver starts no transactions of its own
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=30000"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine
