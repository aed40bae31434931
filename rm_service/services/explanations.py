"""Explaining an application before it is made: would it fit, where, and if not who is in its way."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rm_service.domain.accounts import Shortfall
from rm_service.domain.amounts import Amounts
from rm_service.domain.application import Application
from rm_service.domain.label_rules import Kind, LabelRules
from rm_service.domain.operations import Apply, Observe
from rm_service.domain.outcomes import Refused
from rm_service.domain.tags import Tags
from rm_service.ledger.ids import new_id
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.holders import Holder, largest_holders
from rm_service.ledger.queries.labels import read_label
from rm_service.ledger.queries.waiters import waiters_ahead

HOLDERS = 5
"""How many holders are named for each shortfall."""


@dataclass(frozen=True, slots=True)
class InTheWay:
    """The largest holders of a label in a dimension in which it is short."""

    label: Tags
    dimension: str
    holders: Sequence[Holder]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What an apply would be answered just now. One of `granted` and `refused` is there."""

    granted: Application | None
    refused: Refused | None
    labels: tuple[Tags, ...] = ()
    """What it would be charged to, as far as that is known without a node."""
    waiters_ahead: int = 0
    """How many would stand before it if it waited."""
    in_the_way: tuple[InTheWay, ...] = ()
    warnings: tuple[str, ...] = ()
    """What is granted to anybody, because no place is charged with it."""


def explain(ledger: Ledger, operation: Apply, looks: Sequence[Observe] = ()) -> Explanation:
    """What the operation would be answered just now; nothing is changed, and its id is not looked at.

    `looks`: what is known of external places where it asks, and the ledger was not told yet.
    """
    outcome = ledger.explain(replace(operation, id=new_id(), id_is_new=True, wait_seconds=0), looks)
    book = ledger.book()
    granted = None if isinstance(outcome, Refused) else outcome.application
    tags = operation.tags if granted is None else granted.tags
    labels = tuple(label.tags for label in book.rules.labels_for(tags))
    warnings = uncharged(book.rules, tags, operation.resource)
    if not isinstance(outcome, Refused):
        return Explanation(granted, None, labels, warnings=warnings)
    with ledger.readers.connect() as connection:
        ahead = waiters_ahead(
            connection, [shortfall.label for shortfall in outcome.shortfalls], operation.priority
        )
        in_the_way = []
        for shortfall in outcome.shortfalls:
            account = read_label(connection, book, shortfall.label) if _is_full(shortfall) else None
            if account is not None:
                holders = largest_holders(
                    connection, book.rules, account.label, shortfall.dimension, limit=HOLDERS
                )
                in_the_way.append(InTheWay(shortfall.label, shortfall.dimension, holders))
    return Explanation(None, outcome, labels, ahead, tuple(in_the_way), warnings)


def uncharged(rules: LabelRules, tags: Tags, resource: Amounts) -> tuple[str, ...]:
    """A sentence for each external rule that counts what is asked for, where no capacity is charged with it:
    mostly a key is missing, or mistyped.
    """
    capacities = [label.rule for label in rules.labels_for(tags) if label.rule.kind is Kind.CAPACITY]
    charged = {name for rule in capacities for name in rule.charge(resource)}
    found = []
    for rule in rules.external:
        free = [name for name, amount in rule.charge(resource).items() if amount and name not in charged]
        missing = sorted(rule.keys - tags.keys())
        if free and missing:
            named = f"{', '.join(free)}: no place is charged with it"
            found.append(f"{named}; the label rule {rule.name} needs the tags {', '.join(missing)}")
    return tuple(found)


def _is_full(shortfall: Shortfall) -> bool:
    return shortfall.reason == "short" and shortfall.locked + shortfall.used > 0
