"""Operations on the whole ledger: limits, rules, deadlines, checkpoints. Each has a turn of its own."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Table, delete, insert, select, update

from rm_service.domain import operations as op
from rm_service.domain.accounts import GATE_KEY, POOL_KEY
from rm_service.domain.application import SECOND
from rm_service.domain.clients import ClientState
from rm_service.domain.conversions import Conversions
from rm_service.domain.events import Kind
from rm_service.domain.label_rules import LabelRules, RuleError
from rm_service.domain.limits import LimitError, LimitTerms, check_limit
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.domain.providers import provider_key, tied_with
from rm_service.domain.tags import Tags
from rm_service.ledger import tables
from rm_service.ledger.checkpoints import write_checkpoint
from rm_service.ledger.class_rows import class_document, count_classes, delete_class, insert_class, read_class
from rm_service.ledger.client_state import note_who_is_away, set_client_state, wake_gate
from rm_service.ledger.limit_rows import is_anothers, replace_limits, store_limit
from rm_service.ledger.providers import read_providers, remove_provider, store_provider
from rm_service.ledger.recount import check_holders_of_devices, recount
from rm_service.ledger.registration import note_registration
from rm_service.ledger.rulebook import Labels, read_rule_book
from rm_service.ledger.turn import Head, Turn

_STATE_EVENTS = {
    ClientState.RUNNING: Kind.CLIENT_RESUMED,
    ClientState.PAUSED: Kind.CLIENT_PAUSED,
    ClientState.STOPPED: Kind.CLIENT_STOPPED,
}
MAX_CLASSES = 1_024
Woken = set[int]
"""Labels whose queues are to be looked at because of the change."""


def run(turn: Turn, operation: op.WholeLedgerOperation, head: Head, labels: Labels) -> tuple[Outcome, Woken]:
    """Carry out one such operation within a turn."""
    return _CHANGES[type(operation)](_Change(turn, head, labels), operation)


@dataclass(slots=True)
class _Change:
    turn: Turn
    head: Head
    labels: Labels

    def record_sweep(self, operation: op.RecordSweep) -> tuple[Outcome, Woken]:
        sweep = tables.sweep
        later = update(sweep).where(sweep.c.succeeded_at < operation.at).values(succeeded_at=operation.at)
        self.turn.connection.execute(later)
        return Done(), set()

    def settle_client(self, operation: op.SettleClient) -> tuple[Outcome, Woken]:
        client, table = operation.client, tables.si_client
        settled = (table.c.rm_id == client.id) & (table.c.registration == client.registration)
        self.turn.connection.execute(update(table).where(settled).values(resync_until=None))
        return Done(), set()

    def write_checkpoint(self, _: op.WriteCheckpoint) -> tuple[Outcome, Woken]:
        write_checkpoint(self.turn.connection, self.head.seq, self.head.now)
        return Done(), set()

    def set_limit(self, operation: op.SetLimit) -> tuple[Outcome, Woken]:
        connection = self.turn.connection
        book = read_rule_book(connection, self.labels.known)
        try:
            tags = check_limit(operation.tags, operation.total, operation.protected, book.rules)
            rules = book.rules.with_quota(frozenset(tags))
        except (LimitError, RuleError) as error:
            field = error.field if isinstance(error, LimitError) else "tags"
            return Refused(Code.INVALID_LIMIT, str(error), field=field), set()
        if operation.client is not None and is_anothers(connection, tags, operation.client):
            return Done(repeated=True), set()  # an operator's word goes before a resource manager's
        limit_id, created = store_limit(
            connection, tags, operation.total, operation.protected, operation.client
        )
        detail = {"total": operation.total, "protected": operation.protected}
        self._event(Kind.LIMIT_SET, str(limit_id), tags, detail)
        self._grow_rules(book.rules, rules, {frozenset(tags)})
        return Done(limit_id=limit_id, created=created), self._wake(tags)

    def take_limits(self, operation: op.TakeLimits) -> tuple[Outcome, Woken]:
        """What a limit source says; `repeated` means that it stands there already."""
        book = read_rule_book(self.turn.connection, self.labels.known)
        try:
            rules = _with_quotas(book.rules, operation.limits)
        except (LimitError, RuleError) as error:
            field = error.field if isinstance(error, LimitError) else "tags"
            return Refused(Code.INVALID_LIMIT, str(error), field=field), set()
        changed, gone = replace_limits(
            self.turn.connection, operation.owner, operation.limits, operation.combinations
        )
        if not changed and not gone:
            return Done(repeated=True), set()
        detail = {"set": [_told(limit) for limit in changed], "removed": [dict(tags) for tags in gone]}
        self._event(Kind.LIMITS_TAKEN, operation.owner, None, detail)
        key_sets = {frozenset(tags) for tags in (*gone, *(limit.tags for limit in changed))}
        self._grow_rules(book.rules, rules, key_sets)
        return Done(), self._wake_all(key_sets)

    def remove_limit(self, operation: op.RemoveLimit) -> tuple[Outcome, Woken]:
        table = tables.limit_rule
        removed = self.turn.connection.execute(
            delete(table).where(table.c.id == operation.id).returning(table.c.tags)
        ).scalar_one_or_none()
        if removed is None:
            return Refused(Code.UNKNOWN_LIMIT, f"no limit {operation.id}"), set()
        self._event(Kind.LIMIT_REMOVED, str(operation.id), removed, None)
        return Done(limit_id=operation.id), self._wake(removed)

    def change_rules(self, operation: op.ChangeRules) -> tuple[Outcome, Woken]:
        """Take other rules over; key sets that only limits brought in stay labels."""
        connection = self.turn.connection
        try:
            Conversions.from_document(operation.document["conversions"])
            rules = LabelRules.from_document(operation.document["label_rules"])
            for tags in connection.execute(
                select(tables.limit_rule.c.tags).order_by(tables.limit_rule.c.id)
            ).scalars():
                rules = rules.with_quota(frozenset(tags))
        except RuleError as error:
            return Refused(Code.INVALID_RULES, str(error), field=error.path), set()
        document = {"conversions": operation.document["conversions"], "label_rules": rules.to_document()}
        if self._stored_rules() == document:
            return Done(repeated=True), set()
        try:
            check_holders_of_devices(self.turn, rules)
        except RuleError as error:
            return Refused(Code.INVALID_RULES, str(error), field=error.path), set()
        self._store_rules(document)
        self._event(Kind.RULES_CHANGED, "rules", None, None)
        recount(self.turn, rules, self.labels, None)
        write_checkpoint(connection, self.head.seq + 1, self.head.now)
        return Done(), self._wake(None)

    def shift_deadlines(self, operation: op.ShiftDeadlines) -> tuple[Outcome, Woken]:
        """Move the deadlines, and count this as a success: another that saw the same gap moves nothing."""
        sweep, application = tables.sweep, tables.application
        first = update(sweep).where(sweep.c.succeeded_at == operation.seen).values(succeeded_at=self.head.now)
        if self.turn.connection.execute(first).rowcount == 0:
            return Done(repeated=True), set()
        gap = self.head.now - operation.seen
        self._shift(application, gap, application.c.state.in_(["locked", "used"]))
        self._shift(tables.node, gap)
        self._shift(tables.engine, gap)
        client = tables.si_client.c
        later = {"resync_until": client.resync_until + gap, "seen_at": client.seen_at + gap}
        self.turn.connection.execute(update(tables.si_client).values(**later))
        self._event(Kind.DEADLINES_SHIFTED, "deadlines", None, {"seconds": gap / SECOND})
        return Done(), set()

    def register_client(self, operation: op.RegisterClient) -> tuple[Outcome, Woken]:
        """Note the registration; the client's limits replace those of its earlier ones."""
        connection = self.turn.connection
        book = read_rule_book(connection, self.labels.known)
        limits = [LimitTerms(tags, total) for tags, total in operation.limits]
        try:
            rules = _with_quotas(book.rules, limits)
        except (LimitError, RuleError) as error:
            return Refused(Code.INVALID_LIMIT, str(error), field="config"), set()
        row = note_registration(connection, operation, self.head)
        note_who_is_away(connection)
        changed, gone = replace_limits(connection, operation.id, limits)
        key_sets = {frozenset(tags) for tags in (*gone, *(limit.tags for limit in changed))}
        woken = self._wake_all(key_sets) | wake_gate(connection, operation.id)
        detail = {"registration": row} | ({"warning": operation.warning} if operation.warning else {})
        self._event(Kind.CLIENT_REGISTERED, operation.id, None, detail, operation.id)
        self._grow_rules(book.rules, rules, {frozenset(limit.tags) for limit in limits})
        return Done(registration=row), woken

    def set_client_state(self, operation: op.SetClientState) -> tuple[Outcome, Woken]:
        """A client is there again, or is not: then nothing is granted to it until it comes back."""
        connection = self.turn.connection
        if not set_client_state(connection, operation, self.head.now):
            return Done(repeated=True), set()
        self._event(_STATE_EVENTS[operation.state], operation.id, None, None, operation.id)
        running = operation.state is ClientState.RUNNING
        return Done(), wake_gate(connection, operation.id) if running else set()

    def store_provider(self, operation: op.StoreProvider) -> tuple[Outcome, Woken]:
        """Store a provider; `repeated` means that it is not as its author has seen it any more."""
        connection, providers = self.turn.connection, read_providers(self.turn.connection)
        key = provider_key(operation.type, operation.name)
        known = next((each for each in providers if each.key == key), None)
        if (None if known is None else known.version) != operation.based_on:
            return Done(repeated=True), set()
        other = tied_with(operation, providers)
        if other is not None:
            reason = f"{other.key} with {other.labels} is as specific, and both could match one label"
            return Refused(Code.PROVIDER_TIE, reason, field="labels"), set()
        created = store_provider(connection, operation, self.head.seq + 1, self.head.now)
        detail = {"labels": str(operation.labels), "stale_policy": operation.stale_policy.value}
        self._event(Kind.PROVIDER_STORED, key, None, detail)
        return Done(created=created), set()

    def remove_provider(self, operation: op.RemoveProvider) -> tuple[Outcome, Woken]:
        key = provider_key(operation.type, operation.name)
        if not remove_provider(self.turn.connection, operation):
            return Refused(Code.UNKNOWN_PROVIDER, f"no provider {key}"), set()
        self._event(Kind.PROVIDER_REMOVED, key, None, None)
        return Done(), set()

    def create_class(self, operation: op.CreateClass) -> tuple[Outcome, Woken]:
        """A class is there from now on; who waits for devices is looked at again."""
        connection, created = self.turn.connection, operation.resource_class
        if read_class(connection, created.name) is not None:
            detail = f"a resource class {created.name} exists already"
            return Refused(Code.CLASS_EXISTS, detail, field="metadata.name"), set()
        if count_classes(connection) >= MAX_CLASSES:
            detail = f"there are {MAX_CLASSES} resource classes, and no more are taken"
            return Refused(Code.TOO_MANY_CLASSES, detail, field="metadata.name"), set()
        created = replace(created, created_at=self.head.now, version=self.head.seq + 1)
        insert_class(connection, created)
        self._event(Kind.CLASS_CREATED, created.name, None, {"uid": created.uid})
        return Done(resource_class=created, created=True), self._wake({POOL_KEY: ""})

    def remove_class(self, operation: op.RemoveClass) -> tuple[Outcome, Woken]:
        """Nothing that is held changes: a class of that name counts it again."""
        connection = self.turn.connection
        known = read_class(connection, operation.name)
        if known is None:
            return Refused(Code.UNKNOWN_CLASS, f"no resource class {operation.name}"), set()
        if operation.uid not in {None, known.uid}:
            detail = f"the resource class {operation.name} is another one: its uid is {known.uid}"
            return Refused(Code.CLASS_EXISTS, detail, field="preconditions.uid"), set()
        delete_class(connection, operation.name)
        gone = {"uid": known.uid, "document": class_document(known)}
        self._event(Kind.CLASS_REMOVED, operation.name, None, gone)
        return Done(resource_class=known), set()

    def _grow_rules(
        self, before: LabelRules, rules: LabelRules, key_sets: Collection[frozenset[str]]
    ) -> None:
        """Store rules that limits on these keys made others; what runs is counted in on new labels.

        After the event: the checkpoint is of its number.
        """
        if rules is before:
            return
        self._store_rules({**self._stored_rules(), "label_rules": rules.to_document()})
        added = [keys for keys in key_sets if before.rule_for(keys) is None]
        for keys in added:
            recount(self.turn, rules, self.labels, keys)
        if added:
            write_checkpoint(self.turn.connection, self.head.seq + 1, self.head.now)

    def _shift(self, table: Table, microseconds: int, *also: ColumnElement[bool]) -> None:
        later = update(table).values(deadline=table.c.deadline + microseconds)
        self.turn.connection.execute(later.where(table.c.deadline.is_not(None), *also))

    def _stored_rules(self) -> dict[str, object]:
        document: dict[str, object] = self.turn.connection.execute(
            select(tables.rule_set.c.document)
        ).scalar_one()
        return document

    def _store_rules(self, document: Mapping[str, object]) -> None:
        self.turn.connection.execute(update(tables.rule_set).values(document=dict(document)))

    def _event(
        self,
        kind: Kind,
        subject: str,
        tags: Tags | None,
        detail: Mapping[str, object] | None,
        client: str | None = None,
    ) -> None:
        """Append the operation's one event and, since it may change what limits say, raise the epoch."""
        connection, head = self.turn.connection, self.head
        connection.execute(
            insert(tables.event).values(
                seq=head.seq + 1,
                time=head.now,
                kind=kind.value,
                subject=subject,
                label_ids=[],
                locked={},
                used={},
                holders=0,
                tags=None if tags is None else dict(tags),
                detail=None if detail is None else dict(detail),
                client=client,
            )
        )
        connection.execute(
            update(tables.ledger_head).values(seq=head.seq + 1, time=head.now, epoch=head.epoch + 1)
        )
        if not self.turn.sqlite:
            self.turn.execute(self.turn.texts.notify)

    def _wake_all(self, key_sets: Iterable[frozenset[str]]) -> Woken:
        woken: Woken = set()
        for keys in key_sets:
            woken |= self._wake(dict.fromkeys(keys, ""))
        return woken

    def _wake(self, tags: Tags | None) -> Woken:
        """Mark the queues of every label with these keys (None: of all labels)."""
        balance, label = tables.balance, tables.label
        marked = update(balance).where(balance.c.first_priority.is_not(None)).values(wake=True)
        if tags is not None:
            keys = ",".join(sorted(tags))
            of_these_keys = balance.c.label_id.in_(select(label.c.id).where(label.c.key_set == keys))
            gates = balance.c.label_id.in_(select(label.c.id).where(label.c.key_set == GATE_KEY))
            marked = marked.where(of_these_keys | balance.c.is_pool | gates)
        returned = marked.returning(balance.c.label_id)
        return set(self.turn.connection.execute(returned).scalars())


def _told(limit: LimitTerms) -> dict[str, object]:
    return {"tags": dict(limit.tags), "total": dict(limit.total), "protected": dict(limit.protected)}


def _with_quotas(rules: LabelRules, limits: Iterable[LimitTerms]) -> LabelRules:
    """Rules under which these limits are judged. Raises LimitError, RuleError."""
    for limit in limits:
        rules = rules.with_quota(frozenset(check_limit(limit.tags, limit.total, limit.protected, rules)))
    return rules


_CHANGES: dict[type, Callable[[_Change, Any], tuple[Outcome, Woken]]] = {
    op.SetLimit: _Change.set_limit,
    op.TakeLimits: _Change.take_limits,
    op.RemoveLimit: _Change.remove_limit,
    op.ChangeRules: _Change.change_rules,
    op.ShiftDeadlines: _Change.shift_deadlines,
    op.RecordSweep: _Change.record_sweep,
    op.WriteCheckpoint: _Change.write_checkpoint,
    op.RegisterClient: _Change.register_client,
    op.SettleClient: _Change.settle_client,
    op.SetClientState: _Change.set_client_state,
    op.StoreProvider: _Change.store_provider,
    op.RemoveProvider: _Change.remove_provider,
    op.CreateClass: _Change.create_class,
    op.RemoveClass: _Change.remove_class,
}
