"""Questions about engines: which run, and for which applications."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, Select, select

from rm_service.domain.application import Application
from rm_service.domain.registrations import Engine
from rm_service.domain.selectors import Selector
from rm_service.domain.tags import Tags
from rm_service.ledger import tables
from rm_service.ledger.queries.paging import Key, Page, gather, read_cursor, write_cursor
from rm_service.ledger.queries.rows import APPLICATION, ENGINE, application_of, engine_of, prefixed

_LISTING = "engines"
_PREFIX = "engine_"
_EVERYTHING = Selector()


@dataclass(frozen=True, slots=True)
class EngineRecord:
    """A started engine and the application that it runs for."""

    engine: Engine
    application: Application

    @property
    def tags(self) -> Tags:
        """The application's tags and the engine's own, which count where both have the key."""
        return {**self.application.tags, **self.engine.tags}


def read_engine(connection: Connection, instance: str) -> EngineRecord | None:
    """One engine that runs, None if there is none of this name. Index: primary keys."""
    row = connection.execute(_engines().where(tables.engine.c.instance == instance)).mappings().first()
    return None if row is None else _record(row)


def list_engines(
    connection: Connection,
    *,
    selector: Selector = _EVERYTHING,
    limit: int = 100,
    cursor: str | None = None,
) -> Page[EngineRecord]:
    """A page of the engines that run, by name, whose tags (see EngineRecord) the selector matches.

    Raises CursorError. Index: primary keys; the selector is matched in turn, since both rows have tags.
    """
    after = None if cursor is None else read_cursor(_LISTING, cursor, str)
    query = _engines().order_by(tables.engine.c.instance)

    def read(last: Key | None, count: int) -> Sequence[EngineRecord]:
        page = query if last is None else query.where(tables.engine.c.instance > last[0])
        return [_record(row) for row in connection.execute(page.limit(count)).mappings()]

    matches = (lambda record: selector.matches(record.tags)) if selector.requirements else None
    items, last = gather(read, lambda record: (record.engine.instance,), limit, after, matches)
    return Page(items, None if last is None else write_cursor(_LISTING, last))


def _engines() -> Select[tuple[object, ...]]:
    engine, application = tables.engine, tables.application
    joined = engine.join(application, application.c.id == engine.c.application_id)
    return select(*prefixed(ENGINE, _PREFIX), *APPLICATION).select_from(joined)


def _record(row: RowMapping) -> EngineRecord:
    return EngineRecord(engine_of(row, _PREFIX), application_of(row))
