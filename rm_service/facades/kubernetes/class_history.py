"""What the outbox says of the time since a client looked: for watches that go on where another stopped."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from rm_service.domain.amounts import DEVICE
from rm_service.domain.class_book import ResourceClass
from rm_service.domain.events import Kind
from rm_service.ledger import tables
from rm_service.ledger.class_rows import class_of
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.events import LabelledEvent, last_seq, read_events

MAX_BEHIND = 100_000
"""Events that a watch may lie behind: so many are looked through for classes that were removed."""

LOOKED_AT = 1_000
"""Of so many events it is seen whether they change how any class stands; of more it is taken for granted."""

_EVENT = tables.event.c


@dataclass(frozen=True, slots=True)
class Removed:
    """A class that was there, and the number of the event of its removal."""

    seq: int
    resource_class: ResourceClass


@dataclass(frozen=True, slots=True)
class History:
    """What happened behind some number."""

    removed: Sequence[Removed] = ()
    quiet_since: int = 0
    """No event behind this number changes how a class stands that was there before it."""


@dataclass(frozen=True, slots=True)
class ClassHistory:
    """Reads the outbox of one ledger. Raises SQLAlchemyError."""

    ledger: Ledger

    def head(self) -> int:
        """The number of the last event."""
        with self.ledger.readers.connect() as connection:
            return last_seq(connection)

    def reaches(self, after: int, head: int) -> bool:
        """Whether everything that happened behind this number is still known, and is not too much."""
        if after >= head:
            return True
        if head - after > MAX_BEHIND:
            return False
        with self.ledger.readers.connect() as connection:
            first: int | None = connection.execute(select(func.min(_EVENT.seq))).scalar_one()
        return first is not None and first <= after + 1

    def read(self, after: int, head: int) -> History:
        """What happened behind number `after`, up to `head` at least."""
        if after >= head:
            return History(quiet_since=head)
        with self.ledger.readers.connect() as connection:
            return History(_removed(connection, after), self._quiet_since(connection, after, head))

    def _quiet_since(self, connection: Connection, after: int, head: int) -> int:
        begin = max(after, head - LOOKED_AT)
        events = read_events(connection, self.ledger.labels, begin, LOOKED_AT)
        return max([each.event.seq for each in events if _stirs(each)], default=begin)


def concerns_classes(each: LabelledEvent) -> bool:
    """Whether an event may change how a class stands. Applications do so only by devices."""
    if not each.event.kind.startswith("application."):
        return True
    event = each.event
    return any(name.startswith(DEVICE) for name in (*event.locked, *event.used))


def _stirs(each: LabelledEvent) -> bool:
    """Whether an event may change how other classes stand than the one that it is about."""
    return concerns_classes(each) and not each.event.kind.startswith("class.")


def _removed(connection: Connection, after: int) -> list[Removed]:
    """Index: primary key; it reads all events behind the number."""
    query = (
        select(_EVENT.seq, _EVENT.detail)
        .where(_EVENT.seq > after, _EVENT.kind == Kind.CLASS_REMOVED.value)
        .order_by(_EVENT.seq)
    )
    return [Removed(row.seq, class_of(row.detail["document"])) for row in connection.execute(query)]
