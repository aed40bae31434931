"""Questions about limits: those that were set."""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, select

from rm_service.domain.limits import Limit
from rm_service.domain.selectors import Selector
from rm_service.domain.tags import Tags, label_key
from rm_service.ledger import tables
from rm_service.ledger.queries.paging import Key, Page, gather, read_cursor, write_cursor

_LISTING = "limits"
_EVERYTHING = Selector()
_RULE = tables.limit_rule.c
_COLUMNS = (_RULE.id, _RULE.tags, _RULE.total, _RULE.protected, _RULE.client)


def read_limit(connection: Connection, limit_id: int) -> Limit | None:
    """One limit, None if there is none with this id. Index: primary key."""
    row = connection.execute(select(*_COLUMNS).where(_RULE.id == limit_id)).first()
    return None if row is None else Limit(*row)


def limits_on(connection: Connection, combinations: Iterable[Tags]) -> list[Limit]:
    """The limits that were set on just these tags. Index: key."""
    keys = [label_key(tags) for tags in combinations]
    return [
        Limit(*row)
        for start in range(0, len(keys), 1000)
        for row in connection.execute(select(*_COLUMNS).where(_RULE.key.in_(keys[start : start + 1000])))
    ]


def list_limits(
    connection: Connection, *, selector: Selector = _EVERYTHING, limit: int = 100, cursor: str | None = None
) -> Page[Limit]:
    """A page of the limits whose tags, `*` taken as it stands, the selector matches, the oldest first.

    Raises CursorError. Index: primary key.
    """
    after = None if cursor is None else read_cursor(_LISTING, cursor, int)
    query = select(*_COLUMNS).order_by(_RULE.id)

    def read(last: Key | None, count: int) -> Sequence[Limit]:
        page = query if last is None else query.where(_RULE.id > last[0])
        return [Limit(*row) for row in connection.execute(page.limit(count))]

    matches = (lambda found: selector.matches(found.tags)) if selector.requirements else None
    items, last = gather(read, lambda found: (found.id,), limit, after, matches)
    return Page(items, None if last is None else write_cursor(_LISTING, last))
