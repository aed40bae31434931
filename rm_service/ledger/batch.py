"""A batch: what rows its operations need, what is decided on them, one after another."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import orjson

from rm_service.domain import operations as op
from rm_service.domain.accounts import GATE_KEY, POOL_KEY, Account
from rm_service.domain.amounts import NOTHING, Amounts, without_ports
from rm_service.domain.application import HOLDING, LIVE, State
from rm_service.domain.class_book import MAX_FORESEEN, ClassBook
from rm_service.domain.decide import decide, decide_together
from rm_service.domain.device_choice import by_class
from rm_service.domain.devices import Signatures, device_labels, device_tags
from rm_service.domain.lookup import Room
from rm_service.domain.node_partition import Candidate
from rm_service.domain.observing import bring_along, settle
from rm_service.domain.outcomes import Outcome
from rm_service.domain.placement import NodeIndex, prefer_image
from rm_service.domain.tags import Tags, label_key, node_tags
from rm_service.domain.view import Periods, View
from rm_service.ledger.ids import is_id
from rm_service.ledger.label_ids import LabelIds
from rm_service.ledger.nodes import NodeWatch, know_devices
from rm_service.ledger.rulebook import Labels, RuleBook
from rm_service.ledger.turn import Head, Rows, Turn, Wanted

NODE_KEYS = frozenset({"node"})
PARTITION_NODE_KEYS = frozenset({"partition", "node"})
PACKED = 8
"""How many nodes are read ahead for any number of asks that are packed onto few."""


@dataclass(frozen=True, slots=True)
class Group:
    """Operations that were handed in together; `atomic`: all of them or none."""

    operations: Sequence[op.DecidedOperation]
    atomic: bool = False
    looks: Sequence[op.Observe] = ()
    """What is known of places where they ask: told before them, and their outcomes stand before theirs."""

    def weight(self) -> int:
        """How much it adds to a batch: an ask counts as often as it may be allocated."""
        weights = [len(each.ids) if isinstance(each, op.Ask) else 1 for each in self.operations]
        return len(self.looks) + sum(weights)


Result = list[Outcome]
_Charged = op.Apply | op.AddApplication | op.Ask | op.BookAllocation | op.Observe


@dataclass(slots=True)
class Batch:
    """One pass over the waiting groups within a turn; to their decisions it is the `Lookup`."""

    turn: Turn
    book: RuleBook
    labels: Labels
    ids: LabelIds
    watch: NodeWatch
    periods: Periods
    wanted: Wanted = field(default_factory=Wanted)
    node_labels: dict[tuple[str, str], int] = field(default_factory=dict)
    view: View = field(init=False)
    _placed: Counter[tuple[op.Placement, tuple[tuple[str, int], ...]]] = field(default_factory=Counter)
    _pool_of: dict[op.Placement, int] = field(default_factory=dict)
    _pool_ids: list[int] | None = None
    _watching: bool = False

    def plan(self, groups: Iterable[Group]) -> None:
        """Find out which rows are needed. Labels used for the first time are numbered."""
        unresolved: list[_Charged] = []
        for group in groups:
            for operation in (*group.looks, *group.operations):
                if isinstance(operation, _Charged):
                    label_ids = self.book.charged(operation.tags)
                    if label_ids is None:
                        unresolved.append(operation)
                    else:
                        self._want_apply(operation, label_ids)
                else:
                    self._want(operation)
        self._resolve([operation.tags for operation in unresolved])
        for operation in unresolved:
            self._want_apply(operation, self._label_ids(operation.tags))
        self._want_likely_nodes()

    def run(self, groups: Sequence[Group], head: Head, rows: Rows) -> tuple[View, list[Result]]:
        """Decide every operation in order. The view then holds all that is to be written."""
        view = self.view = View(self, now=head.now, seq=head.seq, targets=head.targets, periods=self.periods)
        view.node_labels, view.heads = self.node_labels, rows.heads
        view.registrations = self.book.registrations
        view.away = frozenset(orjson.loads(head.away)) if head.away != "[]" else frozenset()
        self._take_in(rows)
        self._charge_anew()
        self._pool_ids = rows.pool_ids
        results = [_decide_group(view, group) for group in groups]
        settle(view)
        return view, results

    def labels_of(self, tags: Tags, resource: Amounts = NOTHING) -> tuple[int, ...]:
        """As Lookup says."""
        label_ids = self._label_ids(tags)
        devices = {label_key(label): label for label in device_labels(resource)}
        if devices:
            label_ids += tuple(self.ids.give(devices).values())
        self._read_accounts(label_ids)
        return label_ids

    def classes(self) -> ClassBook:
        """As Lookup says."""
        return self.book.classes

    def learn(self, signatures: Signatures) -> None:
        """As Lookup says."""
        self.book.signatures.update(signatures)

    def pool_of(self, placement: op.Placement) -> int:
        """As Lookup says."""
        pool_id = self._pool_id(placement)
        self._read_accounts([pool_id])
        return pool_id

    def nodes_for(self, placement: op.Placement, resource: Amounts) -> Iterator[Candidate]:
        """As Lookup says."""
        fitting = self._index().fitting(placement, on_a_node(self.book, placement, resource))
        return prefer_image(fitting, placement.image) if placement.image else fitting

    def rooms(self, placement: op.Placement, resource: Amounts) -> tuple[int, Sequence[Room]]:
        """As Lookup says."""
        return self._index().rooms(placement, on_a_node(self.book, placement, resource))

    def pools(self) -> Sequence[Account]:
        """As Lookup says."""
        if self._pool_ids is None:
            self._pool_ids = self.turn.pool_ids()
        self._read_accounts(self._pool_ids)
        return self.view.accounts_of(tuple(self._pool_ids))

    def gate_of(self, name: str) -> int:
        """As Lookup says."""
        tags = {GATE_KEY: name}
        gate_id = self.ids.give({label_key(tags): tags})[label_key(tags)]
        self._read_accounts([gate_id])
        return gate_id

    def members_of(self, application_id: str) -> Sequence[str]:
        """As Lookup says."""
        self._read_applications(self.turn.members_of(application_id))
        applications = self.view.applications.values()
        return [each.id for each in applications if each.parent == application_id and each.state in LIVE]

    def tenants_of(self, label_id: int) -> Sequence[str]:
        """As Lookup says."""
        self._read_applications(self.turn.tenants_of(label_id))
        applications = self.view.applications.values()
        return [each.id for each in applications if label_id in each.label_ids and each.state in HOLDING]

    def first_waiter(self, label_id: int) -> tuple[int, int] | None:
        """As Lookup says: the best of the rows that still hold, and of those who came in this batch."""
        view = self.view
        ranks = [
            (-application.priority, application.wait_seq or 0)
            for application in (view.applications.get(key) for key in view.requeued)
            if application is not None
            and application.state is State.WAITING
            and label_id in application.waits_on
        ]
        rows = self.turn.execute(self.turn.texts.waiters, label_id, len(view.requeued) + 1).fetchall()
        ranks += [(-priority, seq) for key, priority, seq in rows if str(key) not in view.requeued]
        return (-min(ranks)[0], min(ranks)[1]) if ranks else None

    def _index(self) -> NodeIndex:
        """The placement index, exact as of this moment of the batch."""
        if not self._watching:
            self.watch.catch_up(self.turn, self.turn.take().seq, self.book, self.labels)
            self._watching = True
        self.watch.sync(self.view)
        return self.watch.index

    def _resolve(self, several_tags: Iterable[Tags]) -> None:
        """Make sure that every label these tags are charged to has a number."""
        rules = self.book.rules
        self.ids.give({label.key: label.tags for tags in several_tags for label in rules.labels_for(tags)})

    def _label_ids(self, tags: Tags) -> tuple[int, ...]:
        label_ids = self.book.charged(tags)
        if label_ids is None:
            labels = self.book.rules.labels_for(tags)
            given = self.ids.give({label.key: label.tags for label in labels})
            label_ids = tuple([given[label.key] for label in labels])
            if self.ids.new.keys().isdisjoint(label_ids):
                self.book.remember_charged(tags, label_ids)
        return label_ids

    def _pool_id(self, placement: op.Placement) -> int:
        pool_id = self._pool_of.get(placement)
        if pool_id is None:
            tags = pool_tags(placement)
            key = label_key(tags)
            pool_id = self._pool_of[placement] = self.ids.give({key: tags}, is_pool=True)[key]
        return pool_id

    def _want(self, operation: op.DecidedOperation) -> None:
        wanted = self.wanted
        wanted.pools = wanted.pools or not isinstance(operation, op.Wake | op.Tell)
        if isinstance(operation, op.ApplicationOperation):
            wanted.application_ids.add(operation.id)
        elif isinstance(operation, op.Wake):
            wanted.label_ids.add(operation.label_id)
            wanted.heads_of.add(operation.label_id)
        elif isinstance(operation, op.NodeOperation):
            self._want_node(operation)
        elif isinstance(operation, op.ClientOperation):
            self._want_named(operation)
        elif isinstance(operation, op.EngineOperation):
            wanted.engines.add(operation.instance)
            if isinstance(operation, op.RegisterEngine):
                wanted.application_ids.add(operation.application)

    def _want_named(self, operation: op.ClientOperation) -> None:
        wanted = self.wanted
        if isinstance(operation, op.RemoveApplication):
            wanted.names.add(operation.name)
        elif isinstance(operation, op.ForgetApplication):
            wanted.application_ids.add(operation.id)
        elif isinstance(operation, op.ReleaseAllocation):
            wanted.names.update(name for name in (operation.name, operation.parent) if name is not None)
            if operation.id is not None and is_id(operation.id):
                wanted.application_ids.add(operation.id)

    def _want_node(self, operation: op.NodeOperation) -> None:
        tags = node_tags(operation.instance, operation.partition)
        key = label_key(tags)
        registers = isinstance(operation, op.RegisterNode | op.CreateNode)
        label_id = (self.ids.give({key: tags}) if registers else self.ids.find([key])).get(key)
        if label_id is None:
            return
        self.node_labels[operation.partition, operation.instance] = label_id
        self.wanted.label_ids.add(label_id)
        self.wanted.node_label_ids.add(label_id)
        if isinstance(operation, op.RegisterNode):
            self.wanted.application_ids.update(operation.applications)

    def _want_apply(self, operation: _Charged, label_ids: tuple[int, ...]) -> None:
        wanted = self.wanted
        wanted.label_ids.update(label_ids)
        if isinstance(operation, op.Observe):
            wanted.application_ids.update(operation.shown or ())
            return
        if isinstance(operation, op.Apply):
            if not operation.id_is_new:
                wanted.application_ids.add(operation.id)
        else:
            wanted.names.add(operation.name)
            if not isinstance(operation, op.AddApplication) and operation.parent is not None:
                wanted.names.add(operation.parent)
            if isinstance(operation, op.BookAllocation):
                wanted.application_ids.add(operation.id)
        placement = operation.placement if isinstance(operation, op.Apply | op.Ask) else None
        if placement is not None:
            wanted.label_ids.add(self._pool_id(placement))
            count = len(operation.ids) if isinstance(operation, op.Ask) else 1
            self._placed[placement, tuple(operation.resource.items())] += count

    def _want_likely_nodes(self) -> None:
        """Read ahead the nodes that placements will most likely choose; it costs time if they do not."""
        for (placement, resource), count in self._placed.items():
            several = count if placement.strategy in {"spread", "fair"} else min(count, PACKED)
            several += bool(placement.classes)  # others ask for the same devices by other classes
            asked = on_a_node(self.book, placement, dict(resource))
            likely = islice(self.watch.index.fitting(placement, asked), several)
            self.wanted.label_ids.update(candidate.label_id for candidate in likely)
        self._want_devices()

    def _want_devices(self) -> None:
        """Read ahead the sums of the devices that are asked for."""
        classes = self.book.classes
        names = {name for placement, _ in self._placed for name, _ in placement.classes}
        signatures = sorted(frozenset().union(*[classes.selected(name) for name in names]))
        if signatures:
            keys = [label_key(device_tags(each)) for each in signatures[:MAX_FORESEEN]]
            self.wanted.label_ids.update(self.ids.find(keys).values())

    def _take_in(self, rows: Rows) -> None:
        view, book, accounts = self.view, self.book, self.view.accounts
        new = [each for each in rows.applications if each.id not in view.applications]
        view.applications.update({application.id: application for application in new})
        for application in sorted(new, key=lambda each: (each.created_at, each.id)):
            if application.name is not None:
                view.by_name.setdefault(application.name, []).append(application.id)
        view.nodes.update({node.label_id: node for node in rows.nodes})
        for engine in rows.engines:
            view.engines.setdefault(engine.instance, engine)
        not_met = book.not_met([balance.label_id for balance in rows.balances])
        for label_id, (key, tags) in self.labels.of_ids(self.turn.connection, not_met).items():
            book.learn(label_id, key, tags)
        for balance in rows.balances:
            if balance.label_id not in accounts:  # what is here already may have changed in this batch
                accounts[balance.label_id] = book.account(balance)
        know_devices(self.turn, book, rows.balances)
        self._take_in_new()
        self._read_applications([each.parent for each in new if each.parent is not None])

    def _read_applications(self, application_ids: Iterable[str]) -> None:
        missing = set(application_ids) - self.view.applications.keys()
        if missing:
            self._take_in(self.turn.read(Wanted(application_ids=missing)))

    def _take_in_new(self) -> None:
        accounts = self.view.accounts
        for new in self.ids.new.values():
            if new.id not in accounts:
                accounts[new.id] = self.book.new_account(new.id, new.key, new.tags)

    def _charge_anew(self) -> None:
        """What was given up as lost may come back: it is then charged by the rules of today."""
        applications = self.view.applications
        lost = [found for found in applications.values() if found.state is State.LOST]
        for application in lost:
            label_ids = self.labels_of(application.tags, application.device_amounts)
            applications[application.id] = replace(application, label_ids=label_ids)

    def _read_accounts(self, label_ids: Iterable[int]) -> None:
        accounts, new = self.view.accounts, self.ids.new
        missing = {label_id for label_id in label_ids if label_id not in accounts}
        if not missing.isdisjoint(new):
            self._take_in_new()
            missing -= new.keys()
        if missing:
            self._take_in(self.turn.read(Wanted(label_ids=missing)))


def _decide_group(view: View, group: Group) -> Result:
    told = [bring_along(view, look) for look in group.looks]
    if group.atomic:
        return told + decide_together(view, group.operations)
    return told + [decide(view, operation) for operation in group.operations]


def pool_tags(placement: op.Placement) -> dict[str, str]:
    """The tags of the queue in which those wait who ask for a node by this selector."""
    name = placement.selector or "*"
    if placement.classes:  # who waits for devices must not hold up those who need none
        name = f"{name} classes {','.join(sorted(each for each, _ in placement.classes))}"
    pool = {POOL_KEY: name}
    return {**pool, "partition": placement.partition} if placement.partition else pool


def on_a_node(book: RuleBook, placement: op.Placement, resource: Amounts) -> Amounts:
    """The part of what is asked for that a node has to have."""
    rule = book.rules.rule_for(PARTITION_NODE_KEYS if placement.partition else NODE_KEYS)
    return without_ports(resource if rule is None else rule.charge(resource))


def asks_for_nodes(group: Group) -> bool:
    """Whether any of these operations asks for a node."""
    return any(
        isinstance(each, op.Apply | op.Ask) and each.placement is not None for each in group.operations
    )


def asked_of_nodes(group: Group, book: RuleBook) -> Iterator[tuple[op.Placement, Amounts]]:
    """What is asked of a node by each operation that asks for one."""
    for each in group.operations:
        if isinstance(each, op.Ask):
            each = by_class(each, book.classes)  # noqa: PLW2901
        if isinstance(each, op.Apply | op.Ask) and each.placement is not None and "node" not in each.tags:
            yield each.placement, on_a_node(book, each.placement, each.resource)
