"""The limits that a queue configuration means to the ledger, and which group an application is charged to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rm_service.domain.amounts import Amounts
from rm_service.domain.queue_config import ANY, PartitionConfig, Queue, QueueLimit
from rm_service.domain.queue_fields import APPLICATIONS
from rm_service.domain.queue_resources import smaller
from rm_service.domain.tags import Tags, canonical_key


@dataclass(frozen=True, slots=True)
class LimitRow:
    """One limit of the ledger: a dimension that `total` lacks is unlimited, an explicit 0 forbids it."""

    tags: Tags
    total: Amounts


def limits_of(config: PartitionConfig, partition: str) -> list[LimitRow]:
    """Every limit of a partition, each set of tags once, parents before children.

    `partition` is the tag's value, with the RM's id. Where several limits meet on one label the smallest
    counts, dimension by dimension.
    """
    rows: dict[str, LimitRow] = {}
    for queue in config.root.family():
        for tags, total in _of_queue(config, queue):
            row = LimitRow({"partition": partition, **tags}, total)
            key = canonical_key(row.tags)
            rows[key] = LimitRow(row.tags, smaller(rows[key].total, total)) if key in rows else row
    return list(rows.values())


def queue_total(most: Amounts | None, max_applications: int | None) -> Amounts:
    """The total of a queue's own limit; empty if it has none."""
    applications = {} if max_applications is None else {APPLICATIONS: max_applications}
    return {**(most or {}), **applications}


def charged_group(config: PartitionConfig, queue: str, groups: Sequence[str]) -> str | None:
    """The group that an application of a user of these groups is charged to in this queue.

    From the leaf up to root: the first group with a limit there that the user is in; `*` where a limit is for
    all others. None if no limit of a group concerns the user.
    """
    members = frozenset(groups)
    for level in config.upwards(queue):
        named = [group for limit in config.limits_at(level) for group in limit.groups]
        for group in named:
            if group in members:
                return group
        if ANY in named:
            return ANY
    return None


def _of_queue(config: PartitionConfig, queue: Queue) -> Iterator[tuple[Tags, Amounts]]:
    own = queue_total(queue.max, queue.max_applications)
    if own:
        yield {"queue": queue.path}, own
    for limit in config.limits_at(queue):
        total = _limit_total(limit)
        for user in limit.users:
            yield {"queue": queue.path, "user": user}, total
        for group in limit.groups:
            yield {"queue": queue.path, "group": group}, total


def _limit_total(limit: QueueLimit) -> Amounts:
    return queue_total(limit.max, limit.max_applications)
