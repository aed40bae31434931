"""Checkpoints: every balance written down, so that only later events are needed to prove the present ones."""

from sqlalchemy import Connection, String, cast, delete, insert, literal, or_, select, update

from rm_service.domain.application import Instant
from rm_service.ledger import tables

KEPT = 2
"""The last one, and the one before it for whoever is reading just now."""

MARK = 0
"""The label id of the row that says that a checkpoint was written, even with no balances to write."""


def write_checkpoint(connection: Connection, seq: int, now: Instant) -> None:
    """Write down every balance as it is after event `seq`. Call it within a turn."""
    balance, checkpoint = tables.balance, tables.checkpoint
    exists = select(checkpoint.c.seq).where(checkpoint.c.seq == seq, checkpoint.c.label_id == MARK)
    if connection.execute(exists).first() is None:
        connection.execute(
            insert(checkpoint).values(seq=seq, label_id=MARK, locked={}, used={}, applications=0)
        )
        columns = ["label_id", "locked", "used", "applications", "total", "protected", "closed"]
        moved = or_(
            balance.c.total.is_not(None),
            balance.c.protected.is_not(None),  # a place that is shut may have no total
            balance.c.closed.is_not(None),
            balance.c.applications != 0,
            cast(balance.c.locked, String) != "{}",
            cast(balance.c.used, String) != "{}",
        )
        rows = select(literal(seq), *[balance.c[name] for name in columns]).where(moved)
        connection.execute(insert(checkpoint).from_select(["seq", *columns], rows))
    connection.execute(update(tables.sweep).values(checkpoint_at=now))
    kept = select(checkpoint.c.seq).where(checkpoint.c.label_id == MARK).order_by(checkpoint.c.seq.desc())
    connection.execute(delete(checkpoint).where(checkpoint.c.seq.not_in(kept.limit(KEPT).scalar_subquery())))
