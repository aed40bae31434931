"""External capacity: what another manager says of a place, and what is left of it to promise.

What fits = total - protected - observed - what our applications were promised and the manager does not show
yet. The last is locked + used - seen, where `seen` is what it shows of them, at most what each was promised:
an application that it does not show, or whose part of its list nobody can tell, counts whole. What has ended
here since the look and was not shown counts as if it were observed.
"""

from collections.abc import Mapping
from dataclasses import replace

from rm_service.domain import operations as op
from rm_service.domain.accounts import Account, Observation
from rm_service.domain.amounts import Amounts
from rm_service.domain.application import HOLDING, SECOND, Application, External, Instant
from rm_service.domain.events import Kind
from rm_service.domain.external_changes import SLACK, outlasting
from rm_service.domain.outcomes import Done, Outcome
from rm_service.domain.view import View

Room = tuple[Amounts | None, Amounts | None, str | None]


def observe(view: View, operation: op.Observe) -> Outcome:
    """Take over what was seen of a place, and what of it is shown as our applications'."""
    account = _account_of(view, operation)
    if account is None:
        return Done(repeated=True)  # no rule charges it any more
    before = account.balance.observation
    at = view.now - operation.age
    if before is not None and _says_nothing(account, before, operation, at):
        return Done(repeated=True)
    for application_id, shown in (operation.shown or {}).items():
        _show(view, account, view.applications.get(application_id), shown)
    observation = _observation(view, operation, before, at)
    room = (operation.total, operation.protected, operation.closed)
    changed = _changed(account, before, room, observation)
    view.set_observation(account, room, observation)
    if changed:
        view.post(
            Kind.EXTERNAL_OBSERVED,
            operation.provider,
            label_ids=(account.label.id,),
            detail={
                "total": operation.total,
                "protected": operation.protected,
                "closed": operation.closed,
                "observed": operation.observed,
            },
        )
    view.freed((account.label.id,))
    return Done()


def bring_along(view: View, operation: op.Observe) -> Outcome:
    """As `observe`, for those who ask in the same batch.

    Where nothing is known of a place, and nothing was, that is kept in mind only: anybody can name any number
    of such places. `settle` writes it down where somebody holds something now, or waits.
    """
    account = _account_of(view, operation)
    if account is None or operation.total is not None or not _is_unheard_of(account):
        return observe(view, operation)
    at = view.now - operation.age
    account.register(None, operation.protected, operation.closed)
    account.balance.observation = _observation(view, operation, None, at)
    view.brought[account.label.id] = operation
    return Done(repeated=True)


def settle(view: View) -> None:
    """At the end of a batch: what was kept in mind of places that are used now is taken over."""
    if not view.brought:
        return
    used: set[int] = set()
    for application_id in (*view.created, *view.changed):
        application = view.applications[application_id]
        used.update(application.label_ids, application.waits_on)
    for label_id in used & view.brought.keys():
        account = view.accounts[label_id]
        account.register(None, None, None)
        account.balance.observation = None
        observe(view, view.brought[label_id])
    view.brought.clear()


def shown_within(shown: Mapping[str, Amounts], listed: Amounts, observed: Amounts) -> Mapping[str, Amounts]:
    """What a list has of our applications, less what of it has ended before the use was read.

    `listed` is the sum of the list, others included. What it has more than was then in use may have been
    ours, and is not taken for shown. By ids; all amounts are those of one place.
    """
    excess = {name: amount - observed.get(name, 0) for name, amount in listed.items()}
    found: dict[str, Amounts] = {}
    for application_id, amounts in shown.items():
        kept = dict(amounts)
        for name, amount in amounts.items():
            kept[name] = amount - min(amount, max(0, excess.get(name, 0)))
            excess[name] = excess.get(name, 0) - (amount - kept[name])
        found[application_id] = kept
    return found


def _is_unheard_of(account: Account) -> bool:
    """Whether it was never observed, and nobody holds anything there or waits."""
    balance = account.balance
    return balance.observation is None and not balance.applications and balance.first_priority is None


def _says_nothing(account: Account, before: Observation, operation: op.Observe, at: Instant) -> bool:
    """Whether what is known of a place already is better."""
    if not operation.looked:
        return (before.provider, before.manager) == (operation.provider, operation.manager)
    if operation.shown is None and account.balance.applications:
        return True  # new use beside an old list would make room; both of them are about to be told
    earlier = before.looked and at < before.at - SLACK
    return earlier and before.provider == operation.provider  # another replica has looked since


def _observation(view: View, operation: op.Observe, before: Observation | None, at: Instant) -> Observation:
    stale_at = None if operation.stale_seconds is None else at + operation.stale_seconds * SECOND
    observation = Observation(
        operation.provider,
        at,
        operation.observed,
        stale_at,
        operation.ignored_when_stale,
        operation.looked,
        operation.manager,
        () if before is None else before.ended,
    )
    return outlasting(observation, view.now, None if operation.total is None else at)


def _changed(account: Account, before: Observation | None, room: Room, after: Observation) -> bool:
    if before is None or (before.observed, before.provider) != (after.observed, after.provider):
        return True
    balance = account.balance
    return room != (balance.total, balance.protected, balance.closed)


def _account_of(view: View, operation: op.Observe) -> Account | None:
    for account in view.accounts_of(view.lookup.labels_of(operation.tags)):
        if account.label.is_external and account.label.tags == operation.tags:
            return account
    return None


def _show(view: View, account: Account, application: Application | None, shown: Amounts) -> None:
    """Note what the manager's list has of one application; what has ended meanwhile holds nothing here."""
    if application is None or application.state not in HOLDING:
        return
    if account.label.id not in application.label_ids:
        return
    external = application.external or External()
    counted = account.charge(shown)
    kept = {name: amount for name, amount in external.shown.items() if not account.charge({name: amount})}
    if {**kept, **counted} != dict(external.shown):
        view.put_application(replace(application, external=replace(external, shown={**kept, **counted})))
        # What is shown of it may leave more in the places around this one.
        around = view.accounts_of(application.label_ids)
        view.freed(tuple([each.label.id for each in around if each.label.is_external]))
