"""Granting: what was asked for is charged on every label, as a lock with a lease or, for a client, as use."""

from dataclasses import replace

from rm_service.domain import answers, members
from rm_service.domain.application import SECOND, Application, Instant, State
from rm_service.domain.events import Kind
from rm_service.domain.placing import Finding
from rm_service.domain.view import View


def grant_waiting(view: View, waiting: Application, found: Finding) -> None:
    """Charge what waits, where room was found. Raises AmountOverflowError, and then nothing is changed."""
    granted = replace(
        waiting,
        state=State.LOCKED,
        tags=found.tags,
        label_ids=found.label_ids,
        devices=found.devices,
        locked_at=view.now,
        since=view.now,
        deadline=view.now + waiting.lock_seconds * SECOND,
        reason=None,
        waits_on=(),
        alternatives=(),
    )
    if waiting.client is None:
        lock(view, granted)
    else:
        allocate(view, in_use(view, granted), State.WAITING)


def lock(view: View, granted: Application) -> None:
    """Charge a lock on all of its labels. Raises AmountOverflowError."""
    view.post(
        Kind.APPLICATION_LOCKED,
        granted.id,
        label_ids=granted.label_ids,
        locked=granted.locked_now,
        holders=1,
        tags=granted.tags,
    )
    view.put_application(granted)


def in_use(view: View, granted: Application) -> Application:
    """A client's application as it is once granted: in use at once, for as long as it may run."""
    standing = granted.standing
    if standing is not None and standing.reserved is not None:
        standing = replace(standing, reserved=None)
    return replace(
        granted,
        standing=standing,
        state=State.USED,
        used=granted.requested,
        used_at=view.now,
        deadline=_ends(view, granted),
    )


def _ends(view: View, granted: Application) -> Instant | None:
    standing = granted.standing
    if standing is None:
        return None
    if granted.has_members:  # its members may have brought it into any phase while it waited
        return members.ends(view, standing)
    return view.now + standing.run_for if standing.run_for > 0 else None


def allocate(view: View, allocated: Application, was: State | None) -> None:
    """Charge a client's application as used, and tell the client. Raises AmountOverflowError.

    `was`: its state before, None when it is new.
    """
    answer = answers.new(allocated, allocated.resource) if allocated.is_told_of else None
    view.post(
        Kind.APPLICATION_USED,
        allocated.id,
        label_ids=allocated.label_ids,
        used=allocated.used_now,
        holders=1,
        tags=allocated.tags,
        client=allocated.client,
        answer=answer,
    )
    view.put_application(allocated)
    members.moved(view, was, allocated)
    if allocated.has_members and allocated.standing is not None and allocated.standing.waiting:
        view.wake(view.accounts_of((view.lookup.gate_of(allocated.id),))[0])
