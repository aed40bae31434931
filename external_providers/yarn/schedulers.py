"""What `/ws/v1/cluster/scheduler` answers, as a tree of queues: capacity and fair schedulers."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction

from external_providers.base import MalformedError
from external_providers.yarn.json_tolerance import Object, count, excerpt, member, members, number, text
from external_providers.yarn.queues import NOTHING, Queue, Resource

ROOT = "root"
MOST_PERCENT = 1_000_000
WHOLE = Decimal(100)

Children = Callable[[Object], Iterator[Object]]
Describe = Callable[[Object, str, int | None], Queue]


def tree(answer: Object, cluster: Resource) -> list[Queue]:
    """The queues of an answer, parents before their children. `cluster` is what the cluster has in all.

    Raises MalformedError, naming the queue and the field, or the type of a scheduler that is not known here.
    """
    info = member(member(answer, "scheduler"), "schedulerInfo")
    kind = text(info, "type")
    if kind == "capacityScheduler":
        return _walk(info, _capacity_children, lambda *found: _capacity_queue(*found, cluster=cluster))
    if kind == "fairScheduler":
        root = member(info, "rootQueue")
        return _walk(root, _fair_children, lambda *found: _fair_queue(*found, cluster=cluster))
    known = "capacityScheduler and fairScheduler are known"
    raise MalformedError(f"the scheduler's type is {excerpt(kind.encode())}; {known}")


def cluster_total(answer: Object) -> Resource:
    """What `/ws/v1/cluster/metrics` says that the cluster has. Raises MalformedError."""
    metrics = member(answer, "clusterMetrics")
    megabytes = count(metrics, "totalMB", "clusterMetrics")
    vcores = count(metrics, "totalVirtualCores", "clusterMetrics")
    if megabytes is None or vcores is None:
        raise MalformedError("clusterMetrics: totalMB or totalVirtualCores is missing")
    return _checked(Resource(megabytes, vcores), "totalMB", "clusterMetrics")


def _walk(root: Object, children: Children, describe: Describe) -> list[Queue]:
    found: list[Queue] = []
    names: set[str] = set()
    ahead: list[tuple[Object, int | None]] = [(root, None)]
    while ahead:
        node, parent = ahead.pop()
        name = _full_name(node, found[parent].name if parent is not None else "")
        if name in names:
            raise MalformedError(f"queue {name}: it is there twice")
        names.add(name)
        found.append(describe(node, name, parent))
        ahead += [(child, len(found) - 1) for child in reversed(list(children(node)))]
    return found


def _full_name(node: Object, parent: str) -> str:
    """Its path, where the answer has it; else made of its parent's. A parent is always part of it."""
    own = text(node, "queuePath") or text(node, "queueName")
    if not parent:
        return ROOT  # there is one top, whatever an old version calls it
    if not own:
        raise MalformedError(f"queue {parent}: queueName of a child is missing")
    return own if own.startswith(f"{parent}.") else f"{parent}.{own}"


# ---- capacity scheduler ----------------------------------------------------------------------------------


def _capacity_children(node: Object) -> Iterator[Object]:
    for wrapper in members(node, "queues"):
        yield from members(wrapper, "queue")


def _capacity_queue(node: Object, name: str, parent: int | None, *, cluster: Resource) -> Queue:
    where = f"queue {name}"
    state = text(node, "state")
    top = parent is None
    return Queue(
        name=name,
        parent=parent,
        # The root is the cluster and has no share of it. Of the others new versions say the amount itself.
        most=cluster if top else _effective(node, "max", cluster, where),
        guaranteed=cluster if top else _effective(node, "min", cluster, where),
        used=_resource(node, "resourcesUsed", where),
        pending=_pending(node, where),
        most_apps=_most_apps(node, where),
        used_apps=count(node, "numApplications", where),
        pending_apps=count(node, "numPendingApplications", where),
        open=state in {"", "RUNNING"},
        state=state,
    )


def _effective(node: Object, side: str, cluster: Resource, where: str) -> Resource:
    amount = _resource(node, f"{side}EffectiveCapacity", where)
    if amount is not None:
        return amount
    field = "absoluteMaxCapacity" if side == "max" else "absoluteCapacity"
    share = number(node, field, where)
    if share is None:
        if side == "min":
            return NOTHING
        raise MalformedError(f"{where}: {field} is missing")
    if not 0 <= share <= MOST_PERCENT:
        raise MalformedError(f"{where}: {field} is {share}, which is no percentage")
    # YARN's own arithmetic of 32 bits says 100.00001 at times.
    part = Fraction(min(share, WHOLE)) / 100
    return Resource(int(cluster.megabytes * part), int(cluster.vcores * part))


def _pending(node: Object, where: str) -> Resource | None:
    """Of the partition without a name, which is what the other amounts are of."""
    for usage in members(member(node, "resources"), "resourceUsagesByPartition"):
        if not text(usage, "partitionName"):
            return _resource(usage, "pending", f"{where}, resources")
    return None


def _most_apps(node: Object, where: str) -> int | None:
    """The lesser of what it takes (only leaves say that) and what of it may run."""
    said = (count(node, "maxApplications", where), count(node, "maxParallelApps", where))
    return min((apps for apps in said if apps is not None), default=None)


# ---- fair scheduler --------------------------------------------------------------------------------------


def _fair_children(node: Object) -> Iterator[Object]:
    for child in members(node, "childQueues"):
        if "queueName" in child:  # old versions have no wrapper
            yield child
        else:
            yield from members(child, "queue")


def _fair_queue(node: Object, name: str, parent: int | None, *, cluster: Resource) -> Queue:
    where = f"queue {name}"
    most = _resource(node, "maxResources", where)
    if most is None:
        raise MalformedError(f"{where}: maxResources is missing")
    used = _resource(node, "usedResources", where)
    demand = _resource(node, "demandResources", where)
    share = _resource(node, "steadyFairResources", where) or NOTHING
    active = count(node, "numActiveApps", where)
    pending = count(node, "numPendingApps", where)
    return Queue(
        name=name,
        parent=parent,
        most=most.at_most(cluster),
        guaranteed=share.at_least(_resource(node, "minResources", where) or NOTHING),
        used=used,
        pending=demand.minus(used or NOTHING) if demand is not None else None,
        most_apps=count(node, "maxApps", where),
        used_apps=None if active is None else active + (pending or 0),
        pending_apps=pending,
    )


# ---- both ------------------------------------------------------------------------------------------------


def _resource(node: Object, field: str, where: str) -> Resource | None:
    if not isinstance(node.get(field), dict | list):
        return None
    found = member(node, field)
    megabytes = count(found, "memory", f"{where}, {field}")
    vcores = count(found, "vCores", f"{where}, {field}")
    if megabytes is None and vcores is None:
        return None
    return _checked(Resource(megabytes or 0, vcores or 0), field, where)


def _checked(amount: Resource, field: str, where: str) -> Resource:
    """The same, if it is within 2^62 in base units too."""
    if max(amount.amounts().values()) > 2**62:
        raise MalformedError(f"{where}: {field} is beyond 2^62 base units")
    return amount
