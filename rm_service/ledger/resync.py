"""A client that registered anew reports what it has; what it does not report in time is given up here."""

from sqlalchemy import Connection, select

from rm_service.domain import operations as op
from rm_service.domain.clients import Client
from rm_service.domain.outcomes import Done, Outcome
from rm_service.ledger import tables
from rm_service.ledger.ledger import Ledger

CHUNK = 500
"""How much is given up in one batch."""


def give_up_unreported(ledger: Ledger, client: Client) -> int:
    """End what this registration of a client has not reported; how much that was.

    Any number of replicas may do it at once: each application and node is judged again on its settled row.
    """
    given_up = _give_up(ledger, client)
    ledger.submit_whole(op.SettleClient(client=client))
    return given_up


def _give_up(ledger: Ledger, client: Client) -> int:
    given_up = 0
    before: list[op.DecidedOperation] = []
    while True:
        with ledger.readers.connect() as connection:
            operations = _unreported(connection, client)
        if not operations or operations == before:
            return given_up
        given_up += _count(ledger.submit(operations))
        before = operations  # what was reported meanwhile is not named again, what is left is


def _unreported(connection: Connection, client: Client) -> list[op.DecidedOperation]:
    """Nodes with what runs there first, then applications, members before those that they belong to."""
    node, application = tables.node.c, tables.application.c
    nodes = connection.execute(
        select(node.instance, node.partition)
        .where(node.client == client.id, ~node.removed, node.registration < client.registration)
        .limit(CHUNK)
    )
    operations: list[op.DecidedOperation] = [
        op.DecommissionNode(
            client=client, instance=row.instance, partition=row.partition, only_unreported=True
        )
        for row in nodes
    ]
    if operations:
        return operations
    registration = application.standing["registration"].as_integer()
    ids = connection.execute(
        select(application.id)
        .where(
            application.client == client.id,
            application.finished_at.is_(None),
            registration < client.registration,
        )
        .order_by(application.parent.is_(None), application.id)
        .limit(CHUNK)
    ).scalars()
    return [op.ForgetApplication(client=client, id=application_id) for application_id in ids]


def _count(outcomes: list[Outcome]) -> int:
    return sum(isinstance(outcome, Done) and not outcome.repeated for outcome in outcomes)
