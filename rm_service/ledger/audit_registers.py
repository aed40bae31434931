"""The audit's smaller parts: queues, what is finished, engines, nodes, and SQLite's tag table."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, and_, or_, select, text

from rm_service.domain.application import LIVE, State
from rm_service.ledger import tables
from rm_service.ledger.audit_balances import Books
from rm_service.ledger.audit_findings import MAX_DIFFERENCES, Check, Findings

_APPLICATION = tables.application.c
_MEMBERS = {
    "postgresql": "SELECT l.value::bigint, a.id::text, a.priority, a.wait_seq FROM application AS a,"
    " json_array_elements_text(a.waits_on) AS l WHERE a.finished_at IS NULL",
    "sqlite": "SELECT l.value, a.id, a.priority, a.wait_seq FROM application AS a,"
    " json_each(a.waits_on) AS l WHERE a.finished_at IS NULL",
}
_QUEUES = {
    "postgresql": "SELECT label_id, application_id::text, priority, seq FROM waiter",
    "sqlite": "SELECT label_id, application_id, priority, seq FROM waiter",
}
_TAGS = (
    "SELECT t.key, t.value, a.id FROM application AS a, json_each(a.tags) AS t WHERE a.finished_at IS NULL",
    "SELECT key, value, application_id FROM application_tag",
)


def check_waiters(connection: Connection, books: Books, findings: Findings) -> None:
    """The queues are what the waiting applications say, and the first of each is on its label's balance."""
    members, queues = _MEMBERS[connection.dialect.name], _QUEUES[connection.dialect.name]
    for label_id, application_id, priority, seq in _missing(connection, members, queues):
        tags = books.tags(label_id)
        findings.add(Check.WAITERS, "waiter", (priority, seq), None, label=tags, subject=str(application_id))
    for label_id, application_id, priority, seq in _missing(connection, queues, members):
        tags = books.tags(label_id)
        findings.add(Check.WAITERS, "waiter", None, (priority, seq), label=tags, subject=str(application_id))
    first: dict[int, tuple[int, int]] = {}
    waiter = tables.waiter.c
    ranks = select(waiter.label_id, waiter.priority, waiter.seq).order_by(
        waiter.label_id, waiter.priority.desc(), waiter.seq
    )
    for label_id, priority, seq in connection.execute(ranks.execution_options(yield_per=2_000)):
        first.setdefault(label_id, (priority, seq))
    for label_id, balance in books.balances.items():
        found = None if balance.first_priority is None else (balance.first_priority, balance.first_seq)
        tags = books.tags(label_id)
        findings.add(Check.WAITERS, "first waiter", first.get(label_id), found, label=tags)


def check_final(connection: Connection, findings: Findings) -> None:
    """What is final is not among the live (ix_application_live) and not due (ix_application_deadline)."""
    undead = select(_APPLICATION.id, _APPLICATION.state).where(
        _APPLICATION.finished_at.is_(None), _APPLICATION.state.not_in(LIVE)
    )
    for application_id, state in connection.execute(undead.limit(MAX_DIFFERENCES)):
        findings.add(Check.FINAL, "finished_at", f"a time, being {state}", None, subject=application_id)
    due = select(_APPLICATION.id, _APPLICATION.deadline).where(
        _APPLICATION.deadline.is_not(None), _APPLICATION.finished_at.is_not(None)
    )
    for application_id, deadline in connection.execute(due.limit(MAX_DIFFERENCES)):
        findings.add(Check.FINAL, "deadline", None, deadline, subject=application_id)


def check_engines(connection: Connection, findings: Findings) -> None:
    """Engines and used applications name each other."""
    engine, application = tables.engine, tables.application
    joined = engine.outerjoin(application, application.c.id == engine.c.application_id)
    columns = (engine.c.instance, application.c.state, application.c.engine)
    astray = or_(
        application.c.id.is_(None),
        application.c.state != State.USED,
        application.c.engine != engine.c.instance,
        application.c.engine.is_(None),
    )
    for instance, state, named in connection.execute(select(*columns).select_from(joined).where(astray)):
        findings.add(
            Check.ENGINES, "application", (State.USED.value, instance), (state, named), subject=instance
        )
    unknown = (
        select(application.c.id, application.c.engine)
        .select_from(application.outerjoin(engine, engine.c.instance == application.c.engine))
        .where(
            application.c.finished_at.is_(None),
            application.c.engine.is_not(None),
            or_(engine.c.instance.is_(None), engine.c.application_id != application.c.id),
        )
    )
    for application_id, named in connection.execute(unknown):
        findings.add(Check.ENGINES, "engine", named, None, subject=application_id)


def check_nodes(connection: Connection, books: Books, findings: Findings) -> None:
    """A node that is registered has a total on its label, one that was removed has none."""
    node, balance = tables.node, tables.balance
    joined = node.outerjoin(balance, balance.c.label_id == node.c.label_id)
    wrong = or_(
        and_(node.c.removed, balance.c.total.is_not(None)), and_(~node.c.removed, balance.c.total.is_(None))
    )
    columns = (node.c.instance, node.c.removed, node.c.label_id)
    for instance, removed, label_id in connection.execute(select(*columns).select_from(joined).where(wrong)):
        balance_found = books.balances.get(label_id)
        total = None if balance_found is None else balance_found.total
        expected = None if removed else "a total"
        findings.add(Check.NODES, "total", expected, total, label=books.tags(label_id), subject=instance)


def check_tag_index(connection: Connection, findings: Findings) -> None:
    """SQLite's table of tags is what the live applications carry; PostgreSQL keeps its index itself."""
    if connection.dialect.name != "sqlite":
        return
    carried, indexed = _TAGS
    for key, value, application_id in _missing(connection, carried, indexed):
        findings.add(Check.TAG_INDEX, key, value, None, subject=application_id)
    for key, value, application_id in _missing(connection, indexed, carried):
        findings.add(Check.TAG_INDEX, key, None, value, subject=application_id)


def _missing(connection: Connection, there: str, not_there: str) -> Iterator[tuple[Any, ...]]:
    """Rows of the first query that the second does not have."""
    difference = text(f"{there} EXCEPT {not_there} LIMIT {MAX_DIFFERENCES}")
    for row in connection.execute(difference):
        yield tuple(row)
