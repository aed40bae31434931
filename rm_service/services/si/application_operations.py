"""From what an RM says of applications to the ledger's operations."""

from dataclasses import dataclass

from rm_service.domain import answers
from rm_service.domain import operations as op
from rm_service.domain.queue_config import PartitionConfig
from rm_service.domain.queue_limits import charged_group, queue_total
from rm_service.domain.queue_placement import (
    CREATE_FORCE_TAG,
    NOBODY,
    NOGROUP,
    Placed,
    Refusal,
    is_forced,
    owner_of,
    place_application,
)
from rm_service.domain.tags import Tags
from rm_service.ledger.ids import new_id
from rm_service.services.si.clients import TIMEOUT, KnownClient
from rm_service.services.si.groups import UnknownUserError, resolver_for
from rm_service.services.si.names import application_name, outside_tags, partition_name, printable, tag_fault
from rm_service.services.si.requests import MAX_TIMEOUT_MS, NewApplication, RemovedApplication

MILLISECOND = 1_000
"""In the ledger's microseconds."""
MAX_TAGS_TEXT = 65_536
GANG_STYLES = {"", "soft", "hard"}


@dataclass(frozen=True, slots=True)
class Translated:
    """The operation for a request, and the limit that has to be set before it, if any."""

    operation: op.AddApplication | op.Tell
    limit: op.SetLimit | None = None


def add_application(known: KnownClient, request: NewApplication) -> Translated:
    """Find its queue and charge it there; whatever stands against it is its rejection."""
    partition, config = known.partition(request.partition)
    app = request.application
    if config is None:
        reason = f"Failed to add application {app} to partition {partition}, partition doesn't exist"
        return _rejected(known, app, reason)
    fault = _fault(request)
    if fault is not None:
        return _rejected(known, app, fault)
    owner = owner_of(request.user, request.groups, request.tags)
    if isinstance(owner, Refusal):
        return _rejected(known, app, owner.reason)
    groups = owner.groups
    if not groups:
        try:
            groups = resolver_for(config.group_lookup).groups_of(owner.user)
        except UnknownUserError as error:
            if not is_forced(request.tags):
                return _rejected(known, app, f"user resolution failed: {error}")
    placed = place_application(
        config,
        application=app,
        queue=request.queue,
        user=owner.user,
        groups=groups,
        tags=request.tags,
    )
    if isinstance(placed, Refusal):
        return _rejected(known, app, placed.reason)
    return _placed(known, request, config, partition, placed, owner.user, groups)


def remove_application(known: KnownClient, request: RemovedApplication) -> op.RemoveApplication:
    partition = partition_name(known.client.id, request.partition)
    return op.RemoveApplication(
        client=known.client,
        name=application_name(partition, request.application),
        message=f"Application {request.application} Removed",
    )


def adopted_application(
    known: KnownClient, app: str, queue: str, partition: str, config: PartitionConfig
) -> op.AddApplication | None:
    """The application of an allocation that runs, of which nothing is known but its queue."""
    placed = place_application(
        config, application=app, queue=queue, user=NOBODY, groups=(NOGROUP,), tags={CREATE_FORCE_TAG: "true"}
    )
    if not app or isinstance(placed, Refusal):
        return None
    return op.AddApplication(
        client=known.client,
        id=new_id(),
        name=application_name(partition, app),
        tags={"partition": partition, "app": app, "queue": placed.queue, "user": NOBODY, "group": NOGROUP},
        resource={"apps": 1},
        request={"queue": queue},
    )


def _placed(
    known: KnownClient,
    request: NewApplication,
    config: PartitionConfig,
    partition: str,
    placed: Placed,
    user: str,
    groups: tuple[str, ...],
) -> Translated:
    group = charged_group(config, placed.queue, groups) or (groups[0] if groups else None)
    tags = outside_tags(request.tags)
    tags |= {"partition": partition, "app": request.application, "queue": placed.queue, "user": user}
    if group is not None:
        tags["group"] = group
    operation = op.AddApplication(
        client=known.client,
        id=new_id(),
        name=application_name(partition, request.application),
        tags=tags,
        resource={"apps": 1},
        run_for=_run_for(known, request),
        request={
            "queue": request.queue,
            "groups": groups,
            "tags": request.tags,
            "placeholder_ask": request.placeholder_ask,
            "gang_style": request.gang_style,
        },
    )
    return Translated(operation, _limit(known, partition, placed))


def _limit(known: KnownClient, partition: str, placed: Placed) -> op.SetLimit | None:
    """A queue that no configuration names brings its own limit."""
    total = queue_total(placed.max, placed.max_applications) if placed.created else {}
    if not total:
        return None
    tags: Tags = {"partition": partition, "queue": placed.queue}
    return op.SetLimit(tags, total, client=known.client.id)


def _run_for(known: KnownClient, request: NewApplication) -> int:
    """How long it may run; with placeholders the time is meant for them, unless the RM has said otherwise."""
    meaning = known.extra.get(TIMEOUT)
    for_placeholders = any(amount > 0 for amount in request.placeholder_ask.values())
    if meaning == "placeholder" or (for_placeholders and meaning != "application"):
        return 0
    return min(max(0, request.timeout_ms), MAX_TIMEOUT_MS) * MILLISECOND


def _fault(request: NewApplication) -> str | None:
    if not request.application:
        return "an application needs an ID"
    if sum(len(key) + len(value) for key, value in request.tags.items()) > MAX_TAGS_TEXT:
        return f"tags are longer than {MAX_TAGS_TEXT} characters"
    if request.gang_style.lower() not in GANG_STYLES:
        return f"unknown gang scheduling style {request.gang_style[:40]!r}: Soft and Hard are known"
    return tag_fault(request.application, *request.groups)


def _rejected(known: KnownClient, app: str, reason: str) -> Translated:
    answer = answers.rejected_application(app, reason)
    return Translated(op.Tell(client=known.client, subject=printable(app), answer=answer))
