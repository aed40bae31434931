"""What becomes of a lock: used, renewed, released, reclaimed, lost. Each transition happens once."""

from dataclasses import replace

from rm_service.domain import answers, members
from rm_service.domain import operations as op
from rm_service.domain.accounts import GATE_KEY, POOL_KEY, Shortfall
from rm_service.domain.amounts import Amounts, minus, negative, same, without_zeros
from rm_service.domain.application import HOLDING, LIVE, SECOND, Application, External, Standing, State
from rm_service.domain.clients import Phase, Termination
from rm_service.domain.device_changes import given_twice
from rm_service.domain.device_registration import under_present_signatures
from rm_service.domain.events import Kind
from rm_service.domain.judging import ARRIVAL, judge
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.domain.view import SLOT, Interval, View

EXECUTION_TIMEOUT = "the execution time is over"
BELONGS_TO_CLIENT = "it belongs to a resource manager"
CLIENT_AWAY = "client_away"
"""The reason of what waits until its resource manager is there again."""

_ENDINGS = {
    State.RELEASED: Kind.APPLICATION_RELEASED,
    State.EXPIRED: Kind.APPLICATION_EXPIRED,
    State.RECLAIMED: Kind.APPLICATION_RECLAIMED,
    State.PREEMPTED: Kind.APPLICATION_PREEMPTED,
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
    if refusal is None and application.client is not None and operation.resource:
        refusal = Refused(Code.NO_LOCK, BELONGS_TO_CLIENT, state=application.state)
    if refusal is not None:
        return refusal
    application = named_outside(application, operation.external_ids)
    actual = _actual(application, operation.resource)
    if application is not view.applications[operation.id] and application.state is State.USED:
        view.put_application(application)
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


def named_outside(application: Application, ids: tuple[str, ...]) -> Application:
    """The application with what it is called outside; what it was called before stays."""
    known = application.external or External()
    new = tuple([each for each in ids if each not in known.ids])
    return replace(application, external=replace(known, ids=known.ids + new)) if new else application


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
    if application.state is State.LOST and application.devices:
        application = under_present_signatures(view, application)
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
        used=minus({**used, **application.device_amounts}, application.used_now),
        holders=0 if application.state in HOLDING else 1,
        tags=application.tags,
    )
    _archive(view, application)
    reported = report or application.over_limit
    over = reported and any(account.over_limit() for account in view.accounts_of(application.label_ids))
    if reported and not over and application.devices:
        over = given_twice(view, application)
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
    members.moved(view, application.state, changed)
    if any(amount < 0 for amount in minus(used, application.resource).values()):
        view.freed(application.label_ids)
        if SLOT in application.resource:
            view.freed_slots(application.label_ids)
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
    return Done(application=end_whole(view, application, State.RELEASED, reason))


def reclaim(view: View, operation: op.Reclaim) -> Outcome:
    """End what is past its deadline; anything else stays as it is, so that asking twice is harmless."""
    application = view.applications.get(operation.id)
    if application is None:
        return unknown(operation.id)
    if application.state not in LIVE or not lapsed(view, application):
        return Done(application=application, repeated=True)
    if application.has_members:
        return Done(application=_close(view, application))
    if application.client is not None and application.state is State.USED:
        return Done(application=_time_over(view, application))
    state, reason = {
        State.WAITING: (State.EXPIRED, waited_in_vain(view, application)),
        State.LOCKED: (State.RECLAIMED, "the lock was not used within its lease"),
        State.USED: (State.EXPIRED, EXECUTION_TIMEOUT),
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
    return Done(application=end_whole(view, application, State.LOST, operation.reason))


def end_whole(
    view: View,
    application: Application,
    state: State,
    reason: str | None,
    *,
    quiet: bool = False,
    asks_quiet: bool = False,
) -> Application:
    """As `end`, with all of its members."""
    ended = end(view, application, state, reason, quiet=quiet)
    if application.has_members:
        for member_id in view.lookup.members_of(application.id):
            member = view.applications[member_id]
            if member.state in LIVE:
                asks = member.state is State.WAITING
                end(view, member, state, reason, quiet=quiet or (asks and asks_quiet))
    return ended


def end(
    view: View,
    application: Application,
    state: State,
    reason: str | None,
    *,
    quiet: bool = False,
    replaced: bool = False,
) -> Application:
    """Bring an application to a final state: it holds nothing more, and its engine is gone from the list.

    A client is told of the end of an ask or an allocation, unless `quiet`: then it knows already.
    `replaced`: another takes its place at once, so that its parent stays in its phase.
    """
    holding = application.state in HOLDING
    label_ids = application.label_ids if holding else ()
    told = application.is_told_of and not quiet
    view.post(
        _ENDINGS[state],
        application.id,
        label_ids=label_ids,
        locked=negative(application.locked_now),
        used=negative(application.used_now),
        holders=-1 if holding else 0,
        tags=application.tags,
        detail=None if reason is None else {"reason": reason},
        client=application.client,
        answer=_farewell(application, state, reason) if told else None,
    )
    ended = replace(
        application,
        state=state,
        finished_at=view.now,
        deadline=None,
        reason=reason,
        waits_on=(),
        alternatives=(),
        engine=None,
    )
    view.put_application(ended)
    members.moved(view, application.state, ended, settled=not replaced)
    view.freed(label_ids or application.waits_on)
    if SLOT in application.resource:
        view.freed_slots(label_ids)
    engine = view.engines.get(application.engine) if application.engine else None
    if engine is not None and engine.application_id == application.id:
        view.put_engine(replace(engine, removed=True))
    return ended


def _farewell(application: Application, state: State, reason: str | None) -> answers.Answer:
    termination = answers.TERMINATIONS[state]
    if application.state is State.WAITING:
        return answers.released_ask(application, termination, reason or "")
    return answers.released(application, termination, reason or "")


def tell_to_end(view: View, application: Application, termination: Termination, message: str) -> Application:
    """Have a client end an allocation; it holds what it holds until that is confirmed, or for a while."""
    standing = replace(application.standing or Standing(), ending=termination.value)
    view.post(
        Kind.APPLICATION_ENDING,
        application.id,
        tags=application.tags,
        detail={"reason": message},
        client=application.client,
        answer=answers.released(application, termination, message),
    )
    ending = replace(application, standing=standing, reason=message, deadline=view.now + view.periods.echo)
    view.put_application(ending)
    return ending


def _time_over(view: View, application: Application) -> Application:
    """An allocation's execution time is over, or its client has not confirmed in time that it ended it."""
    standing = application.standing
    if standing is None or standing.ending is None:
        return tell_to_end(view, application, Termination.TIMEOUT, EXECUTION_TIMEOUT)
    state = State.PREEMPTED if standing.ending == Termination.PREEMPTED_BY_SCHEDULER else State.EXPIRED
    return end(view, application, state, f"{application.reason}; never confirmed", quiet=True)


def _close(view: View, parent: Application) -> Application:
    """An application with members has been without any for a while, or its execution time is over."""
    phase = parent.standing.phase if parent.standing is not None else None
    if phase == Phase.FAILING:
        parent = members.enter(view, parent, Phase.FAILED)
        return end_whole(view, parent, State.EXPIRED, EXECUTION_TIMEOUT, quiet=True)
    if phase == Phase.COMPLETING and not members.overrun(view, parent):
        return end(view, members.enter(view, parent, Phase.COMPLETED), State.RELEASED, None)
    parent = members.enter(view, parent, Phase.FAILING, EXECUTION_TIMEOUT)
    for member_id in view.lookup.members_of(parent.id):
        member = view.applications[member_id]
        if member.state is State.WAITING:
            end(view, member, State.EXPIRED, EXECUTION_TIMEOUT)
        elif member.state in HOLDING:
            tell_to_end(view, member, Termination.TIMEOUT, EXECUTION_TIMEOUT)
    return view.applications[parent.id]


def lapsed(view: View, application: Application) -> bool:
    return application.deadline is not None and view.now >= application.deadline


def unknown(application_id: str) -> Refused:
    return Refused(Code.UNKNOWN_APPLICATION, f"no application {application_id}")


def insufficient(shortfalls: list[Shortfall]) -> Refused:
    """The refusal that names every label and dimension that is short."""
    short = shortfalls[0]
    label = ",".join(f"{key}={value}" for key, value in short.label.items())
    gate = "resource manager " if short.reason == CLIENT_AWAY else "application "
    label = label.replace(f"{POOL_KEY}=", "nodes matching ").replace(f"{GATE_KEY}=", gate)
    detail = f"{label}: {short.dimension} {short.requested} asked for, {short.left} left"
    if short.reason != "short":
        detail = f"{label}: {short.reason}"
    if len(shortfalls) > 1:
        detail += f" (and {len(shortfalls) - 1} more)"
    closed = {"draining", "lost", "not_ready"}.issuperset(found.reason for found in shortfalls)
    code = Code.NODE_NOT_SCHEDULABLE if closed else Code.INSUFFICIENT_RESOURCES
    return Refused(code, detail, shortfalls=tuple(shortfalls))


def waited_in_vain(view: View, application: Application) -> str:
    """Why a wait is over; with the word under which an external place takes nothing, if one does not."""
    for account in view.accounts_of(application.waits_on):
        word = account.closed_at(view.now) if account.label.is_external else None
        if word is not None:
            place = ",".join(f"{key}={value}" for key, value in account.label.tags.items())
            return f"no room within the wait ({place}: {word})"
    return "no room within the wait"


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
