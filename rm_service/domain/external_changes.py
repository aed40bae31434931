"""What changes on external labels when an application holds something else: what is seen of it, what is left.

What was in use here and not shown yet may go on in the other manager for a while after it was given back. It
counts as others' use does until there is a look that began later.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from rm_service.domain.accounts import Account, Observation
from rm_service.domain.amounts import NOTHING, Amounts, least, minus, negative, plus
from rm_service.domain.application import HOLDING, SECOND, Application, External, Instant, State

if TYPE_CHECKING:
    from rm_service.domain.view import View

SLACK = SECOND
"""Two tell of the same look at slightly different times; what is older than this is another, earlier look."""
GONE_AFTER = 60 * SECOND
"""After so long what has ended is taken for gone, even if nobody has been able to look."""
MOST_ENDED = 16
"""So many seconds are kept apart; of more the oldest count as one, with the later time."""


def follow(view: "View", before: Application | None, after: Application) -> None:
    """Keep count of what is shown of an application, and of what it leaves behind when it ends."""
    if after.external is not None:
        _see(view, before, after)
    if before is not None and before.state in HOLDING and after.state not in HOLDING:
        places = [each for each in view.accounts_of(before.label_ids) if each.balance.observation is not None]
        left = left_behind(before) if places else NOTHING
        for account in places if left else ():
            _leave(view, account, account.charge(left))


def left_behind(application: Application) -> Amounts:
    """What an application had in use that was not shown.

    A lock that was never used has started nothing, as far as anybody has said or seen.
    """
    external = application.external or External()
    if application.state is State.LOCKED and application.external is None:
        return NOTHING
    held = application.locked_now or application.used_now
    unseen = minus(held, least(held, external.shown))
    return {name: amount for name, amount in unseen.items() if amount > 0}


def outlasting(observation: Observation, now: Instant, look: Instant | None) -> Observation:
    """The observation without what has ended long ago, or before the look that began at `look`."""
    since = now - GONE_AFTER if look is None else max(now - GONE_AFTER, look - SLACK)
    kept = [each for each in observation.ended if each[0] > since]
    return observation if len(kept) == len(observation.ended) else replace(observation, ended=kept)


def pass_time(view: "View", account: Account) -> None:
    """Take what has ended long ago for gone."""
    observation = account.balance.observation
    if observation is not None and observation.ended:
        kept = outlasting(observation, view.now, None)
        if kept is not observation:
            _put(view, account, kept)


def _see(view: "View", before: Application | None, after: Application) -> None:
    more = minus(after.seen_now, NOTHING if before is None else before.seen_now)
    if any(more.values()):
        label_ids = after.label_ids
        _count_seen(view, label_ids, more)
        view.undo_by(lambda: _count_seen(view, label_ids, negative(more)))


def _count_seen(view: "View", label_ids: tuple[int, ...], more: Amounts) -> None:
    for account in view.accounts_of(label_ids):
        if account.label.is_external:
            seen = account.balance.seen
            for name, amount in account.charge(more).items():
                seen[name] = seen.get(name, 0) + amount
            view.changed_accounts.add(account.label.id)


def _leave(view: "View", account: Account, amounts: Amounts) -> None:
    observation = account.balance.observation
    if observation is None or not amounts:
        return
    at = (view.now // SECOND + 1) * SECOND
    ended = [each for each in outlasting(observation, view.now, None).ended if each[0] < at]
    same_second = [each[1] for each in observation.ended if each[0] >= at]
    ended.append((at, plus(same_second[0], amounts) if same_second else amounts))
    if len(ended) > MOST_ENDED:
        (_, oldest), (later, second), *rest = ended
        ended = [(later, plus(oldest, second)), *rest]
    _put(view, account, replace(observation, ended=ended))


def _put(view: "View", account: Account, observation: Observation) -> None:
    balance = account.balance
    view.set_observation(account, (balance.total, balance.protected, balance.closed), observation)
