"""What `/ws/v1/cluster/scheduler` answers, as a tree of queues: capacity and fair schedulers."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction

from external_providers.base import AbsurdError, MalformedError
from external_providers.yarn.json_tolerance import (
    UNLIMITED,
    Object,
    count,
    limit,
    member,
    members,
    number,
    text,
)
from external_providers.yarn.queues import NOTHING, Queue, Resource, Use

ROOT = "root"
METRICS = "clusterMetrics"
IN_USE = ("allocatedMB", "allocatedVirtualCores", "appsRunning", "appsPending")
MOST_PERCENT = 1_000_000
WHOLE = Decimal(100)

Children = Callable[[Object], Iterator[Object]]
Describe = Callable[[Object, str, int | None], Queue]


def tree(answer: Object, cluster: Resource) -> list[Queue]:
    """The queues of an answer, parents before their children. `cluster` is what the cluster has in all.

    A queue of which a number cannot be has a fault. Raises MalformedError, naming the queue and the field.
    """
    info = member(member(answer, "scheduler"), "schedulerInfo")
    kind = text(info, "type")
    if kind == "capacityScheduler":
        return _walk(info, _capacity_children, lambda *found: _capacity_queue(*found, cluster=cluster))
    if kind == "fairScheduler":
        root = member(info, "rootQueue")
        return _walk(root, _fair_children, lambda *found: _fair_queue(*found, cluster=cluster))
    raise MalformedError("the scheduler's type is neither capacityScheduler nor fairScheduler")


def cluster_total(answer: Object) -> Resource:
    """What `/ws/v1/cluster/metrics` says that the cluster has. Raises MalformedError, AbsurdError."""
    metrics = member(answer, METRICS)
    megabytes = count(metrics, "totalMB", METRICS)
    vcores = count(metrics, "totalVirtualCores", METRICS)
    if megabytes is None or vcores is None:
        raise MalformedError(f"{METRICS}: totalMB or totalVirtualCores is missing")
    total = Resource(megabytes, vcores)
    if not total.is_possible:
        raise AbsurdError(f"{METRICS}: totalMB or totalVirtualCores is more than 2^62")
    return total


def cluster_use(answer: Object) -> Use | None:
    """What it says that is used; None if it does not, or if that cannot be. Raises MalformedError."""
    metrics, absurd = member(answer, METRICS), list[str]()
    found = [count(metrics, field, METRICS, absurd) for field in IN_USE]
    megabytes, vcores, running, waiting = found
    if absurd or megabytes is None or vcores is None or running is None or waiting is None:
        return None
    used = Resource(megabytes, vcores)
    return Use(used, running + waiting) if used.is_possible else None


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
    absurd: list[str] = []
    state = text(node, "state")
    top = parent is None
    queue = Queue(
        name=name,
        parent=parent,
        # The root is the cluster and has no share of it. Of the others new versions say the amount itself.
        most=cluster if top else _effective(node, "max", cluster, where, absurd),
        guaranteed=cluster if top else _effective(node, "min", cluster, where, absurd),
        used=_resource(node, "resourcesUsed", where, absurd),
        pending=_pending(node, where, absurd),
        most_apps=_most_apps(node, where, absurd),
        used_apps=count(node, "numApplications", where, absurd),
        pending_apps=count(node, "numPendingApplications", where, absurd),
        open=state in {"", "RUNNING"},
        state=state,
    )
    queue.fault = "; ".join(absurd)
    return queue


def _effective(node: Object, side: str, cluster: Resource, where: str, absurd: list[str]) -> Resource:
    amount = _resource(node, f"{side}EffectiveCapacity", where, absurd, cluster)
    if amount is not None:
        return amount
    field = "absoluteMaxCapacity" if side == "max" else "absoluteCapacity"
    share = number(node, field, where)
    if share is None:
        if side == "min":
            return NOTHING
        raise MalformedError(f"{where}: {field} is missing")
    if not 0 <= share <= MOST_PERCENT:
        absurd.append(f"{field} is no percentage")
        return cluster
    # YARN's own arithmetic of 32 bits says 100.00001 at times.
    part = Fraction(min(share, WHOLE)) / 100
    return Resource(int(cluster.megabytes * part), int(cluster.vcores * part))


def _pending(node: Object, where: str, absurd: list[str]) -> Resource | None:
    """Of the partition without a name, which is what the other amounts are of."""
    for usage in members(member(node, "resources"), "resourceUsagesByPartition"):
        if not text(usage, "partitionName"):
            return _resource(usage, "pending", f"{where}, resources", absurd)
    return None


def _most_apps(node: Object, where: str, absurd: list[str]) -> int | None:
    """The lesser of what it takes (only leaves say that) and what of it may run."""
    said = [limit(node, field, where, absurd) for field in ("maxApplications", "maxParallelApps")]
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
    absurd: list[str] = []
    if not isinstance(node.get("maxResources"), dict | list):
        raise MalformedError(f"{where}: maxResources is missing")
    most = _resource(node, "maxResources", where, absurd, cluster) or cluster
    used = _resource(node, "usedResources", where, absurd)
    demand = _resource(node, "demandResources", where, absurd)
    share = _resource(node, "steadyFairResources", where, absurd) or NOTHING
    least = _resource(node, "minResources", where, absurd) or NOTHING
    active = count(node, "numActiveApps", where, absurd)
    pending = count(node, "numPendingApps", where, absurd)
    return Queue(
        name=name,
        parent=parent,
        most=most.at_most(cluster),
        guaranteed=share.at_least(least),
        used=used,
        pending=demand.minus(used or NOTHING) if demand is not None else None,
        most_apps=limit(node, "maxApps", where, absurd),
        used_apps=None if active is None else active + (pending or 0),
        pending_apps=pending,
        fault="; ".join(absurd),
    )


# ---- both ------------------------------------------------------------------------------------------------


def _resource(
    node: Object, field: str, where: str, absurd: list[str], unlimited: Resource | None = None
) -> Resource | None:
    """An amount that is said; None if it is not, or cannot be. `unlimited` is what -1 means, in a maximum."""
    if not isinstance(node.get(field), dict | list):
        return None
    found, here, faults = member(node, field), f"{where}, {field}", list[str]()
    said: list[int | None] = []
    for name, most in zip(("memory", "vCores"), unlimited or (None, None), strict=True):
        none = most is not None and number(found, name, here) == UNLIMITED
        said.append(most if none else count(found, name, here, faults))
    megabytes, vcores = said
    amount = Resource(megabytes or 0, vcores or 0)
    if not faults and not amount.is_possible:
        faults.append("is more than 2^62")
    absurd += [f"{field}: {fault}" for fault in faults]
    return None if faults or (megabytes is None and vcores is None) else amount
