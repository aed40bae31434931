"""What `/ws/v1/cluster/apps` answers, as applications in places."""

from collections.abc import Collection

from external_providers.base import ExternalApplication, MalformedError
from external_providers.yarn.json_tolerance import Object, count, last, member, members, number, text
from external_providers.yarn.queues import Resource
from external_providers.yarn.schedulers import ROOT

STATES = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
COUNTED = frozenset({"ACCEPTED", "RUNNING"})
"""In the others it has not reached the scheduler: its queue's number of applications lacks it yet."""
NOTHING_YET = -1
LEFT_OUT = "resourceRequests,timeouts,appNodeLabelExpression,amNodeLabelExpression,resourceInfo"
PATH = f"/ws/v1/cluster/apps?states={STATES}&deSelects={LEFT_OUT}"


def listed(answer: Object) -> list[Object]:
    """The applications as YARN describes them."""
    return list(members(member(answer, "apps"), "app"))


def speaks_of_leaves(apps: Collection[Object]) -> bool:
    """Whether a queue is named without its path, so that the tree of queues is needed to find it."""
    return any(not _is_full(text(app, "queue")) for app in apps)


def applications(apps: Collection[Object], names: Collection[str] = ()) -> list[ExternalApplication]:
    """Them with their full places; `names` are those of all queues, where leaves alone are named.

    One whose queue cannot be told is left out: who is not in the list counts whole, which errs to the safe
    side. Raises MalformedError naming the application and the field.
    """
    full = _full_names(names)
    found = []
    for app in apps:
        queue = text(app, "queue")
        place = queue if _is_full(queue) else full.get(queue)
        if place is not None:
            found.append(_application(app, place))
    return found


def _application(app: Object, place: str) -> ExternalApplication:
    identity = text(app, "id")
    if not identity:
        raise MalformedError(f"an application in {place} has no id")
    where = f"application {identity}"
    state = text(app, "state")
    absurd: list[str] = []
    held = Resource(
        _held(app, "allocatedMB", where, absurd) + _held(app, "reservedMB", where, absurd),
        _held(app, "allocatedVCores", where, absurd) + _held(app, "reservedVCores", where, absurd),
    )
    if not held.is_possible:
        absurd.append("what it holds is more than 2^62")
    return ExternalApplication(
        id=identity,
        place=place,
        allocated={} if absurd else held.amounts(1 if state in COUNTED else 0),
        fault="; ".join(absurd),
        state=state,
        user=text(app, "user"),
        name=text(app, "name"),
        kind=text(app, "applicationType"),
        tags=_tags(app),
    )


def _held(app: Object, field: str, where: str, absurd: list[str]) -> int:
    """YARN says -1 of an application that it has given nothing yet."""
    nothing = number(app, field, where) == NOTHING_YET
    return 0 if nothing else count(app, field, where, absurd) or 0


def _tags(app: Object) -> frozenset[str]:
    words = str(last(app.get("applicationTags")) or "").split(",")
    return frozenset(word.strip() for word in words if word.strip())


def _is_full(queue: str) -> bool:
    return queue == ROOT or queue.startswith(f"{ROOT}.")


def _full_names(names: Collection[str]) -> dict[str, str]:
    """Every shorter form of a name that no other queue shares: `daily`, `etl.daily` for `root.etl.daily`."""
    full: dict[str, str | None] = {}
    for name in names:
        short = name
        while "." in short:
            short = short.partition(".")[2]
            full[short] = None if short in full else name
    return {short: name for short, name in full.items() if name is not None}
