"""Queue configuration: the partitions of a resource manager (RM), their queues, and who may use how much.

Read by `queue_documents`, used by `queue_placement` and `queue_limits`. Everything here is immutable.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from rm_service.domain.amounts import Amounts
from rm_service.domain.linear_patterns import LinearPattern

ROOT = "root"
SEPARATOR = "."
DEFAULT_PARTITION = "default"
RECOVERY_NAME = "@recovery@"
RECOVERY_QUEUE = f"{ROOT}{SEPARATOR}{RECOVERY_NAME}"
"""Where an application lands that must not be rejected and that no rule places."""
ANY = "*"


class QueueConfigError(ValueError):
    """A configuration is refused, whole.

    `path` names the place, like `partitions[0].queues[1].resources.max.memory`. Neither it nor `reason` holds
    values of the configuration, which is secret. Names of fields are shown; an entry of a map whose names are
    chosen freely is named by its position.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}")


@dataclass(frozen=True, slots=True)
class AccessList:
    """Who may do something: everyone, or the users and the members of the groups."""

    everyone: bool = False
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def allows(self, user: str, groups: Sequence[str]) -> bool:
        """Whether this user, of these groups, may."""
        return self.everyone or user in self.users or not self.groups.isdisjoint(groups)


@dataclass(frozen=True, slots=True)
class NameFilter:
    """Names that are listed, or found by one regular expression."""

    names: frozenset[str] = frozenset()
    pattern: LinearPattern | None = None

    def matches(self, name: str) -> bool:
        """Whether the name is meant."""
        return name in self.names or (self.pattern is not None and self.pattern.found_in(name))


@dataclass(frozen=True, slots=True)
class RuleFilter:
    """Whom a placement rule is for: those named, or (`allow` false) all but those; empty: nobody is named."""

    allow: bool = True
    users: NameFilter | None = None
    groups: NameFilter | None = None

    def admits(self, user: str, groups: Iterable[str]) -> bool:
        """Whether the rule is for this user. Without users and groups `allow` answers for everyone."""
        if self.users is None and self.groups is None:
            return self.allow
        named = self.users is not None and self.users.matches(user)
        named = named or (self.groups is not None and any(self.groups.matches(group) for group in groups))
        return named is self.allow


class RuleKind(StrEnum):
    """Where a placement rule has the queue's name from."""

    PROVIDED = "provided"
    """What the application asks for."""
    TAG = "tag"
    """The application's tag of that name."""
    FIXED = "fixed"
    """The rule's own value."""
    USER = "user"
    """The user's name."""


@dataclass(frozen=True, slots=True)
class PlacementRule:
    """One placement rule. Without `create` it finds only queues of the configuration."""

    kind: RuleKind
    value: str = ""
    """FIXED: a queue, in full or below the parent; TAG: the tag's name."""
    create: bool = False
    filter: RuleFilter = RuleFilter()
    parent: "PlacementRule | None" = None
    """Names the queue that this rule's queue is a child of; without it that is root."""


@dataclass(frozen=True, slots=True)
class QueueLimit:
    """What each of the users, and each of the groups as a whole, may hold in a queue.

    The user `*` is every user without a limit of its own, each by itself; the group `*` is everyone who is in
    none of the named groups, together. A dimension that `max` lacks is unlimited, None applications too.
    """

    users: tuple[str, ...]
    groups: tuple[str, ...]
    max: Amounts
    max_applications: int | None = None


@dataclass(frozen=True, slots=True)
class ChildTemplate:
    """What a queue gets that a placement rule creates."""

    max: Amounts = field(default_factory=dict)
    guaranteed: Amounts = field(default_factory=dict)
    max_applications: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """One queue of the configuration. Amounts are in base units; one that `max` lacks is unlimited."""

    path: str
    """In full and in lower case: `root.a.b`."""
    is_leaf: bool
    """Applications are placed in leaves alone."""
    max: Amounts = field(default_factory=dict)
    guaranteed: Amounts = field(default_factory=dict)
    max_applications: int | None = None
    limits: tuple[QueueLimit, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    child_template: ChildTemplate | None = None
    """Its own, or the one of the nearest queue above that has one."""
    submit_acl: AccessList = AccessList()
    admin_acl: AccessList = AccessList()
    children: "tuple[Queue, ...]" = ()

    def family(self) -> "Iterator[Queue]":
        """This queue and all below, parents first."""
        yield self
        for child in self.children:
            yield from child.family()


class NodeOrder(StrEnum):
    """Which node is tried first: the emptiest, or the fullest."""

    FAIR = "fair"
    BINPACKING = "binpacking"


@dataclass(frozen=True, slots=True)
class NodeSort:
    """How nodes are ordered: by the weighted mean of their used shares."""

    order: NodeOrder = NodeOrder.FAIR
    weights: Mapping[str, float] = field(default_factory=lambda: {"vcore": 1.0, "memory": 1.0})


class GroupSource(StrEnum):
    """Where a user's groups come from when the RM names none."""

    NONE = ""
    SYSTEM = "os"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class GroupLookup:
    """How to find the groups of a user; `groups` are listed by user, for the source `file`."""

    source: GroupSource = GroupSource.NONE
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionConfig:
    """One partition. `name` is the plain one, in lower case, without an RM's id."""

    name: str
    root: Queue
    placement_rules: tuple[PlacementRule, ...] = ()
    limits: tuple[QueueLimit, ...] = ()
    """Limits of the partition as a whole: they count as limits of root."""
    node_sort: NodeSort = NodeSort()
    priority_classes: Mapping[str, int] = field(default_factory=dict)
    group_lookup: GroupLookup = GroupLookup()
    preemption: bool = True
    quota_preemption: bool = False
    queues: Mapping[str, Queue] = field(init=False, repr=False, compare=False)
    """Every queue by its path."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "queues", {queue.path: queue for queue in self.root.family()})

    def upwards(self, path: str) -> Iterator[Queue]:
        """The configured queues from this path (which need not exist) up to root."""
        while path:
            queue = self.queues.get(path)
            if queue is not None:
                yield queue
            path = path.rpartition(SEPARATOR)[0]

    def may_submit(self, path: str, user: str, groups: Sequence[str]) -> bool:
        """Whether the queue, or one above it, lets the user submit or administer."""
        return any(
            queue.submit_acl.allows(user, groups) or queue.admin_acl.allows(user, groups)
            for queue in self.upwards(path)
        )

    def limits_at(self, queue: Queue) -> tuple[QueueLimit, ...]:
        """The limits of users and groups in this queue, the partition's own counted as root's."""
        return (*queue.limits, *self.limits) if queue.path == ROOT else queue.limits


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that one configuration text says."""

    partitions: tuple[PartitionConfig, ...]

    def partition(self, name: str) -> PartitionConfig | None:
        """The partition of this plain name, in any case; the empty name is `default`."""
        wanted = name.lower() or DEFAULT_PARTITION
        return next((partition for partition in self.partitions if partition.name == wanted), None)
