"""A batch: what rows its operations need, what is decided on them, one after another."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from rm_service.domain import operations as op
from rm_service.domain.amounts import Amounts
from rm_service.domain.application import Instant, State
from rm_service.domain.decide import Later, decide, decide_together
from rm_service.domain.outcomes import Outcome
from rm_service.domain.tags import Tags, label_key
from rm_service.domain.view import Charged, Choice, View
from rm_service.ledger.label_ids import LabelIds
from rm_service.ledger.nodes import NodeWatch
from rm_service.ledger.rulebook import POOL_KEY, Labels, RuleBook
from rm_service.ledger.turn import Head, Rows, Turn, Wanted

NODE_KEYS = frozenset({"node"})


@dataclass(frozen=True, slots=True)
class Group:
    """Operations that were handed in together; `atomic`: all of them or none."""

    operations: Sequence[op.DecidedOperation]
    atomic: bool = False


Result = list[Outcome | Later]


@dataclass(slots=True)
class Batch:
    """One pass over the waiting groups within a turn."""

    turn: Turn
    book: RuleBook
    labels: Labels
    ids: LabelIds
    watch: NodeWatch
    wait_age: Instant
    wanted: Wanted = field(default_factory=Wanted)
    charged: dict[str, Charged] = field(default_factory=dict)
    pools: dict[str, int] = field(default_factory=dict)
    node_labels: dict[str, int] = field(default_factory=dict)

    def plan(self, groups: Iterable[Group]) -> None:
        """Find out which rows are needed. Labels used for the first time are made."""
        unresolved: list[op.Apply] = []
        for group in groups:
            for operation in group.operations:
                if isinstance(operation, op.Apply):
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

    def run(self, groups: Sequence[Group], head: Head, rows: Rows) -> tuple[View, list[Result]]:
        """Decide every operation in order. The view then holds all that is to be written."""
        view = View(now=head.now, seq=head.seq, targets=head.targets, wait_age=self.wait_age)
        view.charged, view.node_labels, view.heads = self.charged, self.node_labels, rows.heads
        self._take_in(view, rows)
        self._charge_anew(view)
        self._take_in_pools(view, rows.pool_ids)
        self._choose(view, head, groups)
        return view, [_decide_group(view, group) for group in groups]

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
        tags = pool_tags(placement)
        key = label_key(tags)
        return self.ids.give({key: tags}, is_pool=True)[key]

    def _want(self, operation: op.DecidedOperation) -> None:
        wanted = self.wanted
        if isinstance(operation, op.ApplicationOperation):
            wanted.application_ids.add(operation.id)
        elif isinstance(operation, op.Wake):
            wanted.label_ids.add(operation.label_id)
            wanted.heads_of.add(operation.label_id)
        elif isinstance(operation, op.NodeOperation):
            self._want_node(operation)
        else:
            wanted.engines.add(operation.instance)
            if isinstance(operation, op.RegisterEngine):
                wanted.application_ids.add(operation.application)

    def _want_node(self, operation: op.NodeOperation) -> None:
        tags = {"node": operation.instance}
        key = label_key(tags)
        registers = isinstance(operation, op.RegisterNode)
        label_id = (self.ids.give({key: tags}) if registers else self.ids.find([key])).get(key)
        if label_id is None:
            return
        self.node_labels[operation.instance] = label_id
        self.wanted.label_ids.add(label_id)
        self.wanted.node_label_ids.add(label_id)
        if isinstance(operation, op.RegisterNode):
            self.wanted.application_ids.update(operation.applications)

    def _want_apply(self, operation: op.Apply, label_ids: tuple[int, ...]) -> None:
        if not operation.id_is_new:
            self.wanted.application_ids.add(operation.id)
        self.charged.setdefault(operation.id, Charged(label_ids))
        self.wanted.label_ids.update(label_ids)
        if operation.placement is not None:
            pool_id = self.pools[operation.id] = self._pool_id(operation.placement)
            self.wanted.label_ids.add(pool_id)

    def _take_in(self, view: View, rows: Rows) -> None:
        view.applications.update({application.id: application for application in rows.applications})
        view.nodes.update({node.label_id: node for node in rows.nodes})
        view.engines.update({engine.instance: engine for engine in rows.engines})
        book, accounts = self.book, view.accounts
        not_met = book.not_met([balance.label_id for balance in rows.balances])
        for label_id, (key, tags) in self.labels.of_ids(self.turn.connection, not_met).items():
            book.learn(label_id, key, tags)
        for balance in rows.balances:
            accounts[balance.label_id] = book.account(balance)
        for new in self.ids.new.values():
            if new.id not in accounts:
                accounts[new.id] = book.new_account(new.id, new.key, new.tags)

    def _charge_anew(self, view: View) -> None:
        """What was given up as lost may come back: it is then charged by the rules of today."""
        lost = [found for found in view.applications.values() if found.state is State.LOST]
        if not lost:
            return
        self._resolve([application.tags for application in lost])
        for application in lost:
            label_ids = self._label_ids(application.tags)
            view.applications[application.id] = replace(application, label_ids=label_ids)
            self._read_accounts(view, label_ids)

    def _take_in_pools(self, view: View, pool_ids: Iterable[int]) -> None:
        """Pools in which somebody waits are woken by any capacity that is freed."""
        ids = list(pool_ids)
        self._read_accounts(view, ids)
        view.pools = [view.accounts[label_id] for label_id in ids]

    def _read_accounts(self, view: View, label_ids: Iterable[int]) -> None:
        missing = {label_id for label_id in label_ids if label_id not in view.accounts}
        if missing:
            self._take_in(view, self.turn.read(Wanted(label_ids=missing)))

    def _choose(self, view: View, head: Head, groups: Sequence[Group]) -> None:
        """Choose a node for everybody who asks for one, each counting those before it."""
        asking = list(self._asking(view, groups))
        if not asking:
            return
        self.watch.catch_up(self.turn, head.seq, self.book, self.labels)
        index, rule = self.watch.index, self.book.rules.rule_for(NODE_KEYS)
        taken: list[tuple[int, Amounts]] = []
        needed: set[int] = set()
        for application_id, tags, placement, resource, pool_id in asking:
            request = resource if rule is None else rule.charge(resource)
            candidate = index.choose(placement, request)
            if candidate is None:
                matching, rooms = index.rooms(placement, request)
                view.choices[application_id] = Choice(pool_id, None, rooms, matching, crowded=bool(taken))
                continue
            charged = self._charged_with(tags, candidate.instance)
            needed.update(charged.label_ids)
            view.choices[application_id] = Choice(pool_id, charged)
            index.charge(candidate.label_id, request, 1)
            taken.append((candidate.label_id, request))
        for label_id, request in taken:
            index.charge(label_id, request, -1)
        self._read_accounts(view, needed)

    def _asking(
        self, view: View, groups: Sequence[Group]
    ) -> Iterable[tuple[str, Tags, op.Placement, Amounts, int]]:
        for group in groups:
            for operation in group.operations:
                if isinstance(operation, op.Apply):
                    if operation.placement is not None and operation.id not in view.applications:
                        pool_id = self.pools[operation.id]
                        yield operation.id, operation.tags, operation.placement, operation.resource, pool_id
                elif isinstance(operation, op.Wake):
                    yield from self._asking_again(view, operation)

    def _asking_again(
        self, view: View, operation: op.Wake
    ) -> Iterable[tuple[str, Tags, op.Placement, Amounts, int]]:
        for application_id in view.heads.get(operation.label_id, ()):
            application = view.applications[application_id]
            if application.placement is not None and application.state is State.WAITING:
                placement = op.Placement(**application.placement)
                pool_id = self._pool_id(placement)
                self._read_accounts(view, [pool_id])
                yield application_id, application.tags, placement, application.requested, pool_id

    def _charged_with(self, tags: Tags, instance: str) -> Charged:
        return Charged(self._label_ids({**tags, "node": instance}), instance)


def _decide_group(view: View, group: Group) -> Result:
    """The outcomes of a group, in order; they end with `Later` where it has to go on in another batch."""
    if group.atomic:
        together = decide_together(view, group.operations)
        return [together] if isinstance(together, Later) else list(together)
    result: Result = []
    for operation in group.operations:
        result.append(decide(view, operation))
        if isinstance(result[-1], Later):
            break
    return result


def pool_tags(placement: op.Placement) -> dict[str, str]:
    """The tags of the queue in which those wait who ask for a node by this selector."""
    return {POOL_KEY: placement.selector or "*"}
