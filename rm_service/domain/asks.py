"""What a client asks for and reports: applications with members, asks, and allocations that run already."""

from collections.abc import Sequence
from dataclasses import replace

from rm_service.domain import answers, members
from rm_service.domain import client_operations as op
from rm_service.domain.amounts import same, without_zeros
from rm_service.domain.application import HOLDING, Application, Standing, State
from rm_service.domain.clients import Client, Phase, Termination
from rm_service.domain.device_choice import by_class, devices_of_reported
from rm_service.domain.device_selection import ClassesError, check_wishes
from rm_service.domain.devices import amounts_of
from rm_service.domain.events import Kind
from rm_service.domain.granting import allocate, in_use
from rm_service.domain.judging import ARRIVAL, not_registered
from rm_service.domain.lease import book_use, end, insufficient, tell_to_end
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.domain.placing import Finding, find_room, write_placement
from rm_service.domain.queueing import bar_at_gate, bar_while_away, park
from rm_service.domain.tags import Tags
from rm_service.domain.view import View

INHERITED = ("partition", "app", "queue", "user", "group")
"""The tags that every member has from its application, whatever it says itself."""


def add_application(view: View, operation: op.AddApplication) -> Outcome:
    """Take in an application that will have members; it waits where its labels have no room for one more."""
    for known in view.named(operation.name):
        return _added_before(view, operation, known)
    return _take_in(view, operation)


def _take_in(view: View, operation: op.AddApplication, *, adopted: bool = False) -> Outcome:
    found = find_room(view, operation.tags, None, operation.resource, (0, ARRIVAL))
    if found.refusal is not None:
        return found.refusal
    application = Application(
        id=operation.id,
        state=State.WAITING,
        tags=operation.tags,
        label_ids=found.label_ids,
        requested=without_zeros(operation.resource),
        request=operation.request,
        priority=0,
        lock_seconds=0,
        created_at=view.now,
        locked_at=None,
        since=view.now,
        client=operation.client.id,
        name=operation.name,
        standing=Standing(
            operation.client.registration,
            run_for=max(0, operation.run_for),
            phase=Phase.NEW.value,
            adopted=adopted,
        ),
    )
    if not adopted:
        _accept(view, application, operation.client)
    bar_while_away(view, operation.client.id, found.judgement)
    if found.judgement.blocked:
        return Done(application=park(view, application, found.judgement), created=True)
    granted = in_use(view, replace(application, locked_at=view.now))
    allocate(view, granted, None)
    return Done(application=granted, created=True)


def ask(view: View, operation: op.Ask) -> Outcome:
    """Ask for allocations: each is granted at once or waits until its labels have room."""
    parent, refusal = _parent(view, operation.parent, operation.tags, operation.client)
    if refusal is not None:
        return refusal
    live = view.named(operation.name)
    try:
        operation = by_class(operation, view.lookup.classes(), live)
        check_wishes(view.lookup.classes().wishes(operation.placement.classes if operation.placement else ()))
    except ClassesError as error:
        return Refused(Code.INVALID_CLASSES, str(error), field=error.field)
    tags = _with_parent(operation.tags, parent)
    waiting = [each for each in live if each.state is State.WAITING]
    held = [each for each in live if each.state in HOLDING]
    missing = max(0, len(operation.ids) - len(held))
    if live and len(waiting) == missing and (not waiting or _same_ask(operation, tags, waiting)):
        _ask_again(view, operation, held)
        for each in waiting:
            _mark_reported(view, each, operation.client)
        return Done(application=view.applications[live[0].id], repeated=True)
    unregistered = not_registered(view.accounts_of(view.lookup.labels_of(tags)))
    if unregistered is not None:
        return unregistered
    if not live and missing == 1:
        outcome = ask_once(view, operation, operation.ids[0], tags, parent)
        return outcome if isinstance(outcome, Refused) else Done(application=outcome, created=True)
    return view.all_or_none(lambda: _ask_for(view, operation, tags, parent, held, waiting, missing))


def _ask_for(
    view: View,
    operation: op.Ask,
    tags: Tags,
    parent: Application | None,
    held: Sequence[Application],
    waiting: Sequence[Application],
    missing: int,
) -> Outcome:
    """Put as many asks as are missing in the place of those that wait; resize what is allocated."""
    _ask_again(view, operation, held)
    for each in waiting:
        end(view, each, State.RELEASED, "replaced by a newer ask", quiet=True, replaced=missing > 0)
    asked = held[0] if held else None
    for application_id in operation.ids[:missing]:
        outcome = ask_once(view, operation, application_id, tags, parent)
        if isinstance(outcome, Refused):
            return outcome
        asked = asked or outcome
    return Done(application=asked, created=missing > 0)


def book_allocation(view: View, operation: op.BookAllocation) -> Outcome:
    """Book what a client reports as running, even where it is over the limit: what runs cannot be refused."""
    parent, refusal = _parent(view, operation.parent, operation.tags, operation.client)
    if refusal is not None and operation.adopt is not None:
        parent, refusal = _adopt(view, operation.adopt)
    if refusal is not None:
        return refusal
    known = _reported_before(view, operation)
    operation = by_class(operation, view.lookup.classes(), () if known is None else (known,))
    tags = _with_parent(operation.tags, parent)
    label_ids = view.lookup.labels_of(tags)
    missing = not_registered(view.accounts_of(label_ids))
    if missing is not None:
        return replace(missing, detail=f"failed to find node {tags.get('node', '')}")
    if known is not None and known.state is not State.WAITING:
        return Done(application=_report_again(view, operation, known), repeated=True)
    devices, lacking = devices_of_reported(view, label_ids, operation.placement)
    label_ids = view.lookup.labels_of(tags, amounts_of(devices))
    placed = known or _new_allocation(view, operation, parent)
    standing = replace(
        placed.standing or Standing(),
        registration=operation.client.registration,
        uuid=_own_name(operation) if known is not None else None,
    )
    placed = replace(
        placed,
        tags=tags,
        label_ids=label_ids,
        devices=devices,
        locked_at=view.now,
        reason=None,
        waits_on=(),
        standing=standing,
    )
    allocated = replace(in_use(view, placed), used=without_zeros(operation.resource))
    allocate(view, allocated, None if known is None else known.state)
    if known is not None:
        view.freed(known.waits_on)
    booked = view.applications[placed.id]
    if lacking or any(account.over_limit() for account in view.accounts_of(label_ids)):
        booked = replace(booked, over_limit=True)
        view.put_application(booked)
    return Done(application=booked, created=known is None)


def _added_before(view: View, operation: op.AddApplication, known: Application) -> Outcome:
    """The same name again: known from an earlier registration, or refused."""
    standing = known.standing or Standing()
    if standing.registration >= operation.client.registration and not standing.adopted:
        app, partition = operation.tags.get("app", ""), operation.tags.get("partition", "")
        detail = f"adding application {app} to partition {partition}, but application already existed"
        return Refused(Code.ID_REUSED, detail, state=known.state)
    _accept(view, known, operation.client)
    known = _mark_reported(view, known, operation.client)
    if standing.adopted:
        view.put_application(replace(known, standing=replace(known.standing or standing, adopted=False)))
    return Done(application=view.applications[known.id], repeated=True)


def _adopt(view: View, operation: op.AddApplication) -> tuple[Application | None, Refused | None]:
    """Take in the application of an allocation that runs, as one that its client has still to report."""
    outcome = _take_in(view, operation, adopted=True)
    return (None, outcome) if isinstance(outcome, Refused) else (outcome.application, None)


def _accept(view: View, application: Application, client: Client) -> None:
    view.post(
        Kind.APPLICATION_REPORTED,
        application.id,
        tags=application.tags,
        client=client.id,
        answer=answers.accepted_application(application.tags.get("app", "")),
    )


def _parent(
    view: View, name: str | None, tags: Tags, client: Client
) -> tuple[Application | None, Refused | None]:
    """The application that is named as parent. Who reports a member reports its application too."""
    if name is None:
        return None, None
    for parent in view.named(name):
        if parent.standing is None or parent.standing.phase not in {Phase.FAILING, Phase.FAILED}:
            return _mark_reported(view, parent, client, adopted=True), None
    detail = f"failed to find application {tags.get('app', '')}"
    return None, Refused(Code.UNKNOWN_APPLICATION, detail)


def _with_parent(tags: Tags, parent: Application | None) -> Tags:
    if parent is None or all(tags.get(key) == parent.tags.get(key) for key in INHERITED):
        return tags
    own = {key: value for key, value in tags.items() if key not in INHERITED}
    return own | {key: parent.tags[key] for key in INHERITED if key in parent.tags}


def ask_once(
    view: View, operation: op.Ask, application_id: str, tags: Tags, parent: Application | None
) -> Application | Refused:
    """Grant one allocation of an ask, or let it wait. A refusal, or AmountOverflowError, changes nothing."""
    found = find_room(view, tags, operation.placement, operation.resource, (operation.priority, ARRIVAL))
    if found.refusal is not None:
        return found.refusal
    if "node" in tags:
        for account in view.accounts_of(view.lookup.labels_of(tags)):
            if account.is_capacity and account.exceeded_by(operation.resource):
                return insufficient(account.shortfalls(operation.resource))
    bar_at_gate(view, parent, found.judgement)
    bar_while_away(view, operation.client.id, found.judgement)
    standing = Standing(
        operation.client.registration, run_for=operation.run_for, required_node=tags.get("node")
    )
    asked = _asked(view, operation, application_id, found, parent, standing)
    if not found.judgement.blocked:
        allocate(view, asked, None)
        return asked
    waiting = replace(
        asked,
        state=State.WAITING,
        tags=tags,  # a node that was found before a gate may be full, or gone, when the gate opens
        label_ids=view.lookup.labels_of(tags),
        devices=(),
        used=None,
        locked_at=None,
        used_at=None,
        deadline=None,
    )
    waiting = park(view, waiting, found.judgement)
    members.moved(view, None, waiting)
    return waiting


def _asked(
    view: View,
    operation: op.Ask,
    application_id: str,
    found: Finding,
    parent: Application | None,
    standing: Standing,
) -> Application:
    """The application of an ask as it is when it is granted at once."""
    requested = without_zeros(operation.resource)
    placement = operation.placement
    return Application(
        id=application_id,
        state=State.USED,
        tags=found.tags,
        label_ids=found.label_ids,
        requested=requested,
        request=operation.request,
        priority=operation.priority,
        lock_seconds=0,
        created_at=view.now,
        used=requested,
        locked_at=view.now,
        used_at=view.now,
        deadline=view.now + operation.run_for if operation.run_for > 0 else None,
        since=view.now,
        placement=None if placement is None else write_placement(placement),
        devices=found.devices,
        client=operation.client.id,
        name=operation.name,
        parent=None if parent is None else parent.id,
        standing=standing,
    )


def _ask_again(view: View, operation: op.Ask, held: Sequence[Application]) -> None:
    """What is allocated: another amount resizes it; a client registered anew is told of it again."""
    for each in held:
        resized = each
        if not same(each.resource, operation.resource):
            resized = book_use(view, each, operation.resource, report=True)
        _tell_again(view, resized, operation.client)


def _report_again(view: View, operation: op.BookAllocation, known: Application) -> Application:
    if not same(known.resource, operation.resource):
        known = book_use(view, known, operation.resource, report=True)
    _tell_again(view, known, operation.client)
    return view.applications[known.id]


def _tell_again(view: View, known: Application, client: Client) -> None:
    """Tell of an allocation that this registration of the client has not been told of."""
    if (known.standing or Standing()).registration >= client.registration or not known.is_told_of:
        _mark_reported(view, known, client)
        return
    reported = _mark_reported(view, known, client)
    view.post(
        Kind.APPLICATION_REPORTED,
        known.id,
        tags=known.tags,
        client=client.id,
        answer=answers.new(reported, reported.resource),
    )
    ending = None if reported.standing is None else reported.standing.ending
    if ending is not None:
        tell_to_end(view, reported, Termination(ending), reported.reason or "")


def _mark_reported(
    view: View, application: Application, client: Client, *, adopted: bool = False
) -> Application:
    """As reported under this registration; `adopted`: only by one of its members."""
    standing = application.standing or Standing()
    if standing.registration >= client.registration:
        return application
    standing = replace(standing, registration=client.registration, adopted=adopted or standing.adopted)
    marked = replace(application, standing=standing)
    view.put_application(marked)
    return marked


def _same_ask(operation: op.Ask, tags: Tags, waiting: Sequence[Application]) -> bool:
    first = waiting[0]
    before = first.placement or {}
    now = {} if operation.placement is None else write_placement(operation.placement)
    return (
        same(first.requested, operation.resource)
        and first.priority == operation.priority
        and first.request == operation.request
        and first.tags == tags
        and before.get("selector") == now.get("selector")
        and dict(before.get("classes", ())) == dict(now.get("classes", ()))
        and (first.standing or Standing()).run_for == operation.run_for
    )


def _reported_before(view: View, operation: op.BookAllocation) -> Application | None:
    """The allocation that is reported, if it is known; else an ask that it answers."""
    live = view.named(operation.name)
    told_as = operation.request.get("uuid", operation.id)
    for each in live:
        if each.id == operation.id or each.outside_id == told_as:
            return each
    anonymous = operation.request.get("anonymous", False)
    for each in live:
        if each.state is State.WAITING or (anonymous and each.state in HOLDING):
            return each
    return None


def _own_name(operation: op.BookAllocation) -> str | None:
    """What the client calls the allocation that it reports, if it calls it anything."""
    return None if operation.request.get("anonymous") else str(operation.request.get("uuid", operation.id))


def _new_allocation(view: View, operation: op.BookAllocation, parent: Application | None) -> Application:
    request = {key: value for key, value in operation.request.items() if key != "anonymous"}
    application_id = operation.id
    if application_id in view.applications:  # it has ended here, and yet it runs
        request["uuid"], application_id = operation.request.get("uuid", operation.id), operation.spare_id
    return Application(
        id=application_id,
        state=State.WAITING,
        tags=operation.tags,
        label_ids=(),
        requested=without_zeros(operation.resource),
        request=request,
        priority=operation.priority,
        lock_seconds=0,
        created_at=view.now,
        since=view.now,
        placement=None if operation.placement is None else write_placement(operation.placement),
        client=operation.client.id,
        name=operation.name,
        parent=None if parent is None else parent.id,
        standing=Standing(operation.client.registration, required_node=operation.required_node),
    )
