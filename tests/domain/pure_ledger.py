"""A ledger without a database: `decide` on a view that is kept between operations."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

from rm_service.domain import operations as op
from rm_service.domain.account_rules import label_rule
from rm_service.domain.accounts import Account, Balance, Label
from rm_service.domain.amounts import NOTHING, Amounts, without_ports
from rm_service.domain.application import HOLDING, LIVE, SECOND, Application, State
from rm_service.domain.class_book import ClassBook, ResourceClass
from rm_service.domain.decide import decide, decide_together
from rm_service.domain.device_attributes import Attributes
from rm_service.domain.devices import Signatures, device_labels
from rm_service.domain.events import Event
from rm_service.domain.label_rules import LabelRules
from rm_service.domain.limits import Limit, Limits
from rm_service.domain.lookup import Room
from rm_service.domain.node_partition import Candidate
from rm_service.domain.outcomes import Done, Outcome, Refused
from rm_service.domain.placement import NodeIndex
from rm_service.domain.resource_classes import ResourceClassSpec
from rm_service.domain.tags import Tags, label_key, node_tags
from rm_service.domain.view import Periods, View
from rm_service.ledger.batch import pool_tags

RULES = LabelRules.from_document(
    [
        {"name": "node", "keys": ["node"], "kind": "capacity", "unless": ["partition"]},
        {"name": "partition-node", "keys": ["partition", "node"], "kind": "capacity"},
        {
            "name": "yarn-queue",
            "keys": ["yarnCluster", "yarnQueue"],
            "kind": "capacity",
            "dimensions": ["yarn.*"],
            "external": "yarn",
            "thresholds": {"yarn.memory": 80},
        },
        {"name": "user", "keys": ["user"], "kind": "quota"},
        {"name": "creator", "keys": ["creator"], "kind": "rollup"},
        {
            "name": "queue",
            "keys": ["queue"],
            "kind": "quota",
            "hierarchical": {"queue": "."},
            "unless": ["partition"],
        },
        {"name": "partition-queue", "keys": ["partition", "queue"], "kind": "quota"},
    ]
)


class PureLedger:
    """Everything a batch would read and write, in dictionaries."""

    def __init__(
        self,
        limits: Mapping[str, Amounts] | None = None,
        wait_age: int = 600,
        echo: int = 30,
        completing: int = 30,
    ) -> None:
        parsed = [
            Limit(number, dict(pair.split("=") for pair in key.split(",")), total, {})
            for number, (key, total) in enumerate((limits or {}).items(), start=1)
        ]
        self.limits = Limits(parsed, RULES)
        self.signatures: dict[str, Attributes] = {}
        self.book = ClassBook({}, self.signatures)
        self.now = 1_000 * SECOND
        periods = Periods(wait_age * SECOND, echo * SECOND, completing * SECOND)
        self.view = View(self, now=self.now, seq=0, periods=periods)
        self.events: list[Event] = []
        self._ids: dict[str, int] = {}
        self._numbers = count(1)

    def do(self, operation: op.DecidedOperation) -> Outcome:
        """Decide one operation as a batch of its own, then whatever it woke."""
        outcome = self._decide(operation)
        self._wake()
        return outcome

    def together(self, operations: Iterable[op.DecidedOperation]) -> list[Outcome]:
        operations = list(operations)
        for operation in operations:
            self._prepare(operation)
        outcomes = decide_together(self.view, operations)
        self._settle()
        self._wake()
        return outcomes

    def apply(self, resource: Amounts, wait: int = 0, priority: int = 0, **tags: str) -> Outcome:
        """Apply with a fresh id."""
        asked = op.Apply(
            id=f"app-{next(self._numbers)}",
            tags=tags,
            resource=resource,
            wait_seconds=wait,
            priority=priority,
            lock_seconds=60,
        )
        return self.do(asked)

    def granted(self, resource: Amounts, **tags: str) -> Application:
        return application_of(self.apply(resource, wait=0, priority=0, **tags))

    def node(self, instance: str, total: Amounts, protected: Amounts | None = None) -> Outcome:
        return self.do(op.RegisterNode(instance, "LoadInstance", total, protected or {}))

    def create_class(self, name: str, spec: ResourceClassSpec) -> None:
        """As the ledger does it: it is there from now on, and all who wait for a node are looked at."""
        created = ResourceClass(name, f"uid-{next(self._numbers)}", spec)
        self.book = ClassBook({**self.book.classes, name: created}, self.signatures)
        for pool in self.pools():
            self.view.wake(pool)
        self._wake()

    def remove_class(self, name: str) -> None:
        left = {key: each for key, each in self.book.classes.items() if key != name}
        self.book = ClassBook(left, self.signatures)

    def lose_node(self, instance: str) -> None:
        """The node is gone, and what held something there ends as lost."""
        self.do(op.LoseNode(instance, "gone"))
        for application_id in self.tenants_of(self._label({"node": instance})):
            self.do(op.Lose(application_id, "gone"))

    def account(self, **tags: str) -> Account:
        return self.view.accounts[self._label(tags)]

    def application(self, application_id: str) -> Application:
        return self.view.applications[application_id]

    def pass_time(self, seconds: int) -> None:
        self.now += seconds * SECOND
        self.view.now = self.now

    def holding(self) -> list[Application]:
        return [each for each in self.view.applications.values() if each.state in HOLDING]

    def in_one_batch(self, operations: Iterable[op.DecidedOperation]) -> list[Outcome]:
        """Decide several operations before anything is settled, then whatever they woke."""
        operations = list(operations)
        for operation in operations:
            self._prepare(operation)
        outcomes = [decide(self.view, operation) for operation in operations]
        self._settle()
        self._wake()
        return outcomes

    def _wake(self) -> None:
        while self.view.woken:
            self._decide(op.Wake(self.view.woken.pop()))

    def labels_of(self, tags: Tags, resource: Amounts = NOTHING) -> tuple[int, ...]:
        charged = [label.tags for label in RULES.labels_for(tags)]
        return tuple(self._label(label) for label in (*charged, *device_labels(resource)))

    def classes(self) -> ClassBook:
        return self.book

    def learn(self, signatures: Signatures) -> None:
        self.signatures.update(signatures)

    def pool_of(self, placement: op.Placement) -> int:
        return self._label(pool_tags(placement))

    def gate_of(self, name: str) -> int:
        return self._label({"@members": name})

    def members_of(self, application_id: str) -> Sequence[str]:
        live = [each for each in self.view.applications.values() if each.state in LIVE]
        return [each.id for each in live if each.parent == application_id]

    def tenants_of(self, label_id: int) -> Sequence[str]:
        return [each.id for each in self.holding() if label_id in each.label_ids]

    def nodes_for(self, placement: op.Placement, resource: Amounts) -> Iterator[Candidate]:
        return self._index().fitting(placement, without_ports(resource))

    def rooms(self, placement: op.Placement, resource: Amounts) -> tuple[int, Sequence[Room]]:
        return self._index().rooms(placement, resource)

    def pools(self) -> Sequence[Account]:
        return [account for account in self.view.accounts.values() if account.label.is_pool]

    def first_waiter(self, label_id: int) -> tuple[int, int] | None:
        queue = self._queue(label_id)
        if not queue:
            return None
        first = self.view.applications[queue[0]]
        return first.priority, first.wait_seq or 0

    def _index(self) -> NodeIndex:
        index = NodeIndex()
        index.classes = self.book
        for node in self.view.nodes.values():
            index.put(node, self.view.accounts[node.label_id])
        return index

    def _decide(self, operation: op.DecidedOperation) -> Outcome:
        self._prepare(operation)
        outcome = decide(self.view, operation)
        self._settle()
        return outcome

    def _prepare(self, operation: op.DecidedOperation) -> None:
        view = self.view
        if isinstance(operation, op.NodeOperation):
            tags = node_tags(operation.instance, operation.partition)
            view.node_labels[operation.partition, operation.instance] = self._label(tags)
        elif isinstance(operation, op.Wake):
            view.heads[operation.label_id] = self._queue(operation.label_id)

    def _settle(self) -> None:
        """What the database does after a batch: keep the events, rank the waiters."""
        self.events += self.view.events
        self.view.events.clear()
        self.view.intervals.clear()
        for label_id in self.view.requeued_labels:
            queue = self._queue(label_id)
            first = self.view.applications[queue[0]] if queue else None
            balance = self.view.accounts[label_id].balance
            balance.first_priority = None if first is None else first.priority
            balance.first_seq = None if first is None else first.wait_seq
        self.view.requeued_labels.clear()
        self.view.stale_ranks.clear()
        self.view.requeued.clear()

    def _queue(self, label_id: int) -> list[str]:
        waiting = [
            each
            for each in self.view.applications.values()
            if each.state is State.WAITING and label_id in each.waits_on
        ]
        return [each.id for each in sorted(waiting, key=lambda each: (-each.priority, each.wait_seq or 0))]

    def _label(self, tags: Tags) -> int:
        key = label_key(tags)
        if key not in self._ids:
            label_id = self._ids[key] = len(self._ids) + 1
            label = Label(label_id, key, tags, label_rule(RULES, tags))
            limit = self.limits.resolve(tags)
            self.view.accounts[label_id] = Account(label, limit, Balance(label_id, {}, {}))
        return self._ids[key]


def refusal(outcome: Outcome) -> Refused:
    assert isinstance(outcome, Refused), outcome
    return outcome


def application_of(outcome: Outcome) -> Application:
    assert isinstance(outcome, Done), outcome
    assert outcome.application is not None
    return outcome.application
