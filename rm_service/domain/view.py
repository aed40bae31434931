"""The view: the rows that a batch works on, in memory, with everything that the batch changes in them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from rm_service.domain import device_changes, external_changes
from rm_service.domain.accounts import Account, Observation
from rm_service.domain.amounts import NOTHING, AmountOverflowError, Amounts, negative
from rm_service.domain.application import LIVE, SECOND, Application, Instant, State
from rm_service.domain.device_attributes import Attributes
from rm_service.domain.events import Event, Kind
from rm_service.domain.lookup import Lookup
from rm_service.domain.operations import Observe
from rm_service.domain.outcomes import Outcome, Refused
from rm_service.domain.registrations import Engine, Node
from rm_service.domain.tags import Tags

LOST = "lost"
"""The word under which a node is closed that is gone."""

SLOT = "apps"
"""The dimension that counts applications: a limit on it is a number of slots."""


def has_slots(account: Account) -> bool:
    """Whether only so many applications may be here at once."""
    return not account.is_capacity and account.total is not None and SLOT in account.total


@dataclass(frozen=True, slots=True)
class Periods:
    """How long the ledger is patient, in microseconds."""

    wait_age: Instant = 600 * SECOND
    """How long the first waiter may be passed by those behind it who fit."""
    echo: Instant = 30 * SECOND
    """How long a client may take to confirm that it has ended something."""
    completing: Instant = 30 * SECOND
    """How long an application without members stays open for new ones."""


DEFAULT_PERIODS = Periods()


@dataclass(frozen=True, slots=True)
class Interval:
    """What an application held for a while before its row said something else."""

    application_id: str
    state: State
    since: Instant
    until: Instant
    amounts: Amounts


class View:
    """Rows by their keys, and the record of what changed.

    Every change of a balance goes through `post`, with the event that stands for it. A group of
    operations that must stand or fall together is bracketed by `begin` and `undo` or `keep`.
    """

    def __init__(  # noqa: PLR0915 - a line a field
        self,
        lookup: Lookup,
        *,
        now: Instant,
        seq: int,
        targets: int = 0,
        periods: Periods = DEFAULT_PERIODS,
    ) -> None:
        self.lookup = lookup
        self.now = now
        self.seq = seq
        self.targets = targets
        """The highest node number ever given."""
        self.periods = periods
        self.accounts: dict[int, Account] = {}
        self.applications: dict[str, Application] = {}
        self.nodes: dict[int, Node] = {}
        self.node_labels: dict[tuple[str, str], int] = {}
        """Partition and instance to the id of the node's label, for every node named that was ever known."""
        self.by_name: dict[str, list[str]] = {}
        """Name to the ids of the applications that a client calls so."""
        self.engines: dict[str, Engine] = {}
        self.heads: dict[int, list[str]] = {}
        """Label id to its first waiters, best rank first, for every wake."""
        self.registrations: Mapping[str, int] = {}
        """How often each client has registered: what it asks for counts under the last time."""
        self.away: frozenset[str] = frozenset()
        """The clients that are not there, and so get nothing new."""
        self.joined_pools: dict[int, Account] = {}
        """Placement pools that somebody joined in this batch."""

        self.events: list[Event] = []
        self.intervals: list[Interval] = []
        self.created: set[str] = set()
        self.changed: dict[str, None] = {}
        self.tags_before: dict[str, Tags] = {}
        """What an application had when the batch began, where its tags are others since."""
        self.changed_accounts: set[int] = set()
        self.changed_nodes: set[int] = set()
        self.changed_rooms: set[int] = set()
        """Labels beside nodes that have another total: external places, the sums of devices."""
        self.brought: dict[int, Observe] = {}
        """What was seen of external places that nobody has used before, by their labels: not written yet."""
        self.changed_claims: set[str] = set()
        """Applications that hold other devices than before."""
        self.signatures: dict[str, Attributes] = {}
        """Signatures of devices that were registered."""
        self.changed_engines: set[str] = set()
        self.requeued: set[str] = set()
        """Applications whose place in queues changed."""
        self.requeued_labels: set[int] = set()
        self.woken: set[int] = set()
        self.stale_ranks: set[int] = set()
        """Labels whose first waiter has left: the next one is to be looked up."""
        self.unsynced: set[int] = set()
        """Labels whose balance moved since the chooser of nodes last looked; it empties this."""
        self.all_or_nothing = False
        """Within a group that stands or falls together: then nobody is parked."""
        self._undo: list[Callable[[], object]] | None = None

    def accounts_of(self, label_ids: tuple[int, ...]) -> list[Account]:
        accounts = self.accounts
        return [accounts[label_id] for label_id in label_ids]

    def begin(self) -> None:
        """Start remembering how to undo what follows."""
        intervals, changed = len(self.intervals), dict(self.changed)
        created, requeued, woken = set(self.created), set(self.requeued), set(self.woken)

        def restore() -> None:
            del self.intervals[intervals:]
            self.changed, self.created, self.requeued, self.woken = changed, created, requeued, woken

        self._undo = [restore]
        self.all_or_nothing = True

    def keep(self) -> None:
        """What was done since `begin` stands."""
        self._undo, self.all_or_nothing = None, False

    def all_or_none(self, change: Callable[[], Outcome]) -> Outcome:
        """Make a change of several steps; if it is refused, or raises, nothing of it took place."""
        if self._undo is not None:
            return change()  # within a group that is undone as a whole
        self.begin()
        try:
            outcome = change()
        except AmountOverflowError:
            self.undo()
            raise
        if isinstance(outcome, Refused):
            self.undo()
        else:
            self.keep()
        return outcome

    def undo_by(self, step: Callable[[], object]) -> None:
        """How to take back what was just done, if it comes to that."""
        if self._undo is not None:
            self._undo.append(step)

    def undo(self) -> None:
        """Take back everything that was done since `begin`."""
        steps, self._undo, self.all_or_nothing = self._undo or [], None, False
        for step in reversed(steps):
            step()

    def post(  # noqa: PLR0913 - each is a part of the event
        self,
        kind: Kind,
        subject: str,
        *,
        label_ids: tuple[int, ...] = (),
        locked: Amounts = NOTHING,
        used: Amounts = NOTHING,
        holders: int = 0,
        tags: Tags | None = None,
        detail: Mapping[str, object] | None = None,
        client: str | None = None,
        answer: Mapping[str, object] | None = None,
    ) -> None:
        """Append an event and book what it stands for on each of its labels, all or nothing.

        Raises AmountOverflowError, and then nothing was booked.
        """
        accounts = self.accounts_of(label_ids)
        for place, account in enumerate(accounts):
            try:
                account.post(locked, used, holders)
            except AmountOverflowError as error:
                error.label = account.label.tags
                for booked in accounts[:place]:
                    booked.post(negative(locked), negative(used), -holders)
                raise
        self.seq += 1
        self.events.append(
            Event(
                self.seq,
                self.now,
                kind,
                subject,
                label_ids,
                locked,
                used,
                holders,
                tags,
                detail,
                None if answer is None else client,
                answer,
            )
        )
        self.changed_accounts.update(label_ids)
        self.unsynced.update(label_ids)
        if self._undo is not None:
            self._undo.append(lambda: self._unpost(accounts, locked, used, holders))

    def _unpost(self, accounts: list[Account], locked: Amounts, used: Amounts, holders: int) -> None:
        for account in accounts:
            account.post(negative(locked), negative(used), -holders)
            self.unsynced.add(account.label.id)
        self.events.pop()
        self.seq -= 1

    def freed(self, label_ids: tuple[int, ...]) -> None:
        """Mark the queues that may move because something was given back on these labels."""
        partitions, everywhere = set(), False
        for account in self.accounts_of(label_ids):
            self.wake(account)
            if account.is_capacity and not account.label.is_external:
                partitions.add(account.label.partition)
            elif account.limits_devices():
                everywhere = True  # who lacks only this waits for a node, and stands in none of its queues
        if partitions or everywhere:
            for pool in (*self.lookup.pools(), *self.joined_pools.values()):
                if everywhere or pool.label.partition in partitions:
                    self.wake(pool)

    def slots_of(self, account: Account) -> Account:
        """The gate at which those stand who wait for a slot on this label."""
        return self.accounts_of((self.lookup.gate_of(f"{SLOT} {account.label.key}"),))[0]

    def freed_slots(self, label_ids: tuple[int, ...]) -> None:
        """Mark the gates that may open because an application ended on these labels."""
        for account in self.accounts_of(label_ids):
            if has_slots(account):
                self.wake(self.slots_of(account))

    def wake(self, account: Account) -> None:
        """Leave a mark that this label's queue is to be looked at, if anybody stands in it."""
        if account.balance.first_priority is not None:
            if self._undo is not None:
                self._undo.append(partial(setattr, account.balance, "wake", account.balance.wake))
            account.balance.wake = True
            self.changed_accounts.add(account.label.id)
            self.woken.add(account.label.id)

    def put_application(self, application: Application) -> None:
        before = self.applications.get(application.id)
        self.applications[application.id] = application
        if application.external is not None or before is not None:
            external_changes.follow(self, before, application)
        if application.devices or (before is not None and before.devices):
            device_changes.follow(self, before, application)
        if before is None:
            self.created.add(application.id)
            if application.name is not None:
                self.by_name.setdefault(application.name, []).append(application.id)
        else:
            self.changed[application.id] = None
            if application.tags is not before.tags:
                self.tags_before.setdefault(application.id, before.tags)
        if application.state is State.WAITING or (before is not None and before.state is State.WAITING):
            self._requeue(before, application)
        if self._undo is not None:
            self._undo.append(lambda: self._restore_application(application.id, before))

    def _requeue(self, before: Application | None, after: Application) -> None:
        left = () if before is None else before.waits_on
        self.requeued.add(after.id)
        self.requeued_labels.update(left, after.waits_on)
        self.stale_ranks.update(left)
        for account in self.accounts_of(after.waits_on):
            balance = account.balance
            first = (balance.first_priority, balance.first_seq or 0)
            if first[0] is None or (after.priority, -(after.wait_seq or 0)) > (first[0], -first[1]):
                balance.first_priority, balance.first_seq = after.priority, after.wait_seq
            if account.label.is_pool:
                self.joined_pools[account.label.id] = account

    def first_rank(self, account: Account) -> tuple[int, int] | None:
        """Priority and number of the first waiter of a label."""
        balance = account.balance
        if balance.first_priority is None or balance.first_seq is None:
            return None
        if account.label.id in self.stale_ranks:
            self.stale_ranks.discard(account.label.id)
            first = self.lookup.first_waiter(account.label.id)
            balance.first_priority, balance.first_seq = (None, None) if first is None else first
            return first
        return balance.first_priority, balance.first_seq

    def _restore_application(self, application_id: str, before: Application | None) -> None:
        if before is None:
            undone = self.applications.pop(application_id)
            self.stale_ranks.update(undone.waits_on)
            if undone.name is not None:
                self.by_name[undone.name].remove(application_id)
        else:
            self.applications[application_id] = before
            self.stale_ranks.update(before.waits_on)
            for account in self.accounts_of(before.waits_on):
                if account.balance.first_priority is None:  # looked up meanwhile, when it had left
                    account.balance.first_priority = before.priority
                    account.balance.first_seq = before.wait_seq

    def named(self, name: str) -> list[Application]:
        """The live applications that a client calls so, the oldest first."""
        found = [self.applications[application_id] for application_id in self.by_name.get(name, ())]
        return [application for application in found if application.state in LIVE]

    def put_node(self, node: Node) -> None:
        before = self.nodes.get(node.label_id)
        self.nodes[node.label_id] = node
        self.changed_nodes.add(node.label_id)
        self.changed_accounts.add(node.label_id)
        self.unsynced.add(node.label_id)
        if self._undo is not None:
            self._undo.append(lambda: self._restore_node(node.label_id, before))

    def _restore_node(self, label_id: int, before: Node | None) -> None:
        self.unsynced.add(label_id)
        if before is None:
            del self.nodes[label_id]
            self.changed_nodes.discard(label_id)
        else:
            self.nodes[label_id] = before

    def set_room(
        self, account: Account, total: Amounts | None, protected: Amounts | None, closed: str | None
    ) -> None:
        """Set what a node has, and why it takes nothing new if so; an event and `put_node` say the rest."""
        balance = account.balance
        before = (balance.total, balance.protected, balance.closed)
        account.register(total, protected, closed)
        self.undo_by(lambda: account.register(*before))
        device_changes.sum_up(
            self, before[0] if before[2] != LOST else None, total if closed != LOST else None
        )

    def set_observation(
        self,
        account: Account,
        room: tuple[Amounts | None, Amounts | None, str | None],
        observation: Observation,
    ) -> None:
        """Set what an external place has and uses; an event says the rest."""
        balance = account.balance
        before = (balance.total, balance.protected, balance.closed), balance.observation
        account.register(*room)
        balance.observation = observation
        self.changed_rooms.add(account.label.id)
        if self._undo is not None:

            def restore() -> None:
                account.register(*before[0])
                balance.observation = before[1]

            self._undo.append(restore)

    def put_engine(self, engine: Engine) -> None:
        before = self.engines.get(engine.instance)
        self.engines[engine.instance] = engine
        self.changed_engines.add(engine.instance)
        if self._undo is not None and before is not None:
            self._undo.append(lambda: self.engines.__setitem__(engine.instance, before))
