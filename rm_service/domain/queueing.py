"""Applying and waiting: granted at once, parked until there is room, or refused with every reason."""

from dataclasses import replace

from rm_service.domain import operations as op
from rm_service.domain.amounts import AmountOverflowError, without_zeros
from rm_service.domain.application import SECOND, Application, State
from rm_service.domain.events import Kind
from rm_service.domain.judging import ARRIVAL
from rm_service.domain.lease import end, insufficient, lapsed
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.domain.placing import Finding, find_room
from rm_service.domain.view import View

HEADS = 16
"""How many waiters of one label a wake looks at."""


def apply(view: View, operation: op.Apply) -> Outcome:
    """Grant as a lock if every label has room and nobody waits before it; else park or refuse."""
    existing = view.applications.get(operation.id)
    if existing is not None:
        return _repeated(existing, operation)
    rank = (operation.priority, ARRIVAL)
    found = find_room(view, operation.tags, operation.placement, operation.resource, rank)
    if found.refusal is not None:
        return found.refusal
    if not found.judgement.blocked:
        application = _asked(view, operation, found)
        _grant(view, application)
        return Done(application=application, created=True)
    if operation.wait_seconds <= 0 or view.all_or_nothing:
        return insufficient(found.judgement.shortfalls)
    return Done(application=_park(view, operation, found), created=True)


def wake(view: View, operation: op.Wake) -> Outcome:
    """Look at the first waiters of a label, best rank first, and grant what fits.

    One that does not fit may be passed by those behind it, until it is older than the age bound.
    """
    account = view.accounts[operation.label_id]
    account.balance.wake = False
    view.changed_accounts.add(operation.label_id)
    heads = view.heads.get(operation.label_id, [])
    somebody_left = False
    for application_id in heads[:HEADS]:
        application = view.applications[application_id]
        if application.state is State.WAITING and operation.label_id in application.waits_on:
            if lapsed(view, application):
                end(view, application, State.EXPIRED, "no room within the wait")
            elif not _try_again(view, application, operation.label_id) and _is_old(view, application):
                break
        still_here = view.applications[application_id]
        somebody_left |= (
            still_here.state is not State.WAITING or operation.label_id not in still_here.waits_on
        )
    if somebody_left and len(heads) > HEADS:
        view.wake(account)
    return Done()


def _is_old(view: View, application: Application) -> bool:
    return view.now - application.created_at >= view.wait_age


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
        placement=None
        if placement is None
        else {"selector": placement.selector, "strategy": placement.strategy},
    )


def _grant(view: View, application: Application) -> None:
    """Charge a lock on all of its labels."""
    view.post(
        Kind.APPLICATION_LOCKED,
        application.id,
        label_ids=application.label_ids,
        locked=application.requested,
        holders=1,
        tags=application.tags,
    )
    view.put_application(application)


def _park(view: View, operation: op.Apply, found: Finding) -> Application:
    """Stand in the queue of every label that said no."""
    reason = insufficient(found.judgement.shortfalls).detail
    view.post(Kind.APPLICATION_WAITING, operation.id, tags=operation.tags, detail={"reason": reason})
    waiting = replace(
        _asked(view, operation, found),
        state=State.WAITING,
        locked_at=None,
        deadline=view.now + operation.wait_seconds * SECOND,
        reason=reason,
        waits_on=tuple(found.judgement.blocked),
        wait_seq=view.seq,
    )
    view.put_application(waiting)
    if found.judgement.out_of_turn:
        for account in view.accounts_of(waiting.waits_on):
            view.wake(account)
    return waiting


def _try_again(view: View, application: Application, label_id: int) -> bool:
    """Judge a waiter whose turn has come on `label_id`; grant it, or let it queue where it is short now."""
    rank = (application.priority, application.wait_seq or 0)
    placement = None if application.placement is None else op.Placement(**application.placement)
    found = find_room(view, application.tags, placement, application.requested, rank, turn_of=label_id)
    if found.refusal is not None:
        return False
    if not found.judgement.blocked:
        try:
            _grant(view, _granted(view, application, found))
        except AmountOverflowError:
            return False
        view.freed(application.waits_on)  # the next in line may move up
        return True
    if set(found.judgement.blocked) != set(application.waits_on):
        reason = insufficient(found.judgement.shortfalls).detail
        view.put_application(replace(application, waits_on=tuple(found.judgement.blocked), reason=reason))
    return False


def _granted(view: View, application: Application, found: Finding) -> Application:
    return replace(
        application,
        state=State.LOCKED,
        tags=found.tags,
        label_ids=found.label_ids,
        locked_at=view.now,
        since=view.now,
        deadline=view.now + application.lock_seconds * SECOND,
        reason=None,
        waits_on=(),
    )


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
