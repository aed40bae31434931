"""The schema: brought to the newest revision, checked at start; and the event table's partitions."""

from datetime import UTC, datetime

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from rm_service.bundled import bundled

_MIGRATION_LOCK = 8310
MONTHS_AHEAD = 2


class WrongRevisionError(Exception):
    """The database's schema is not the one that this version works with."""

    def __init__(self, found: str | None, wanted: str | None) -> None:
        self.found = found
        self.wanted = wanted
        super().__init__(
            f"the database is at revision {found or 'none'}, this version needs {wanted}:"
            " run `rm-service migrate`"
        )


def migrate(engine: Engine) -> str:
    """Bring the schema to the newest revision, one process at a time; the revision is returned."""
    config = _config()
    with engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            # A migration must wait for its locks only so long: everybody else waits behind it.
            connection.execute(text("SET lock_timeout = '30s'"))
            connection.execute(text("SET statement_timeout = 0"))
            connection.execute(text("SET idle_in_transaction_session_timeout = 0"))
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        ensure_partitions(connection, datetime.now(UTC))
        connection.commit()
    return ScriptDirectory.from_config(config).get_current_head() or ""


def check_revision(engine: Engine) -> None:
    """Raise WrongRevisionError unless the schema is at the newest revision."""
    wanted = ScriptDirectory.from_config(_config()).get_current_head()
    with engine.connect() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
    if found != wanted:
        raise WrongRevisionError(found, wanted)


def ensure_partitions(connection: Connection, now: datetime) -> None:
    """Make the event table's partitions of this month and the next ones, where they are missing."""
    if connection.dialect.name != "postgresql":
        return
    month = datetime(now.year, now.month, 1, tzinfo=UTC)
    for _ in range(MONTHS_AHEAD + 1):
        following = datetime(month.year + month.month // 12, month.month % 12 + 1, 1, tzinfo=UTC)
        connection.execute(
            text(
                f"CREATE TABLE IF NOT EXISTS event_{month:%Y_%m} PARTITION OF event"
                f" FOR VALUES FROM ({_instant(month)}) TO ({_instant(following)})"
            )
        )
        month = following


def _instant(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(bundled("migrations")))
    return config
