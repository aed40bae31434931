"""Operations on the whole ledger: limits, rules, deadlines, checkpoints. Each has a turn of its own."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Table, delete, insert, select, update

from rm_service.domain import operations as op
from rm_service.domain.amounts import Amounts
from rm_service.domain.application import SECOND
from rm_service.domain.conversions import Conversions
from rm_service.domain.events import Kind
from rm_service.domain.label_rules import LabelRules, RuleError
from rm_service.domain.limits import LimitError, check_limit
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.domain.tags import Tags, label_key
from rm_service.ledger import tables
from rm_service.ledger.checkpoints import write_checkpoint
from rm_service.ledger.recount import recount
from rm_service.ledger.rulebook import Labels, read_rule_book
from rm_service.ledger.turn import Head, Turn

Woken = set[int]
"""Labels whose queues are to be looked at because of the change."""


def run(turn: Turn, operation: op.WholeLedgerOperation, head: Head, labels: Labels) -> tuple[Outcome, Woken]:
    """Carry out one such operation within a turn."""
    change = _Change(turn, head, labels)
    if isinstance(operation, op.SetLimit):
        return change.set_limit(operation)
    if isinstance(operation, op.RemoveLimit):
        return change.remove_limit(operation)
    if isinstance(operation, op.ChangeRules):
        return change.change_rules(operation)
    if isinstance(operation, op.ShiftDeadlines):
        return change.shift_deadlines(operation)
    if isinstance(operation, op.RecordSweep):
        sweep = tables.sweep
        later = update(sweep).where(sweep.c.succeeded_at < operation.at).values(succeeded_at=operation.at)
        turn.connection.execute(later)
        return Done(), set()
    write_checkpoint(turn.connection, head.seq, head.now)
    return Done(), set()


@dataclass(slots=True)
class _Change:
    turn: Turn
    head: Head
    labels: Labels

    def set_limit(self, operation: op.SetLimit) -> tuple[Outcome, Woken]:
        connection = self.turn.connection
        book = read_rule_book(connection)
        try:
            tags = check_limit(operation.tags, operation.total, operation.protected, book.rules)
            rules = book.rules.with_quota(frozenset(tags))
        except (LimitError, RuleError) as error:
            field = error.field if isinstance(error, LimitError) else "tags"
            return Refused(Code.INVALID_LIMIT, str(error), field=field), set()
        limit_id, created = self._store_limit(tags, operation.total, operation.protected)
        detail = {"total": operation.total, "protected": operation.protected}
        self._event(Kind.LIMIT_SET, str(limit_id), tags, detail)
        if rules is not book.rules:
            self._store_rules({**self._stored_rules(), "label_rules": rules.to_document()})
        if book.rules.rule_for(frozenset(tags)) is None:
            recount(self.turn, rules, self.labels, frozenset(tags))
            write_checkpoint(connection, self.head.seq + 1, self.head.now)
        return Done(limit_id=limit_id, created=created), self._wake(tags)

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
        self._event(Kind.DEADLINES_SHIFTED, "deadlines", None, {"seconds": gap / SECOND})
        return Done(), set()

    def _shift(self, table: Table, microseconds: int, *also: ColumnElement[bool]) -> None:
        later = update(table).values(deadline=table.c.deadline + microseconds)
        self.turn.connection.execute(later.where(table.c.deadline.is_not(None), *also))

    def _store_limit(self, tags: Tags, total: Amounts, protected: Amounts) -> tuple[int, bool]:
        table, connection = tables.limit_rule, self.turn.connection
        values = {"tags": dict(tags), "total": dict(total), "protected": dict(protected)}
        key = label_key(tags)
        known = connection.execute(
            update(table).where(table.c.key == key).values(**values).returning(table.c.id)
        ).scalar_one_or_none()
        if known is not None:
            return known, False
        return connection.execute(
            insert(table).values(key=key, **values).returning(table.c.id)
        ).scalar_one(), True

    def _stored_rules(self) -> dict[str, object]:
        document: dict[str, object] = self.turn.connection.execute(
            select(tables.rule_set.c.document)
        ).scalar_one()
        return document

    def _store_rules(self, document: Mapping[str, object]) -> None:
        self.turn.connection.execute(update(tables.rule_set).values(document=dict(document)))

    def _event(
        self, kind: Kind, subject: str, tags: Tags | None, detail: Mapping[str, object] | None
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
            )
        )
        connection.execute(
            update(tables.ledger_head).values(seq=head.seq + 1, time=head.now, epoch=head.epoch + 1)
        )
        if not self.turn.sqlite:
            self.turn.execute(self.turn.texts.notify)

    def _wake(self, tags: Tags | None) -> Woken:
        """Mark the queues of every label with these keys (None: of all labels)."""
        balance, label = tables.balance, tables.label
        marked = update(balance).where(balance.c.first_priority.is_not(None)).values(wake=True)
        if tags is not None:
            keys = ",".join(sorted(tags))
            of_these_keys = balance.c.label_id.in_(select(label.c.id).where(label.c.key_set == keys))
            marked = marked.where(of_these_keys | balance.c.is_pool)
        returned = marked.returning(balance.c.label_id)
        return set(self.turn.connection.execute(returned).scalars())
