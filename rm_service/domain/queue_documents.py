"""Reading a queue configuration: a parsed YAML document into a `Configuration`, strictly and whole."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from rm_service.domain.queue_config import (
    DEFAULT_PARTITION,
    RECOVERY_QUEUE,
    ROOT,
    SEPARATOR,
    ChildTemplate,
    Configuration,
    GroupLookup,
    GroupSource,
    NodeOrder,
    NodeSort,
    PartitionConfig,
    Queue,
    QueueConfigError,
)
from rm_service.domain.queue_fields import (
    INT32_MAX,
    read_access_list,
    read_applications,
    read_flag,
    read_group,
    read_list,
    read_name,
    read_object,
    read_text,
    read_user,
    read_weight,
    read_whole,
    resource_place,
)
from rm_service.domain.queue_limit_documents import read_limits
from rm_service.domain.queue_properties import read_properties
from rm_service.domain.queue_resources import Room, check_children, read_resources
from rm_service.domain.queue_rule_documents import read_placement_rules
from rm_service.domain.tags import MAX_VALUE_LENGTH

MAX_PARTITIONS = 1000
MAX_QUEUES = 10_000
MAX_DEPTH = 32
"""How many levels a queue's path may have, root included."""
MAX_LIMITED_NAMES = 10_000
"""How many users and groups limits may name, counted in every queue."""

DEFAULT_DOCUMENT: dict[str, object] = {
    "partitions": [
        {
            "name": DEFAULT_PARTITION,
            "placementrules": [
                {"name": "tag", "value": "namespace", "create": True},
                {"name": "provided", "create": True},
            ],
            "queues": [{"name": ROOT, "submitacl": "*", "queues": [{"name": "default"}]}],
        }
    ]
}
"""What an empty configuration means: everyone may submit, to the queue of the namespace, else to the queue
asked for, else to root.default."""

_PARTITION_FIELDS = (
    "name",
    "queues",
    "placementrules",
    "limits",
    "preemption",
    "nodesortpolicy",
    "usergroupresolver",
    "priorityclasses",
)
_QUEUE_FIELDS = (
    "name",
    "parent",
    "resources",
    "maxapplications",
    "properties",
    "adminacl",
    "submitacl",
    "childtemplate",
    "queues",
    "limits",
)


def read_configuration(document: object) -> Configuration:
    """Read a configuration. An absent or empty document is the built-in default.

    Raises QueueConfigError, naming the place, for anything unknown, malformed or contradictory: the document
    counts whole or not at all.
    """
    fields = read_object(document, "", ("partitions",)) or DEFAULT_DOCUMENT
    documents = read_list(fields.get("partitions"), "partitions")
    if not 1 <= len(documents) <= MAX_PARTITIONS:
        raise QueueConfigError("partitions", f"must be 1 to {MAX_PARTITIONS} partitions")
    reader = _Reader(queues_left=MAX_QUEUES)
    partitions: dict[str, PartitionConfig] = {}
    for at, each in enumerate(documents):
        partition = reader.partition(each, f"partitions[{at}]")
        if partitions.setdefault(partition.name, partition) is not partition:
            raise QueueConfigError(f"partitions[{at}].name", "names an earlier partition too")
    _check_number_of_limits(partitions.values())
    return Configuration(tuple(partitions.values()))


@dataclass(frozen=True, slots=True)
class _Above:
    """What a queue's parent settles for it."""

    path: str = ""
    levels: int = 0
    room: Room = field(default_factory=Room)
    template: ChildTemplate | None = None


@dataclass(slots=True)
class _Reader:
    queues_left: int

    def partition(self, document: object, path: str) -> PartitionConfig:
        fields = read_object(document, path, _PARTITION_FIELDS)
        name = fields.get("name") or DEFAULT_PARTITION
        preemption = read_object(
            fields.get("preemption"), f"{path}.preemption", ("enabled", "quotapreemptionenabled")
        )
        root = self.root(fields.get("queues"), f"{path}.queues")
        return PartitionConfig(
            name=read_name(name, f"{path}.name"),
            root=root,
            placement_rules=read_placement_rules(fields.get("placementrules"), f"{path}.placementrules"),
            limits=read_limits(
                fields.get("limits"), f"{path}.limits", Room(max_applications=root.max_applications)
            ),
            node_sort=_read_node_sort(fields.get("nodesortpolicy"), f"{path}.nodesortpolicy"),
            priority_classes=_read_classes(fields.get("priorityclasses"), f"{path}.priorityclasses"),
            group_lookup=_read_group_lookup(fields.get("usergroupresolver"), f"{path}.usergroupresolver"),
            preemption=read_flag(preemption.get("enabled"), f"{path}.preemption.enabled", default=True),
            quota_preemption=read_flag(
                preemption.get("quotapreemptionenabled"), f"{path}.preemption.quotapreemptionenabled"
            ),
        )

    def root(self, document: object, path: str) -> Queue:
        """The root queue: the only top queue if that is its name, else put above the top queues."""
        tops = read_list(document, path)
        if document is None:
            raise QueueConfigError(path, "must be given")
        if len(tops) == 1:
            fields = read_object(tops[0], f"{path}[0]", _QUEUE_FIELDS)
            if read_text(fields.get("name"), f"{path}[0].name").lower() == ROOT:
                if fields.get("resources") is not None:
                    raise QueueConfigError(
                        f"{path}[0].resources", "root has none: its maximum is the sum of the nodes"
                    )
                return self.queue({**fields, "parent": True}, f"{path}[0]", _Above())
        self._count(path)
        return Queue(path=ROOT, is_leaf=False, children=self.children(tops, path, _Above(ROOT, 1)))

    def children(self, documents: list[object], path: str, above: _Above) -> tuple[Queue, ...]:
        queues: dict[str, Queue] = {}
        for at, document in enumerate(documents):
            queue = self.queue(document, f"{path}[{at}]", above)
            if queues.setdefault(queue.path, queue) is not queue:
                raise QueueConfigError(f"{path}[{at}].name", "names an earlier queue of the same parent too")
        return tuple(queues.values())

    def queue(self, document: object, path: str, above: _Above) -> Queue:
        self._count(path)
        fields = read_object(document, path, _QUEUE_FIELDS)
        place = _place(fields.get("name"), f"{path}.name", above)
        resources = read_resources(fields.get("resources"), f"{path}.resources")
        most = read_applications(fields.get("maxapplications"), f"{path}.maxapplications")
        above.room.check(resources.max, f"{path}.resources.max")
        above.room.check_applications(most, f"{path}.maxapplications")
        room = above.room.narrowed(resources.max, most)
        template = _read_template(fields.get("childtemplate"), f"{path}.childtemplate") or above.template
        below = read_list(fields.get("queues"), f"{path}.queues")
        is_leaf = not below and not read_flag(fields.get("parent"), f"{path}.parent")
        queue = Queue(
            path=place,
            is_leaf=is_leaf,
            max=resources.max,
            guaranteed=resources.guaranteed,
            max_applications=most,
            limits=read_limits(fields.get("limits"), f"{path}.limits", Room(resources.max, most)),
            properties=read_properties(fields.get("properties"), f"{path}.properties"),
            child_template=template,
            submit_acl=read_access_list(fields.get("submitacl"), f"{path}.submitacl"),
            admin_acl=read_access_list(fields.get("adminacl"), f"{path}.adminacl"),
        )
        inside = _Above(place, above.levels + 1, room, template)
        queue = replace(queue, children=self.children(below, f"{path}.queues", inside))
        check_children(queue, room.max, path)
        return queue

    def _count(self, path: str) -> None:
        self.queues_left -= 1
        if self.queues_left < 0:
            raise QueueConfigError(path, f"at most {MAX_QUEUES} queues are allowed")


def _check_number_of_limits(partitions: Iterable[PartitionConfig]) -> None:
    names = sum(
        len(limit.users) + len(limit.groups)
        for partition in partitions
        for queue in partition.root.family()
        for limit in partition.limits_at(queue)
    )
    if names > MAX_LIMITED_NAMES:
        raise QueueConfigError("partitions", f"at most {MAX_LIMITED_NAMES} users and groups may have limits")


def _place(name: object, path: str, above: _Above) -> str:
    """The path of a queue below this parent."""
    place = f"{above.path}{SEPARATOR}{read_name(name, path)}".removeprefix(SEPARATOR)
    if above.levels >= MAX_DEPTH or len(place) > MAX_VALUE_LENGTH:
        raise QueueConfigError(
            path, f"a queue's path has at most {MAX_DEPTH} levels and {MAX_VALUE_LENGTH} characters"
        )
    if place == RECOVERY_QUEUE:
        raise QueueConfigError(path, "is kept for applications that are forced in")
    return place


def _read_template(document: object, path: str) -> ChildTemplate | None:
    fields = read_object(document, path, ("maxapplications", "properties", "resources"))
    if not fields:
        return None
    resources = read_resources(fields.get("resources"), f"{path}.resources")
    return ChildTemplate(
        max=resources.max,
        guaranteed=resources.guaranteed,
        max_applications=read_applications(fields.get("maxapplications"), f"{path}.maxapplications"),
        properties=read_properties(fields.get("properties"), f"{path}.properties"),
    )


def _read_node_sort(document: object, path: str) -> NodeSort:
    fields = read_object(document, path, ("type", "resourceweights"))
    kind = read_text(fields.get("type"), f"{path}.type").lower() or NodeOrder.FAIR
    if kind not in set(NodeOrder):
        raise QueueConfigError(f"{path}.type", f"must be one of {', '.join(NodeOrder)}")
    order = NodeOrder(kind)
    documents = read_object(fields.get("resourceweights"), f"{path}.resourceweights")
    weights = {
        name: read_weight(weight, resource_place(f"{path}.resourceweights", at, name))
        for at, (name, weight) in enumerate(documents.items())
    }
    return NodeSort(order, weights) if weights else NodeSort(order)


def _read_classes(document: object, path: str) -> dict[str, int]:
    classes = read_object(document, path)
    return {
        name: read_whole(priority, f"{path}[{at}]", -INT32_MAX - 1, INT32_MAX)
        for at, (name, priority) in enumerate(classes.items())
    }


def _read_group_lookup(document: object, path: str) -> GroupLookup:
    fields = read_object(document, path, ("type", "groups"))
    kind = read_text(fields.get("type"), f"{path}.type").lower()
    if kind not in set(GroupSource):
        raise QueueConfigError(f"{path}.type", "must be os, file or empty; no other source is served")
    source = GroupSource(kind)
    if source is not GroupSource.FILE and fields.get("groups") is not None:
        raise QueueConfigError(f"{path}.groups", "are given only with the type file")
    groups: dict[str, tuple[str, ...]] = {}
    for at, (user, names) in enumerate(read_object(fields.get("groups"), f"{path}.groups").items()):
        here = f"{path}.groups[{at}]"
        members = read_list(names, here)
        groups[read_user(user, here)] = tuple([read_group(name, here) for name in members])
    return GroupLookup(source, groups)
