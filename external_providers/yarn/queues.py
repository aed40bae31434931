"""A tree of queues as a scheduler describes it, in YARN's units, and the places that it makes.

A tree is a list in which a parent stands before its children, so that no depth of nesting is too deep.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from external_providers.base import Place
from rm_service.domain.amounts import Amounts

MEMORY = "yarn.memory"
VCORE = "yarn.vcore"
APPS = "yarn.apps"

BYTES_PER_MB = 2**20
MILLI = 1000
LARGEST = 2**62
UNLIMITED_APPS = 2**31 - 1
"""What YARN itself writes where the number of applications has no limit."""


class Resource(NamedTuple):
    """An amount in YARN's units: MiB, whole virtual cores."""

    megabytes: int
    vcores: int

    def at_most(self, other: "Resource") -> "Resource":
        return Resource(min(self.megabytes, other.megabytes), min(self.vcores, other.vcores))

    def at_least(self, other: "Resource") -> "Resource":
        return Resource(max(self.megabytes, other.megabytes), max(self.vcores, other.vcores))

    def plus(self, other: "Resource") -> "Resource":
        return Resource(self.megabytes + other.megabytes, self.vcores + other.vcores)

    def minus(self, other: "Resource") -> "Resource":
        """What is left; never less than nothing."""
        return Resource(max(0, self.megabytes - other.megabytes), max(0, self.vcores - other.vcores))

    @property
    def is_possible(self) -> bool:
        """Whether it is within 2^62 in base units too."""
        return max(self.amounts().values()) <= LARGEST

    def amounts(self, apps: int | None = None) -> dict[str, int]:
        """In base units: bytes, milli-cores."""
        counted = {MEMORY: self.megabytes * BYTES_PER_MB, VCORE: self.vcores * MILLI}
        return counted if apps is None else counted | {APPS: apps}


NOTHING = Resource(0, 0)


@dataclass(slots=True)
class Queue:
    """What a scheduler says of a queue. None: it does not say."""

    name: str
    """Full: `root.etl.daily`."""
    parent: int | None
    """Where in the tree it stands."""
    most: Resource
    """Its own maximum; those of its ancestors count too."""
    guaranteed: Resource
    used: Resource | None = None
    pending: Resource | None = None
    most_apps: int | None = None
    used_apps: int | None = None
    pending_apps: int | None = None
    open: bool = True
    state: str = ""
    fault: str = ""
    """Which of its numbers cannot be; those are None."""
    leaf: bool = field(default=True)


class Use(NamedTuple):
    """What is used in a whole cluster, and by how many applications."""

    used: Resource
    apps: int


def places(tree: Sequence[Queue], whole: Use | None = None) -> list[Place]:
    """A place for each queue: at most what its ancestors have, what is not said summed up from below.

    `whole` is taken for the use of the root if it would be the sum of what cannot be.
    """
    _bound(tree)
    _sum_up(tree, whole)
    return [_place(queue) for queue in tree]


def _bound(tree: Sequence[Queue]) -> None:
    for queue in tree:
        if queue.parent is not None:
            parent = tree[queue.parent]
            parent.leaf = False
            queue.most = queue.most.at_most(parent.most)
            queue.open = queue.open and parent.open
            if parent.most_apps is not None:
                queue.most_apps = min(parent.most_apps, _or_unlimited(queue.most_apps))
        queue.guaranteed = queue.guaranteed.at_most(queue.most)


def _sum_up(tree: Sequence[Queue], whole: Use | None) -> None:
    """Children come after their parents: backwards, each is complete before it is added to its parent."""
    sums = [_Sum() for _ in tree]
    for index in range(len(tree) - 1, -1, -1):
        queue, below = tree[index], sums[index]
        if below.unknown and queue.parent is None and whole is not None:
            below.used, below.used_apps, below.unknown = *whole, False
        _complete(queue, below)
        if queue.parent is not None:
            sums[queue.parent].add(queue)


@dataclass(slots=True)
class _Sum:
    """Over the children of a queue."""

    used: Resource = NOTHING
    pending: Resource = NOTHING
    most_apps: int = 0
    used_apps: int = 0
    pending_apps: int = 0
    unknown: bool = False
    """Of some child it is not known what it uses."""

    def add(self, queue: Queue) -> None:
        self.unknown = self.unknown or queue.used is None or queue.used_apps is None
        self.used = self.used.plus(queue.used or NOTHING)
        self.pending = self.pending.plus(queue.pending or NOTHING)
        self.most_apps = min(UNLIMITED_APPS, self.most_apps + _or_unlimited(queue.most_apps))
        self.used_apps += queue.used_apps or 0
        self.pending_apps += queue.pending_apps or 0


def _complete(queue: Queue, below: _Sum) -> None:
    if below.unknown and (queue.used is None or queue.used_apps is None) and not queue.fault:
        queue.fault = "it does not say what it uses, and of some queue beneath it that cannot be"
    if not queue.fault:
        queue.used = below.used if queue.used is None else queue.used
        queue.used_apps = below.used_apps if queue.used_apps is None else queue.used_apps
    queue.pending = below.pending if queue.pending is None else queue.pending
    queue.pending_apps = below.pending_apps if queue.pending_apps is None else queue.pending_apps
    # Applications run in leaves, so that a parent holds no more than its children may hold.
    own = _or_unlimited(queue.most_apps)
    queue.most_apps = own if queue.leaf else min(own, below.most_apps)


def _or_unlimited(apps: int | None) -> int:
    return UNLIMITED_APPS if apps is None else min(apps, UNLIMITED_APPS)


def _place(queue: Queue) -> Place:
    if queue.fault:
        return Place(queue.name, total={}, used={}, fault=queue.fault)
    pending: Amounts = (queue.pending or NOTHING).amounts(queue.pending_apps or 0)
    details: dict[str, object] = {
        "kind": "leaf" if queue.leaf else "parent",
        "applications": queue.used_apps or 0,
        "pending_applications": queue.pending_apps or 0,
    }
    return Place(
        name=queue.name,
        total=queue.most.amounts(queue.most_apps or 0),
        used=(queue.used or NOTHING).amounts(queue.used_apps or 0),
        guaranteed=queue.guaranteed.amounts(),
        pending=pending,
        open=queue.open,
        details=details | {"state": queue.state} if queue.state else details,
    )
