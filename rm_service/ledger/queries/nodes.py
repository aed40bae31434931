"""Questions about nodes: what each has, what is taken, and whether it takes more."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, RowMapping, Select, and_, or_, select

from rm_service.domain.accounts import Account
from rm_service.domain.node_life import LOST
from rm_service.domain.placement import selectable
from rm_service.domain.registrations import Node
from rm_service.domain.selectors import Operator, Selector
from rm_service.domain.tags import label_key, node_tags
from rm_service.ledger import tables
from rm_service.ledger.queries.paging import Key, Page, gather, read_cursor, write_cursor
from rm_service.ledger.queries.rows import BALANCE, LABEL, NODE, account_of, node_of, prefixed
from rm_service.ledger.rulebook import RuleBook

_LISTING = "nodes"
_PREFIX = "node_"
_EVERYTHING = Selector()


class NodeState(StrEnum):
    """Whether a node takes new work."""

    SCHEDULABLE = "schedulable"
    DRAINING = "draining"
    DRAINED = "drained"
    """Draining, and nothing is held there any more."""
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A registered node and the account of its label: total, protected, locked, used, left."""

    node: Node
    account: Account

    @property
    def state(self) -> NodeState:
        balance = self.account.balance
        if balance.closed == LOST:
            return NodeState.LOST
        if balance.closed is None:
            return NodeState.SCHEDULABLE
        return NodeState.DRAINING if balance.applications else NodeState.DRAINED

    @property
    def over_limit(self) -> bool:
        """Whether more is held there than total - protected."""
        return self.account.over_limit()


def read_node(
    connection: Connection, book: RuleBook, instance: str, partition: str = ""
) -> NodeRecord | None:
    """One registered node, None if there is none of this name. Index: uq_label_key, then primary keys."""
    query = _nodes().where(tables.label.c.key == label_key(node_tags(instance, partition)))
    row = connection.execute(query).mappings().first()
    return None if row is None else _record(row, book)


def list_nodes(
    connection: Connection,
    book: RuleBook,
    *,
    selector: Selector = _EVERYTHING,
    limit: int = 100,
    cursor: str | None = None,
) -> Page[NodeRecord]:
    """A page of the registered nodes, by name, whose tags, attributes and `node` the selector matches.

    Raises CursorError. Index: ix_node_instance, also for `node=NAME`; everything else is matched in turn.
    """
    after = None if cursor is None else read_cursor(_LISTING, cursor, str, int)
    query = _nodes().order_by(tables.node.c.instance, tables.node.c.label_id)
    for term in selector.requirements:
        if term.key == "node" and term.operator is Operator.IN:
            query = query.where(tables.node.c.instance.in_(term.values))

    def read(last: Key | None, count: int) -> Sequence[NodeRecord]:
        page = query if last is None else _behind(query, last)
        return [_record(row, book) for row in connection.execute(page.limit(count)).mappings()]

    matches = (lambda record: selector.matches(selectable(record.node))) if selector.requirements else None
    items, last = gather(
        read, lambda record: (record.node.instance, record.node.label_id), limit, after, matches
    )
    return Page(items, None if last is None else write_cursor(_LISTING, last))


def _nodes() -> Select[tuple[object, ...]]:
    node, label, balance = tables.node, tables.label, tables.balance
    joined = node.join(label, label.c.id == node.c.label_id).join(
        balance, balance.c.label_id == node.c.label_id
    )
    return select(*prefixed(NODE, _PREFIX), *BALANCE, *LABEL).select_from(joined).where(~node.c.removed)


def _behind(query: Select[tuple[object, ...]], last: Key) -> Select[tuple[object, ...]]:
    name, label_id = last
    node = tables.node.c
    further = or_(node.instance > name, and_(node.instance == name, node.label_id > label_id))
    return query.where(node.instance >= name, further)


def _record(row: RowMapping, book: RuleBook) -> NodeRecord:
    return NodeRecord(node_of(row, _PREFIX), account_of(row, book))
