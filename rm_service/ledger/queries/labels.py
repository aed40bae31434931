"""Questions about labels: what is on the account of each."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, Select, select

from rm_service.domain.accounts import GATE_KEY, Account
from rm_service.domain.selectors import Requirement, Selector
from rm_service.domain.tags import Tags, label_key
from rm_service.ledger import tables
from rm_service.ledger.queries.paging import Key, Page, gather, read_cursor, write_cursor
from rm_service.ledger.queries.rows import BALANCE, LABEL, account_of
from rm_service.ledger.queries.tag_index import named
from rm_service.ledger.rulebook import RuleBook

_LISTING = "labels"
_EVERYTHING = Selector()


def read_label(connection: Connection, book: RuleBook, tags: Tags) -> Account | None:
    """The account of the label with exactly these tags, None if nothing was ever charged to it.

    Index: uq_label_key, then the primary key of balance.
    """
    found = connection.execute(_accounts().where(tables.label.c.key == label_key(tags))).mappings().first()
    return None if found is None else account_of(found, book)


def list_labels(
    connection: Connection,
    book: RuleBook,
    *,
    selector: Selector = _EVERYTHING,
    limit: int = 100,
    cursor: str | None = None,
) -> Page[Account]:
    """A page of the labels whose tags the selector matches, the oldest first. Raises CursorError.

    What the selector names by value is found in label_tag (primary key), the rest among those in turn.
    """
    after = None if cursor is None else read_cursor(_LISTING, cursor, int)
    query = _accounts().where(*[having(term) for term in named(selector)]).order_by(tables.label.c.id)

    def read(last: Key | None, count: int) -> Sequence[Account]:
        page = query if last is None else query.where(tables.label.c.id > last[0])
        return [account_of(row, book) for row in connection.execute(page.limit(count)).mappings()]

    matches = (lambda account: selector.matches(account.label.tags)) if selector.requirements else None
    items, last = gather(read, lambda account: (account.label.id,), limit, after, matches)
    return Page(items, None if last is None else write_cursor(_LISTING, last))


def accounts_by(
    connection: Connection, book: RuleBook, keys: frozenset[str], requirements: Sequence[Requirement] = ()
) -> list[Account]:
    """The accounts of all labels that have exactly these tag keys, those with certain values if asked for.

    Index: ix_label_key_set, or label_tag for the values; the cost is the number of answers.
    """
    query = _accounts().where(tables.label.c.key_set == ",".join(sorted(keys)))
    rows = connection.execute(query.where(*[having(term) for term in requirements])).mappings()
    return [account_of(row, book) for row in rows]


def _accounts() -> Select[tuple[object, ...]]:
    """Labels with their balances; pools and gates are queues, not labels, and have no place here."""
    joined = tables.label.join(tables.balance, tables.balance.c.label_id == tables.label.c.id)
    return (
        select(*BALANCE, *LABEL)
        .select_from(joined)
        .where(~tables.balance.c.is_pool, tables.label.c.key_set != GATE_KEY)
    )


def having(term: Requirement) -> ColumnElement[bool]:
    """The condition of a `named` term on labels, answered by label_tag."""
    tag = tables.label_tag.c
    return tables.label.c.id.in_(select(tag.label_id).where(tag.key == term.key, tag.value.in_(term.values)))
