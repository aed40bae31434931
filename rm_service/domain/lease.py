"""What becomes of a lock: used, renewed, released, reclaimed, lost. Each transition happens once."""

from dataclasses import replace

from rm_service.domain import operations as op
from rm_service.domain.accounts import Shortfall
from rm_service.domain.amounts import Amounts, minus, negative, same, without_zeros
from rm_service.domain.application import HOLDING, LIVE, SECOND, Application, State
from rm_service.domain.events import Kind
from rm_service.domain.judging import ARRIVAL, judge
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.domain.view import Interval, View

_ENDINGS = {
    State.RELEASED: Kind.APPLICATION_RELEASED,
    State.EXPIRED: Kind.APPLICATION_EXPIRED,
    State.RECLAIMED: Kind.APPLICATION_RECLAIMED,
    State.LOST: Kind.APPLICATION_LOST,
}


def use(view: View, operation: op.Use) -> Outcome:
    """LOCKED → USED with the actual amount; on USED, with an amount: adjusted.

    What is asked for above the lock is judged like an apply; if it does not fit, the lock stays.
    """
    application = view.applications.get(operation.id)
    if application is None:
        return unknown(operation.id)
    refusal = not_usable(view, application)
    if refusal is not None:
        return refusal
    actual = _actual(application, operation.resource)
    if application.state is State.USED and same(actual, application.resource):
        return Done(application=application, repeated=True)
    more = {name: amount for name, amount in minus(actual, application.resource).items() if amount > 0}
    if more:
        judgement = judge(
            view, view.accounts_of(application.label_ids), more, (application.priority, ARRIVAL)
        )
        if judgement.blocked:
            return insufficient(judgement.shortfalls)
    return Done(application=book_use(view, application, actual))


def not_usable(view: View, application: Application) -> Refused | None:
    """Why this application cannot be used, if so: its lock is over, or it holds nothing."""
    if application.state is State.USED:
        return None
    if application.state is State.RECLAIMED or (
        application.state is State.LOCKED and lapsed(view, application)
    ):
        return Refused(Code.EXPIRED, "the lock's lease is over", state=application.state)
    if application.state is not State.LOCKED:
        return Refused(Code.NO_LOCK, f"the application is {application.state}", state=application.state)
    return None


def book_use(view: View, application: Application, actual: Amounts, *, report: bool = False) -> Application:
    """Book `actual` as used instead of what the application held. A report may go over the limit."""
    first = application.state is not State.USED
    kind = Kind.APPLICATION_USED if first else Kind.APPLICATION_ADJUSTED
    if application.state is State.LOST:
        kind = Kind.APPLICATION_REBOOKED
    used = without_zeros(actual)
    view.post(
        kind,
        application.id,
        label_ids=application.label_ids,
        locked=negative(application.locked_now),
        used=minus(used, application.used_now),
        holders=0 if application.state in HOLDING else 1,
        tags=application.tags,
    )
    _archive(view, application)
    reported = report or application.over_limit
    over = reported and any(account.over_limit() for account in view.accounts_of(application.label_ids))
    changed = replace(
        application,
        state=State.USED,
        used=used,
        locked_at=view.now if application.state is State.LOST else application.locked_at,
        used_at=view.now if first else application.used_at,
        since=view.now,
        deadline=None if first else application.deadline,
        over_limit=over,
        finished_at=None,
        reason=None,
    )
    view.put_application(changed)
    if any(amount < 0 for amount in minus(used, application.resource).values()):
        view.freed(application.label_ids)
    return changed


def renew(view: View, operation: op.Renew) -> Outcome:
    """Start the lease anew while it lasts; a used application needs none and is answered as it is."""
    application = view.applications.get(operation.id)
    if application is None:
        return unknown(operation.id)
    refusal = not_usable(view, application)
    if refusal is not None or application.state is State.USED:
        return refusal or Done(application=application, repeated=True)
    seconds = operation.lock_seconds or application.lock_seconds
    renewed = replace(application, deadline=view.now + seconds * SECOND)
    view.post(Kind.APPLICATION_RENEWED, application.id, tags=application.tags)
    view.put_application(renewed)
    return Done(application=renewed)


def release(view: View, operation: op.Release) -> Outcome:
    """Give everything back; what is finished already stays as it ended."""
    application = view.applications.get(operation.id)
    if application is None:
        return unknown(operation.id)
    if application.state not in LIVE:
        return Done(application=application, repeated=True)
    reason = "cancelled" if application.state is State.WAITING else None
    return Done(application=end(view, application, State.RELEASED, reason))


def reclaim(view: View, operation: op.Reclaim) -> Outcome:
    """End what is past its deadline; anything else stays as it is, so that asking twice is harmless."""
    application = view.applications.get(operation.id)
    if application is None:
        return unknown(operation.id)
    if application.state not in LIVE or not lapsed(view, application):
        return Done(application=application, repeated=True)
    state, reason = {
        State.WAITING: (State.EXPIRED, "no room within the wait"),
        State.LOCKED: (State.RECLAIMED, "the lock was not used within its lease"),
        State.USED: (State.EXPIRED, "the execution time is over"),
    }[application.state]
    return Done(application=end(view, application, state, reason))


def lose(view: View, operation: op.Lose) -> Outcome:
    """Give back what an application holds because what ran it is gone."""
    application = view.applications.get(operation.id)
    if application is None:
        return unknown(operation.id)
    spared = operation.only_if_node_lost and not _node_lost(view, application)
    if application.state not in HOLDING or spared:
        return Done(application=application, repeated=True)
    return Done(application=end(view, application, State.LOST, operation.reason))


def end(view: View, application: Application, state: State, reason: str | None) -> Application:
    """Bring an application to a final state: it holds nothing more, and its engine is gone from the list."""
    holding = application.state in HOLDING
    label_ids = application.label_ids if holding else ()
    view.post(
        _ENDINGS[state],
        application.id,
        label_ids=label_ids,
        locked=negative(application.locked_now),
        used=negative(application.used_now),
        holders=-1 if holding else 0,
        tags=application.tags,
        detail=None if reason is None else {"reason": reason},
    )
    ended = replace(
        application,
        state=state,
        finished_at=view.now,
        deadline=None,
        reason=reason,
        waits_on=(),
        engine=None,
    )
    view.put_application(ended)
    view.freed(label_ids or application.waits_on)
    engine = view.engines.get(application.engine) if application.engine else None
    if engine is not None and engine.application_id == application.id:
        view.put_engine(replace(engine, removed=True))
    return ended


def lapsed(view: View, application: Application) -> bool:
    return application.deadline is not None and view.now >= application.deadline


def unknown(application_id: str) -> Refused:
    return Refused(Code.UNKNOWN_APPLICATION, f"no application {application_id}")


def insufficient(shortfalls: list[Shortfall]) -> Refused:
    """The refusal that names every label and dimension that is short."""
    short = shortfalls[0]
    label = ",".join(f"{key}={value}" for key, value in short.label.items())
    label = label.replace("@placement=", "nodes matching ")
    detail = f"{label}: {short.dimension} {short.requested} asked for, {short.left} left"
    if short.reason != "short":
        detail = f"{label}: {short.reason}"
    if len(shortfalls) > 1:
        detail += f" (and {len(shortfalls) - 1} more)"
    closed = {"draining", "lost"}.issuperset(found.reason for found in shortfalls)
    code = Code.NODE_NOT_SCHEDULABLE if closed else Code.INSUFFICIENT_RESOURCES
    return Refused(code, detail, shortfalls=tuple(shortfalls))


def _node_lost(view: View, application: Application) -> bool:
    return any(account.balance.closed == "lost" for account in view.accounts_of(application.label_ids))


def _archive(view: View, application: Application) -> None:
    """Keep what the row will no longer say: an amount before its adjustment, a life before a loss."""
    used, since = application.used, application.since
    if application.state is State.USED and used is not None:
        stretches = [(State.USED, since, view.now, used)]
    elif application.state is State.LOST and application.finished_at is not None:
        locked_at, end_at = application.locked_at or since, application.finished_at
        if used is None or application.used_at is None:
            stretches = [(State.LOCKED, locked_at, end_at, application.requested)]
        else:
            stretches = [
                (State.LOCKED, locked_at, application.used_at, application.requested),
                (State.USED, since, end_at, used),
            ]
    else:
        return
    view.intervals += [Interval(application.id, *stretch) for stretch in stretches if stretch[1] < stretch[2]]


def _actual(application: Application, reported: Amounts | None) -> Amounts:
    """The reported amount; a dimension that it does not name keeps its own."""
    return application.resource if reported is None else {**application.resource, **reported}
