"""Who waits: how many stand in the queues of some labels."""

from collections.abc import Iterable

from sqlalchemy import Connection, func, select

from rm_service.domain.tags import Tags, label_key
from rm_service.ledger import tables


def waiters_ahead(connection: Connection, labels: Iterable[Tags], priority: int) -> int:
    """How many would stand before a newcomer of this priority, in the longest of these labels' queues.

    Index: uq_label_key, ix_waiter_rank.
    """
    keys = {label_key(tags) for tags in labels}
    waiter, label = tables.waiter.c, tables.label.c
    ids = select(label.id).where(label.key.in_(keys))
    counts = (
        select(func.count())
        .where(waiter.label_id.in_(ids), waiter.priority >= priority)
        .group_by(waiter.label_id)
    )
    return max(connection.execute(counts).scalars(), default=0)
