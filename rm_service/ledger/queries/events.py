"""Reading the outbox. Its numbers have no gaps, so a reader that asks for what follows misses nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, select

from rm_service.domain.events import Event
from rm_service.domain.tags import Tags
from rm_service.ledger import tables
from rm_service.ledger.queries.rows import EVENT, event_of
from rm_service.ledger.rulebook import Labels

_EVENT = tables.event.c


@dataclass(frozen=True, slots=True)
class LabelledEvent:
    """An event, and the tags of each label that it is booked on."""

    event: Event
    labels: tuple[Tags, ...]


def last_seq(connection: Connection) -> int:
    """The number of the last event, 0 before the first one."""
    seq: int = connection.execute(select(tables.ledger_head.c.seq)).scalar_one()
    return seq


def read_events(connection: Connection, labels: Labels, after: int, limit: int) -> list[LabelledEvent]:
    """The next events behind number `after`, in order. Index: primary key."""
    query = select(*EVENT).where(_EVENT.seq > after).order_by(_EVENT.seq).limit(limit)
    events = [event_of(row) for row in connection.execute(query).mappings()]
    known = labels.of_ids(connection, {label_id for event in events for label_id in event.label_ids})
    return [
        LabelledEvent(event, tuple([known[label_id][1] for label_id in event.label_ids if label_id in known]))
        for event in events
    ]


def stream_events(connection: Connection, after: int) -> Iterator[Event]:
    """All events behind number `after`, in order, without holding them in memory. Index: primary key."""
    query = select(*EVENT).where(_EVENT.seq > after).order_by(_EVENT.seq).execution_options(yield_per=1000)
    for row in connection.execute(query).mappings():
        yield event_of(row)
