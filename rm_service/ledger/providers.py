"""The rows of external providers: read by whoever asks them, written within a turn."""

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from rm_service.domain.application import Instant
from rm_service.domain.providers import RemoveProvider, StalePolicy, StoredProvider, StoreProvider
from rm_service.domain.selectors import Selector, parse_selector
from rm_service.ledger import tables

Generation = tuple[int, int]
"""The newest version and how many there are: another one whenever anything about providers has changed."""

_TABLE = tables.external_provider
_PLAIN = [column for column in _TABLE.c if column.name not in {"config", "protected"}]
"""What cannot fail to be read: no document."""


def read_providers(connection: Connection) -> list[StoredProvider]:
    """All of them, by type and name. One whose row cannot be read has a `fault`, and the others none."""
    ordered = (_TABLE.c.type, _TABLE.c.name)
    try:
        rows = connection.execute(select(_TABLE).order_by(*ordered)).all()
    except ValueError:  # a document that is no JSON takes the whole answer with it
        keys = connection.execute(select(*ordered).order_by(*ordered)).all()
        found = [read_provider(connection, *key) for key in keys]
        return [each for each in found if each is not None]
    return [_provider(row) for row in rows]


def read_provider(connection: Connection, type_: str, name: str) -> StoredProvider | None:
    """One of them, with a `fault` if its row cannot be read. Index: primary key."""
    here = (_TABLE.c.type == type_) & (_TABLE.c.name == name)
    try:
        row = connection.execute(select(_TABLE).where(here)).first()
    except ValueError as error:
        row = connection.execute(select(*_PLAIN).where(here)).first()
        return None if row is None else _unreadable(row, error)
    return None if row is None else _provider(row)


def read_generation(connection: Connection) -> Generation:
    """Cheap enough to be asked each second: there are few rows. A version is the number of an event, so none
    comes twice.
    """
    row = connection.execute(select(func.coalesce(func.max(_TABLE.c.version), 0), func.count())).one()
    return row[0], row[1]


def store_provider(connection: Connection, stored: StoreProvider, version: int, now: Instant) -> bool:
    """Insert or change the row; whether it is new."""
    values = {
        "labels": str(stored.labels),
        "config": dict(stored.config),
        "secrets": stored.secrets,
        "stale_policy": stored.stale_policy.value,
        "refresh_seconds": stored.refresh_seconds,
        "stale_seconds": stored.stale_seconds,
        "protected": dict(stored.protected),
        "version": version,
        "updated_at": now,
    }
    here = (_TABLE.c.type == stored.type) & (_TABLE.c.name == stored.name)
    if connection.execute(update(_TABLE).where(here).values(**values)).rowcount:
        return False
    connection.execute(insert(_TABLE).values(type=stored.type, name=stored.name, created_at=now, **values))
    return True


def remove_provider(connection: Connection, removed: RemoveProvider) -> bool:
    """Delete the row; whether there was one."""
    here = (_TABLE.c.type == removed.type) & (_TABLE.c.name == removed.name)
    return connection.execute(delete(_TABLE).where(here)).rowcount > 0


def _provider(row: Row[tuple[object, ...]]) -> StoredProvider:
    try:
        return _read(row)
    except ValueError as error:
        return _unreadable(row, error)


def _unreadable(row: Row[tuple[object, ...]], error: ValueError) -> StoredProvider:
    """What can be known of it: who it is, and why it is not known what it is."""
    return StoredProvider(
        type=row.type,
        name=row.name,
        labels=Selector(),
        config={},
        secrets=row.secrets,
        stale_policy=StalePolicy.DENY,
        refresh_seconds=row.refresh_seconds,
        stale_seconds=row.stale_seconds,
        protected={},
        version=row.version,
        created_at=row.created_at,
        updated_at=row.updated_at,
        fault=f"its row cannot be read, store it anew: {error}",
    )


def _read(row: Row[tuple[object, ...]]) -> StoredProvider:
    """Raises ValueError."""
    for column in ("config", "protected"):
        if not isinstance(getattr(row, column), dict):
            raise ValueError(f"{column} is no object")  # noqa: TRY004 - as for all that cannot be read
    return StoredProvider(
        type=row.type,
        name=row.name,
        labels=parse_selector(row.labels),
        config=row.config,
        secrets=row.secrets,
        stale_policy=StalePolicy(row.stale_policy),
        refresh_seconds=row.refresh_seconds,
        stale_seconds=row.stale_seconds,
        protected=row.protected,
        version=row.version,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
