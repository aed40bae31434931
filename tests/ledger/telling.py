"""What clients were told, and whether the books of their applications balance, read from the database."""

from collections import Counter
from typing import Any

from sqlalchemy import select, update

from rm_service.domain import operations as op
from rm_service.domain.application import HOLDING, SECOND, State
from rm_service.domain.clients import Client
from rm_service.domain.outcomes import Done, Outcome
from rm_service.ledger import tables
from rm_service.ledger.audit import audit
from rm_service.ledger.ids import new_id
from rm_service.ledger.ledger import Ledger
from tests.client_words import RM, running

SOON = 10.0
"""Seconds within which the writer must have answered."""
ROUNDS = 100
"""Wakes that cause wakes come to an end long before."""


def say(ledger: Ledger, *operations: op.DecidedOperation, atomic: bool = False) -> list[Outcome]:
    """The outcomes of one batch, once all that it woke was looked at."""
    outcomes = ledger.enqueue(operations, atomic=atomic).result(SOON)
    settle(ledger)
    return outcomes


def settle(ledger: Ledger) -> None:
    """Wait until no queue is left to be looked at."""
    for _ in range(ROUNDS):
        ledger.enqueue([op.Renew(new_id())]).result(SOON)
        with ledger.readers.connect() as connection:
            if (
                connection.execute(select(tables.balance.c.label_id).where(tables.balance.c.wake)).first()
                is None
            ):
                return
    raise AssertionError("queues are woken for ever")


def told(ledger: Ledger, client: Client = RM) -> list[dict[str, Any]]:
    """Every answer to a client so far, in order."""
    event = tables.event.c
    query = (
        select(event.answer).where(event.client == client.id, event.answer.is_not(None)).order_by(event.seq)
    )
    with ledger.readers.connect() as connection:
        return [dict(answer) for answer in connection.execute(query).scalars()]


def rows(ledger: Ledger, client: Client = RM) -> list[Any]:
    """The live applications of a client, asks and allocations among them, oldest first."""
    application = tables.application.c
    query = (
        select(tables.application)
        .where(application.client == client.id, application.finished_at.is_(None))
        .order_by(application.created_at, application.id)
    )
    with ledger.readers.connect() as connection:
        return list(connection.execute(query))


def states(ledger: Ledger, key: str, client: Client = RM) -> list[State]:
    return [State(row.state) for row in rows(ledger, client) if row.request.get("key") == key]


def standing(ledger: Ledger, app: str = "app-1", client: Client = RM) -> dict[str, Any]:
    (row,) = [row for row in rows(ledger, client) if row.parent is None and row.tags.get("app") == app]
    return dict(row.standing)


def register(ledger: Ledger, rm_id: str = "rm-1", resync_seconds: int = 60, **more: Any) -> Client:
    outcome = ledger.submit_whole(op.RegisterClient(id=rm_id, resync_seconds=resync_seconds, **more))
    assert isinstance(outcome, Done), outcome
    assert outcome.registration is not None
    return Client(rm_id, outcome.registration)


def pass_time(ledger: Ledger, seconds: int) -> None:
    """As if so much time had passed: everything that is due some day is due so much earlier."""
    past = seconds * SECOND
    with ledger.readers.begin() as connection:
        for column in (tables.application.c.deadline, tables.si_client.c.resync_until):
            earlier = update(column.table).where(column.is_not(None))
            connection.execute(earlier.values({column.name: column - past}))
        connection.execute(update(tables.ledger_head).values(time=tables.ledger_head.c.time - past))


def check_books(ledger: Ledger, *clients: Client) -> None:
    """The audit finds nothing, applications know their members, and clients what runs."""
    report = audit(ledger.readers)
    assert report.consistent, report.differences
    for client in clients or (RM,):
        live = rows(ledger, client)
        members = Counter((row.parent, State(row.state) in HOLDING) for row in live if row.parent is not None)
        parents = {row.id for row in live if (row.standing or {}).get("phase") is not None}
        assert {parent for parent, _ in members} <= parents, "members without an application"
        for row in live:
            if row.id in parents:
                found = (row.standing["waiting"], row.standing["holding"])
                assert found == (members[row.id, False], members[row.id, True]), row.name
        known = running(told(ledger, client))
        for row in live:
            if row.id not in parents and State(row.state) in HOLDING:
                told_as = (row.standing or {}).get("uuid") or row.request.get("uuid") or row.id
                assert known[told_as]["node"] == row.tags["node"]
