"""Questions about applications: one, a list, its place in a queue, and who holds most of a label."""

from collections.abc import Collection
from enum import StrEnum
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select, union_all

from rm_service.domain.application import LIVE, Application, State
from rm_service.domain.selectors import Selector
from rm_service.ledger import tables
from rm_service.ledger.queries.paging import CursorError, Key, Page, gather, read_cursor, write_cursor
from rm_service.ledger.queries.rows import APPLICATION, application_of
from rm_service.ledger.queries.tag_index import fulfilling, live_with, named, undecided

_TABLE = tables.application
_LIVE = _TABLE.c.finished_at.is_(None)
_EVERYTHING = Selector()
MAX_POSITION = 10_000
"""A place in a queue is told up to here: whoever parks the hundred-thousandth need not pay for counting."""


class Order(StrEnum):
    """How a list of applications is ordered."""

    NEWEST = "newest"
    """The live ones first, the last applied for first; then the finished ones, the last finished first."""
    ID = "id"


def read_application(connection: Connection, application_id: str) -> Application | None:
    """One application, None if there is none with this id (or it is no UUID). Index: primary key."""
    try:
        canonical = str(UUID(application_id))
    except ValueError:
        return None
    row = connection.execute(select(*APPLICATION).where(_TABLE.c.id == canonical)).mappings().first()
    return None if row is None else application_of(row)


def list_applications(
    connection: Connection,
    *,
    states: Collection[State] | None = None,
    selector: Selector = _EVERYTHING,
    order: Order = Order.NEWEST,
    limit: int = 100,
    cursor: str | None = None,
) -> Page[Application]:
    """A page of the applications in these states (None: in any) whose tags the selector matches.

    Raises CursorError. Live ones are found by the tag index where the selector names values, else by
    ix_application_live; finished ones by ix_application_finished_at (order newest) or the primary key.
    One that ends while a list is paged through may be seen twice in the order newest.
    """
    wanted = frozenset(State) if states is None else frozenset(states)
    stretches = (
        {"live": wanted & LIVE, "finished": wanted - LIVE} if order is Order.NEWEST else {"id": wanted}
    )
    parts = [_Part(connection, name, chosen, selector) for name, chosen in stretches.items() if chosen]
    first, after = _place(parts, cursor)
    found: list[Application] = []
    for index in range(first, len(parts)):
        part = parts[index]
        items, last = part.page(limit - len(found), after)
        found += items
        after = None
        if last is not None:
            return Page(found, write_cursor(part.listing, last))
        if len(found) >= limit and index + 1 < len(parts):
            return Page(found, write_cursor(parts[index + 1].listing, parts[index + 1].start))
    return Page(found, None)


class _Part:
    """One stretch of the list, with an index of its own to read it by."""

    def __init__(
        self, connection: Connection, name: str, states: Collection[State], selector: Selector
    ) -> None:
        self.listing = f"applications.{name}"
        self._connection = connection
        self._newest: ColumnElement[int] | None = {
            "live": _TABLE.c.created_at,
            "finished": _TABLE.c.finished_at,
        }.get(name)
        self.types: tuple[type, ...] = (str,) if self._newest is None else (int, str)
        self.start: Key = ("",) if self._newest is None else (2**63 - 1, "")
        self._undecided = undecided(selector)
        self._where = [_TABLE.c.state.in_(sorted(states)), *_matching(connection, selector, states)]

    def page(self, limit: int, after: Key | None) -> tuple[list[Application], Key | None]:
        left = self._undecided
        matches = (lambda application: left.matches(application.tags)) if left.requirements else None
        return gather(self._read, self._key, limit, None if after == self.start else after, matches)

    def _key(self, application: Application) -> Key:
        if self._newest is None:
            return (application.id,)
        time = application.created_at if application.finished_at is None else application.finished_at
        return (time, application.id)

    def _read(self, after: Key | None, count: int) -> list[Application]:
        query = select(*APPLICATION).where(*self._where).limit(count)
        query = _in_id_order(query, after) if self._newest is None else _newest(query, self._newest, after)
        return [application_of(row) for row in self._connection.execute(query).mappings()]


def _matching(
    connection: Connection, selector: Selector, states: Collection[State]
) -> list[ColumnElement[bool]]:
    """What the database can say of the selector: by the index where only live ones are looked for."""
    if not LIVE.issuperset(states):
        finished = [~_LIVE] if LIVE.isdisjoint(states) else []
        return [*finished, *fulfilling(connection, selector.requirements)]
    by_value = named(selector)
    others = [term for term in selector.requirements if term not in by_value]
    return [_LIVE, *live_with(connection, by_value), *fulfilling(connection, others)]


def _in_id_order(query: Select[tuple[object, ...]], after: Key | None) -> Select[tuple[object, ...]]:
    if after is not None:
        query = query.where(_TABLE.c.id > after[0])
    return query.order_by(_TABLE.c.id)


def _newest(
    query: Select[tuple[object, ...]], time: ColumnElement[int], after: Key | None
) -> Select[tuple[object, ...]]:
    if after is not None:
        older = or_(time < after[0], and_(time == after[0], _TABLE.c.id < after[1]))
        query = query.where(time <= after[0], older)  # the first is what an index on time alone can use
    return query.order_by(time.desc(), _TABLE.c.id.desc())


def _place(parts: list[_Part], cursor: str | None) -> tuple[int, Key | None]:
    if cursor is None:
        return 0, None
    for index, part in enumerate(parts):
        try:
            key = read_cursor(part.listing, cursor, *part.types)
        except CursorError:
            continue
        if key != part.start:
            _check_id(str(key[-1]), cursor)
        return index, key
    raise CursorError(cursor)


def _check_id(text: str, cursor: str) -> None:
    try:
        UUID(text)
    except ValueError as error:
        raise CursorError(cursor) from error


def queue_position(connection: Connection, application: Application) -> int | None:
    """The place of a waiting application in the queue where it stands worst, from 1. None: it waits in none.

    Nobody is counted beyond MAX_POSITION, which stands for all places further back. Index: ix_waiter_rank;
    the cost is the number of those who are counted.
    """
    if application.state is not State.WAITING or not application.waits_on:
        return None
    waiter = tables.waiter.c
    longest = 0
    for label_id in application.waits_on:
        queued = select(waiter.seq).where(waiter.label_id == label_id)
        # Two stretches of the index; as one condition with `or` it would read the whole queue.
        better = queued.where(waiter.priority > application.priority).limit(MAX_POSITION)
        earlier = queued.where(waiter.priority == application.priority, waiter.seq < application.wait_seq)
        before = union_all(better.subquery().select(), earlier.limit(MAX_POSITION).subquery().select())
        ahead = connection.execute(select(func.count()).select_from(before.subquery())).scalar_one()
        longest = max(longest, ahead)
    return min(1 + longest, MAX_POSITION)
