"""Short forms of what the tests ask of a ledger."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from rm_service.domain import operations as op
from rm_service.domain.application import Application
from rm_service.domain.outcomes import Done
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.paging import Page

GIB = 2**30


def asking(tags: Mapping[str, str], resource: Mapping[str, int], **more: Any) -> op.Apply:
    """An apply with an id of its own."""
    return op.Apply(
        id=more.pop("id", None) or str(uuid.uuid4()),
        tags=tags,
        resource=resource,
        request={"resource": dict(resource), "tags": dict(tags)},
        **more,
    )


def apply(ledger: Ledger, tags: Mapping[str, str], resource: Mapping[str, int], **more: Any) -> Application:
    """Apply, and insist on being granted or parked."""
    return application(ledger, asking(tags, resource, **more))


def application(ledger: Ledger, operation: op.DecidedOperation) -> Application:
    """Submit one operation, and insist that it is done; the application that comes with it."""
    outcome = ledger.submit([operation])[0]
    assert isinstance(outcome, Done), outcome
    assert outcome.application is not None
    return outcome.application


def done(ledger: Ledger, *operations: op.DecidedOperation) -> list[Done]:
    """Submit operations, and insist that all are done."""
    outcomes = ledger.submit(operations)
    assert all(isinstance(outcome, Done) for outcome in outcomes), outcomes
    return [outcome for outcome in outcomes if isinstance(outcome, Done)]


def node(ledger: Ledger, instance: str, total: Mapping[str, int], **more: Any) -> None:
    """Register a node."""
    done(ledger, op.RegisterNode(instance, "LoadInstance", total, **more))


def limit(ledger: Ledger, tags: Mapping[str, str], total: Mapping[str, int], **more: Any) -> int:
    """Set a limit; its id."""
    outcome = ledger.submit_whole(op.SetLimit(tags, total, **more))
    assert isinstance(outcome, Done), outcome
    assert outcome.limit_id is not None
    return outcome.limit_id


def reading(ledger: Ledger, question: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """The answer to a question that takes a connection first."""
    with ledger.readers.connect() as connection:
        return question(connection, *args, **more)


def page_through(read: Callable[[str | None], Page[Any]]) -> list[Any]:
    """All items of a list, reading on from cursor to cursor."""
    page = read(None)
    items = list(page.items)
    while page.next_cursor is not None:
        page = read(page.next_cursor)
        items += page.items
    return items
