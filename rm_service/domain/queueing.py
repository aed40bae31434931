"""Applying and waiting: granted at once, parked until there is room, or refused with every reason."""

from dataclasses import replace

from rm_service.domain import operations as op
from rm_service.domain.accounts import Shortfall
from rm_service.domain.amounts import Amounts, without_zeros
from rm_service.domain.application import SECOND, Application, State
from rm_service.domain.events import Kind
from rm_service.domain.judging import ARRIVAL, Judgement, Rank, judge, not_registered
from rm_service.domain.lease import end, insufficient, lapsed
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.domain.tags import Tags
from rm_service.domain.view import Charged, Choice, Room, View

HEADS = 16
"""How many waiters of one label a wake looks at."""


def apply(view: View, operation: op.Apply) -> Outcome | None:
    """Grant as a lock if every label has room and nobody waits before it; else park or refuse.

    None when the chooser's finding was overtaken by this batch.
    """
    existing = view.applications.get(operation.id)
    if existing is not None:
        return _repeated(existing, operation)
    charged = view.charged[operation.id]
    choice = view.choices.get(operation.id)
    refusal = not_registered(view.accounts_of(charged.label_ids))
    if refusal is not None:
        return refusal
    found = _find_room(view, charged, choice, operation.resource, (operation.priority, ARRIVAL))
    if found is None:
        return None
    charged, judgement = found
    if judgement.blocked and operation.wait_seconds <= 0:
        return insufficient(judgement.shortfalls)
    if judgement.blocked:
        return Done(application=_park(view, operation, charged, judgement), created=True)
    application = _asked(view, operation, charged)
    _grant(view, application)
    return Done(application=application, created=True)


def wake(view: View, operation: op.Wake) -> Outcome | None:
    """Look at the first waiters of a label, best rank first, and grant what fits.

    One that does not fit may be passed by those behind it, until it is older than the age bound.
    """
    account = view.accounts[operation.label_id]
    account.balance.wake = False
    view.changed_accounts.add(operation.label_id)
    for application_id in view.heads.get(operation.label_id, [])[:HEADS]:
        application = view.applications[application_id]
        if application.state is not State.WAITING or operation.label_id not in application.waits_on:
            continue
        if lapsed(view, application):
            end(view, application, State.EXPIRED, "no room within the wait")
            continue
        fits = _try_again(view, application, operation.label_id)
        if fits is None:
            view.wake(account)
        elif not fits and view.now - application.created_at >= view.wait_age:
            break
    return Done()


def without_waiting(operation: op.DecidedOperation) -> op.DecidedOperation:
    """The same operation, refused instead of parked: what a group that stands or falls together asks for."""
    if isinstance(operation, op.Apply) and operation.wait_seconds:
        return replace(operation, wait_seconds=0)
    return operation


def _find_room(
    view: View,
    charged: Charged,
    choice: Choice | None,
    resource: Amounts,
    rank: Rank,
    turn_of: int | None = None,
) -> tuple[Charged, Judgement] | None:
    """Judge the labels, those of a chosen node included. None: the choice was overtaken, choose again."""
    judgement = judge(view.accounts_of(charged.label_ids), resource, rank, turn_of)
    if choice is None or judgement.blocked:
        return charged, judgement
    pool = view.accounts[choice.pool_id]
    queue = judge([pool], resource, rank, turn_of)
    if queue.blocked:
        return charged, queue
    if choice.placed is None:
        if view.gave_back or choice.crowded:
            return None
        return charged, Judgement(_nowhere(pool.label.tags, choice, resource), [choice.pool_id])
    placed = judge(view.accounts_of(choice.placed.label_ids), resource, rank, turn_of)
    return None if placed.blocked else (choice.placed, placed)


def _nowhere(label: Tags, choice: Choice, resource: Amounts) -> list[Shortfall]:
    """Why no node was found: per dimension the most that any matching node has left."""
    reason = "no_node_fits" if choice.matching else "no_node_matches"
    rooms = {room.dimension: room for room in choice.rooms}
    found = []
    for dimension, amount in resource.items() or [("", 0)]:
        room = rooms.get(dimension) or Room(dimension, 0, 0)
        found.append(Shortfall(label, dimension, amount, room.left, room.total, 0, 0, 0, reason))
    return [shortfall for shortfall in found if shortfall.left < shortfall.requested] or found


def _asked(view: View, operation: op.Apply, charged: Charged) -> Application:
    """The application as it is when it is granted at once."""
    placement = operation.placement
    return Application(
        id=operation.id,
        state=State.LOCKED,
        tags=_placed_tags(operation.tags, charged),
        label_ids=charged.label_ids,
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


def _placed_tags(tags: Tags, charged: Charged) -> Tags:
    return tags if charged.node is None else {**tags, "node": charged.node}


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


def _park(view: View, operation: op.Apply, charged: Charged, judgement: Judgement) -> Application:
    """Stand in the queue of every label that said no."""
    reason = insufficient(judgement.shortfalls).detail
    view.post(Kind.APPLICATION_WAITING, operation.id, tags=operation.tags, detail={"reason": reason})
    waiting = replace(
        _asked(view, operation, charged),
        state=State.WAITING,
        locked_at=None,
        deadline=view.now + operation.wait_seconds * SECOND,
        reason=reason,
        waits_on=tuple(judgement.blocked),
        wait_seq=view.seq,
    )
    view.put_application(waiting)
    if judgement.out_of_turn:
        for account in view.accounts_of(waiting.waits_on):
            view.wake(account)
    return waiting


def _try_again(view: View, application: Application, label_id: int) -> bool | None:
    """Judge a waiter whose turn has come on `label_id`; None when the chooser must look again."""
    rank = (application.priority, application.wait_seq or 0)
    charged = Charged(application.label_ids)
    choice = view.choices.get(application.id)
    if not_registered(view.accounts_of(charged.label_ids)) is not None:
        return False
    found = _find_room(view, charged, choice, application.requested, rank, turn_of=label_id)
    if found is None:
        return None
    charged, judgement = found
    if not judgement.blocked:
        locked = replace(
            application,
            state=State.LOCKED,
            tags=_placed_tags(application.tags, charged),
            label_ids=charged.label_ids,
            locked_at=view.now,
            since=view.now,
            deadline=view.now + application.lock_seconds * SECOND,
            reason=None,
            waits_on=(),
        )
        _grant(view, locked)
        view.freed(application.waits_on)  # the next in line may move up
        return True
    if set(judgement.blocked) != set(application.waits_on):
        reason = insufficient(judgement.shortfalls).detail
        view.put_application(replace(application, waits_on=tuple(judgement.blocked), reason=reason))
    return False


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
