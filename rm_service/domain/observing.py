"""External capacity: what another manager says of a place, and what is left of it to promise.

What fits = total - protected - observed - what our applications were promised and the manager does not show
yet. The last is locked + used - seen, where `seen` is what it shows of them, at most what each was promised:
an application that it does not show, or whose part of its list nobody can tell, counts whole.
"""

from dataclasses import replace

from rm_service.domain import operations as op
from rm_service.domain.accounts import Account, Observation
from rm_service.domain.amounts import Amounts
from rm_service.domain.application import HOLDING, SECOND, Application, External
from rm_service.domain.events import Kind
from rm_service.domain.outcomes import Done, Outcome
from rm_service.domain.view import View

SLACK = SECOND
"""Two tell of the same look at slightly different times; what is older than this is another, earlier look."""

Room = tuple[Amounts | None, Amounts | None, str | None]


def observe(view: View, operation: op.Observe) -> Outcome:
    """Take over what was seen of a place, and what of it is shown as our applications'."""
    account = _account_of(view, operation)
    if account is None:
        return Done(repeated=True)  # no rule charges it any more
    before = account.balance.observation
    at = view.now - operation.age
    if before is not None and before.provider == operation.provider and at < before.at - SLACK:
        return Done(repeated=True)  # another replica has looked since
    stale_at = None if operation.stale_seconds is None else at + operation.stale_seconds * SECOND
    observation = Observation(
        operation.provider, at, operation.observed, stale_at, operation.ignored_when_stale
    )
    for application_id, shown in operation.shown.items():
        _show(view, account, view.applications.get(application_id), shown)
    balance = account.balance
    room = (operation.total, operation.protected, operation.closed)
    if before is None or (before.observed, before.provider) != (observation.observed, observation.provider):
        changed = True
    else:
        changed = room != (balance.total, balance.protected, balance.closed)
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
