"""Applying and waiting: granted at once, parked until there is room, or refused with every reason."""

from dataclasses import replace

from rm_service.domain import operations as op
from rm_service.domain.amounts import AmountOverflowError, Amounts, without_zeros
from rm_service.domain.application import SECOND, Application, State
from rm_service.domain.device_choice import class_amounts
from rm_service.domain.events import Kind
from rm_service.domain.granting import grant_waiting, lock
from rm_service.domain.judging import ARRIVAL, Judgement
from rm_service.domain.lease import CLIENT_AWAY, end, insufficient, lapsed, waited_in_vain
from rm_service.domain.members import parent_of
from rm_service.domain.operations import Placement
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.domain.placing import Finding, can_never_give, find_among, read_placement, write_placement
from rm_service.domain.reserving import reserve, still_reserved
from rm_service.domain.tags import Tags
from rm_service.domain.view import View

STAY = 16
"""A wake that has found so many waiters of one label who do not fit looks no further."""
HEADS = 24
"""How many waiters a wake looks at; more than `STAY`, so that one who was let in needs no second look."""


def apply(view: View, operation: op.Apply) -> Outcome:
    """Grant as a lock if every label has room and nobody waits before it; else park or refuse."""
    existing = view.applications.get(operation.id)
    if existing is not None:
        return _repeated(existing, operation)
    rank = (operation.priority, ARRIVAL)
    choices = (operation.tags, *operation.alternatives)
    found = find_among(view, choices, operation.placement, operation.resource, rank)
    if found.refusal is not None:
        return found.refusal
    if not found.judgement.blocked:
        application = _asked(view, operation, found)
        lock(view, application)
        return Done(application=application, created=True)
    if operation.wait_seconds <= 0 or view.all_or_nothing:
        return insufficient(found.judgement.shortfalls)
    deadline = view.now + operation.wait_seconds * SECOND
    waiting = replace(
        _asked(view, operation, found),
        tags=operation.tags,
        alternatives=operation.alternatives,
        state=State.WAITING,
        locked_at=None,
        deadline=deadline,
    )
    return Done(application=park(view, waiting, found.judgement), created=True)


def wake(view: View, operation: op.Wake) -> Outcome:
    """Look at the first waiters of a label, best rank first, and grant what fits.

    One that does not fit may be passed by those behind it, until it is older than the age bound. Then the
    queue is closed to them; or if a client's ask lacks nothing but a node, one node is kept for it.
    """
    account = view.accounts[operation.label_id]
    account.balance.wake = False
    view.changed_accounts.add(operation.label_id)
    heads = view.heads.get(operation.label_id, [])
    stay = 0
    for application_id in heads[:HEADS]:
        application = view.applications[application_id]
        if application.state is State.WAITING and operation.label_id in application.waits_on:
            if lapsed(view, application):
                end(view, application, State.EXPIRED, waited_in_vain(view, application))
            elif not _try_again(view, application, operation.label_id) and _closes(
                view, application_id, operation.label_id
            ):
                return Done()
        still_here = view.applications[application_id]
        stay += still_here.state is State.WAITING and operation.label_id in still_here.waits_on
        if stay == STAY:
            return Done()
    if len(heads) > HEADS:
        view.wake(account)
    return Done()


def _closes(view: View, application_id: str, label_id: int) -> bool:
    """Whether this waiter, which does not fit, is too old to be passed here; it may wait elsewhere by now."""
    application = view.applications[application_id]
    if view.now - application.created_at < view.periods.wait_age or _can_never_fit(view, application):
        return False
    return not reserve(view, application) and label_id in application.waits_on


def _can_never_fit(view: View, application: Application) -> bool:
    """Whether it asks for more than there is in all: whoever waited for it would wait for ever."""
    requested = application.requested
    placement = None if application.placement is None else read_placement(application.placement)
    choices = (application.tags, *application.alternatives)
    if all(
        _is_beyond(view, tags, requested) or (placement and can_never_give(view, tags, placement))
        for tags in choices
    ):
        return True
    if placement is None:
        return False
    _, rooms = view.lookup.rooms(placement, requested)
    wanted = {**requested, **class_amounts(placement)}
    return any(room.total < wanted[room.dimension] for room in rooms)


def _is_beyond(view: View, tags: Tags, requested: Amounts) -> bool:
    accounts = view.accounts_of(view.lookup.labels_of(tags))
    return any(account.exceeded_by(requested) for account in accounts)


def _asked(view: View, operation: op.Apply, found: Finding) -> Application:
    """The application as it is when it is granted at once."""
    placement = operation.placement
    return Application(
        id=operation.id,
        state=State.LOCKED,
        tags=found.tags,
        label_ids=found.label_ids,
        requested=without_zeros(operation.resource),
        request=operation.request,
        priority=operation.priority,
        lock_seconds=operation.lock_seconds,
        created_at=view.now,
        locked_at=view.now,
        since=view.now,
        deadline=view.now + operation.lock_seconds * SECOND,
        placement=None if placement is None else write_placement(placement),
        devices=found.devices,
    )


def park(view: View, application: Application, judgement: Judgement) -> Application:
    """Stand in the queue of every label that said no. `application` is new, and as it is while it waits."""
    reason = insufficient(judgement.shortfalls).detail
    view.post(Kind.APPLICATION_WAITING, application.id, tags=application.tags, detail={"reason": reason})
    waiting = replace(application, reason=reason, waits_on=tuple(judgement.blocked), wait_seq=view.seq)
    view.put_application(waiting)
    if judgement.out_of_turn:
        for account in view.accounts_of(waiting.waits_on):
            view.wake(account)
    return waiting


def _try_again(view: View, application: Application, label_id: int) -> bool:
    """Judge a waiter whose turn has come on `label_id`; grant it, or let it queue where it is short now."""
    rank = (application.priority, application.wait_seq or 0)
    placement = None if application.placement is None else read_placement(application.placement)
    choices = (application.tags, *application.alternatives)
    found = find_among(view, choices, placement, application.requested, rank, turn_of=label_id)
    if found.refusal is not None:
        _await_what_is_missing(view, application, found, placement)
        return False
    bar_at_gate(view, parent_of(view, application), found.judgement)
    bar_while_away(view, application.client, found.judgement)
    if not found.judgement.blocked:
        try:
            grant_waiting(view, application, found)
        except AmountOverflowError:
            return False
        # The next in line may move up; on this label that is looked at just now.
        view.freed(tuple([left for left in application.waits_on if left != label_id]))
        return True
    _stay(view, application, found.judgement)
    return False


def _stay(view: View, application: Application, judgement: Judgement) -> None:
    """Queue where it is short now. A node that was kept for it is free again when it lacks more than that."""
    standing = application.standing
    kept = still_reserved(view, application, judgement.blocked)
    waits_on = tuple(dict.fromkeys([*judgement.blocked, *([] if kept is None else [kept])]))
    if set(waits_on) == set(application.waits_on):
        return
    reason = insufficient(judgement.shortfalls).detail
    dropped = None if standing is None or kept is not None else standing.reserved
    if standing is not None and dropped is not None:
        standing = replace(standing, reserved=None)
    view.put_application(replace(application, waits_on=waits_on, reason=reason, standing=standing))
    if dropped is not None:
        view.freed((dropped,))


def _await_what_is_missing(
    view: View, application: Application, found: Finding, placement: Placement | None
) -> None:
    """Stand where nothing is registered any more: a registration there is what it waits for now.

    Of a class that is gone nobody can say who has it: a class of that name wakes those who wait for nodes.
    """
    accounts = view.accounts_of(found.label_ids)
    missing = tuple([each.label.id for each in accounts if each.is_capacity and each.total is None])
    if placement is not None and found.refusal is not None and found.refusal.code is Code.UNKNOWN_CLASS:
        missing = (view.lookup.pool_of(placement),)
    if missing and missing != application.waits_on and found.refusal is not None:
        view.put_application(replace(application, waits_on=missing, reason=found.refusal.detail))
        left = tuple([each for each in application.waits_on if each not in missing])
        for account in view.accounts_of(left):
            view.wake(account)


def bar_while_away(view: View, client: str | None, judgement: Judgement) -> None:
    """What a client asked for that is not there waits until it is."""
    if client is None or client not in view.away:
        return
    gate = view.accounts_of((view.lookup.gate_of(client),))[0]
    judgement.only(gate, gate.shortfall("", 0, CLIENT_AWAY))


def bar_at_gate(view: View, parent: Application | None, judgement: Judgement) -> None:
    """The members of an application that waits itself wait with it."""
    if parent is None or parent.state is not State.WAITING:
        return
    gate = view.accounts_of((view.lookup.gate_of(parent.id),))[0]
    judgement.only(gate, gate.shortfall("apps", 1, "application_waits"))


def _repeated(existing: Application, operation: op.Apply) -> Outcome:
    """The same id again: the present state for the same request, for another one the field that differs."""
    if existing.request == operation.request:
        return Done(application=existing, repeated=True)
    fields = sorted(existing.request.keys() | operation.request.keys())
    different = next(
        (name for name in fields if existing.request.get(name) != operation.request.get(name)), "id"
    )
    detail = f"application {existing.id} was asked for with another {different}"
    return Refused(Code.ID_REUSED, detail, state=existing.state, field=different)
