"""What resource managers are told: their rows of the outbox, and how far each of their streams has come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine, select, update
from sqlalchemy.dialects import postgresql, sqlite

from rm_service.domain.answers import Answer
from rm_service.domain.clients import ClientState
from rm_service.ledger import tables
from rm_service.ledger.queries.events import last_seq

Row = tuple[int, Answer]
"""Number in the outbox, and the answer."""

StreamKey = tuple[str, str]
"""A resource manager's id, and the name of one of its streams."""

_EVENT = tables.event.c
_CLIENT = tables.si_client.c
_DELIVERY = tables.si_delivery.c


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a stream of a registered resource manager stands."""

    registered: int
    """The event of its last registration."""
    dialect: str | None
    """The dialect that it was last found to speak."""
    delivered: int
    """The last row that was handed to the transport; 0 before the first."""
    head: int
    """The last event."""


class AnswerLog:
    """The answers in one database. Everything here raises SQLAlchemyError; any thread may call it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def standing(self, rm_id: str, stream: str) -> Standing | None:
        """None if no such resource manager has registered since it was stopped. Index: primary keys."""
        query = (
            select(_CLIENT.registered_seq, _CLIENT.dialect, _DELIVERY.seq)
            .select_from(
                tables.si_client.outerjoin(
                    tables.si_delivery, (_DELIVERY.rm_id == _CLIENT.rm_id) & (_DELIVERY.stream == stream)
                )
            )
            .where(_CLIENT.rm_id == rm_id, _CLIENT.state != ClientState.STOPPED)
        )
        if "\0" in rm_id:  # no database has such a text
            return None
        with self._engine.connect() as connection:
            found = connection.execute(query).one_or_none()
            if found is None:
                return None
            registered, dialect, delivered = found
            return Standing(registered, dialect, delivered or 0, last_seq(connection))

    def page(self, rm_id: str, after: int, limit: int) -> tuple[Sequence[Row], int]:
        """The next answers after number `after`, and up to which number these are all of them.

        That is the number of the last one if there are `limit` of them: there may be more.
        Index: event (client, seq).
        """
        with self._engine.connect() as connection:
            head = last_seq(connection)
            query = (
                select(_EVENT.seq, _EVENT.answer)
                .where(_EVENT.client == rm_id, _EVENT.seq > after, _EVENT.seq <= head)
                .where(_EVENT.answer.is_not(None))
                .order_by(_EVENT.seq)
                .limit(limit)
            )
            rows = [(row.seq, row.answer) for row in connection.execute(query)]
        return rows, rows[-1][0] if len(rows) == limit else max(head, after)

    def spoken(self, rm_id: str, dialect: str) -> None:
        """Write down which dialect a resource manager was found to speak."""
        with self._engine.begin() as connection:
            connection.execute(update(tables.si_client).where(_CLIENT.rm_id == rm_id).values(dialect=dialect))

    def delivered(self, positions: Mapping[StreamKey, int]) -> None:
        """Write down how far streams have come; none of them ever goes back."""
        rows = [
            {"rm_id": rm_id, "stream": stream, "seq": seq}
            for (rm_id, stream), seq in sorted(positions.items())  # an order that two replicas share
        ]
        insert = sqlite.insert if self._engine.dialect.name == "sqlite" else postgresql.insert
        new = insert(tables.si_delivery)
        upsert = new.on_conflict_do_update(
            index_elements=[_DELIVERY.rm_id, _DELIVERY.stream],
            set_={"seq": new.excluded.seq},
            where=_DELIVERY.seq < new.excluded.seq,
        )
        with self._engine.begin() as connection:
            connection.execute(upsert, rows)
