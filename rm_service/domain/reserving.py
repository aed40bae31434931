"""Reserving: a node is kept for a client's ask that has waited so long that nobody may pass it any more.

Its ask stands in the node's own queue: whoever comes later waits behind it there, and goes on elsewhere.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from rm_service.domain.accounts import Account
from rm_service.domain.amounts import NOTHING, Amounts
from rm_service.domain.application import Application
from rm_service.domain.events import Kind
from rm_service.domain.placing import read_placement
from rm_service.domain.view import View

LOOKED_AT = 64
"""How many nodes, the emptiest first, are looked at to find one that is large enough."""


def reserve(view: View, application: Application) -> bool:
    """Keep a node for this ask. True if one is kept for it, so that nobody else need wait for it."""
    standing = application.standing
    if application.client is None or application.placement is None or standing is None:
        return False
    if application.placement.get("classes"):
        return False  # what of a node's devices would come free together cannot be told
    if standing.reserved is not None and standing.reserved in application.waits_on:
        kept = view.accounts[standing.reserved]
        if kept.total is not None and kept.balance.closed is None:
            return True
        application = replace(
            application, waits_on=tuple(each for each in application.waits_on if each != standing.reserved)
        )
    if not all(account.label.is_pool for account in view.accounts_of(application.waits_on)):
        return False  # it lacks more than a node
    account = _large_enough(view, application)
    if account is None:
        return False
    node = account.label.tags["node"]
    view.post(Kind.APPLICATION_RESERVED, application.id, tags=application.tags, detail={"node": node})
    reserved = replace(
        application,
        standing=replace(standing, reserved=account.label.id),
        waits_on=(*application.waits_on, account.label.id),
        reason=f"node {node} is reserved for it: {application.reason}",
    )
    view.put_application(reserved)
    return True


def still_reserved(view: View, application: Application, blocked: Sequence[int]) -> int | None:
    """The node that is kept for an ask which is short on `blocked`, if that is all that it lacks."""
    reserved = None if application.standing is None else application.standing.reserved
    others = view.accounts_of(tuple([each for each in blocked if each != reserved]))
    return reserved if all(account.label.is_pool for account in others) else None


def _large_enough(view: View, application: Application) -> Account | None:
    """The emptiest node on which it would fit if the node were empty, and that is kept for nobody yet."""
    placement = read_placement(application.placement or {})
    nodes = view.lookup.nodes_for(replace(placement, strategy="fair"), NOTHING)
    for node in islice(nodes, LOOKED_AT):
        tags = {**application.tags, "node": node.instance}
        for account in view.accounts_of(view.lookup.labels_of(tags)):
            is_free = account.is_capacity and account.balance.first_priority is None
            if (
                is_free
                and account.label.tags.get("node") == node.instance
                and _fits(account, application.requested)
            ):
                return account
    return None


def _fits(account: Account, requested: Amounts) -> bool:
    total, protected = account.total or NOTHING, account.protected
    return all(
        total.get(dimension, 0) - protected.get(dimension, 0) >= amount
        for dimension, amount in account.charge(requested).items()
        if amount > 0
    )
