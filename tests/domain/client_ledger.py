"""A ledger without a database as a resource manager sees it."""

from collections.abc import Mapping
from typing import Any

from rm_service.domain import operations as op
from rm_service.domain.application import HOLDING, LIVE, Application, Instant, State
from rm_service.domain.clients import Client, Phase
from tests.client_words import RM, application_name
from tests.domain.pure_ledger import PureLedger, application_of


class ClientLedger(PureLedger):
    """With what its clients were told."""

    def told(self, client: Client = RM) -> list[Mapping[str, Any]]:
        """Every answer to a client so far, in order."""
        return [
            event.answer for event in self.events if event.client == client.id and event.answer is not None
        ]

    def told_by(self, *operations: op.DecidedOperation, client: Client = RM) -> list[Mapping[str, Any]]:
        """What these operations, one batch, make the client hear, with what they woke."""
        before = len(self.told(client))
        self.in_one_batch(operations)
        return self.told(client)[before:]

    def of(self, operation: op.DecidedOperation) -> Application:
        """The application that this operation brings, as it stands once all queues were looked at."""
        return self.application(application_of(self.do(operation)).id)

    def parent(self, app: str = "app-1", client: Client = RM) -> Application:
        """The live application of this name, else the last one that was."""
        named = [
            each
            for each in self.view.applications.values()
            if each.name == application_name(app, client) and each.has_members
        ]
        return next((each for each in named if each.state in LIVE), named[-1])

    def states(self, key: str, app: str = "app-1") -> list[State]:
        """The states of the live allocations and asks of one key, oldest first."""
        named = self.view.named(f"{application_name(app)}/{key}")
        return [each.state for each in named]

    def sweep(self) -> None:
        """End what is past its deadline, round after round, as the sweeper does."""
        while due := [each.id for each in self.view.applications.values() if is_due(each, self.now)]:
            for application_id in due:
                self.do(op.Reclaim(application_id))


def is_due(application: Application, now: Instant) -> bool:
    return application.state in LIVE and application.deadline is not None and application.deadline <= now


def check_members(ledger: PureLedger) -> None:
    """Every application with members knows how many wait and hold, and is in a phase that fits."""
    applications = ledger.view.applications.values()
    for parent in applications:
        standing = parent.standing
        if standing is None or standing.phase is None or parent.state not in LIVE:
            continue
        members = [each for each in applications if each.parent == parent.id]
        waiting = sum(each.state is State.WAITING for each in members)
        holding = sum(each.state in HOLDING for each in members)
        assert (standing.waiting, standing.holding) == (waiting, holding), parent.name
        anything = bool(waiting or holding)
        if standing.phase in {Phase.NEW, Phase.COMPLETING}:
            assert not anything, f"{parent.name} is {standing.phase} with members"
        if standing.phase in {Phase.ACCEPTED, Phase.RUNNING}:
            assert anything, f"{parent.name} is {standing.phase} without members"
        if standing.phase in {Phase.COMPLETING, Phase.FAILING} and parent.state in HOLDING:
            assert parent.deadline is not None, f"{parent.name} would be {standing.phase} for ever"
        assert standing.phase not in {Phase.COMPLETED, Phase.FAILED}
    for member in applications:
        if member.parent is not None and member.state in LIVE:
            assert ledger.view.applications[member.parent].state in LIVE, "a member outlives its application"


def check_balances(ledger: PureLedger) -> None:
    """Every balance is the sum of what is held."""
    for label_id, account in ledger.view.accounts.items():
        held = [each for each in ledger.holding() if label_id in each.label_ids]
        for found, amounts in (
            (account.balance.locked, [account.charge(each.locked_now) for each in held]),
            (account.balance.used, [account.charge(each.used_now) for each in held]),
        ):
            sums: dict[str, int] = {}
            for amount in amounts:
                for name, value in amount.items():
                    sums[name] = sums.get(name, 0) + value
            assert {name: value for name, value in found.items() if value} == {
                name: value for name, value in sums.items() if value
            }
        assert account.balance.applications == len(held)
