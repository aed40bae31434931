"""The audit's main part: every balance against the sum of the applications, and against the events."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, func, select

from rm_service.domain.account_rules import label_rule
from rm_service.domain.accounts import Account, Balance, Label, only_queues
from rm_service.domain.amounts import NOTHING, Amounts, least
from rm_service.domain.application import HOLDING, State
from rm_service.domain.devices import DEVICE_KEY, amounts_of, device_labels, read_held
from rm_service.domain.fold import Fold, Standing
from rm_service.domain.tags import TagError, Tags, label_key
from rm_service.ledger import tables
from rm_service.ledger.audit_findings import Check, Findings
from rm_service.ledger.checkpoints import MARK
from rm_service.ledger.queries.events import stream_events
from rm_service.ledger.queries.rows import BALANCE, balance_of
from rm_service.ledger.rulebook import RuleBook, read_rule_book

_CHUNK = {"yield_per": 2_000}


@dataclass(slots=True)
class Books:
    """All labels and their balances, with the rules and limits in force."""

    book: RuleBook
    labels: dict[int, Label]
    ids: dict[str, int]
    """Label ids by canonical key."""
    balances: dict[int, Balance]
    labels_checked: int

    def charge(self, label_id: int, amounts: Amounts) -> Amounts:
        """The part of the amounts that a label counts."""
        label = self.labels.get(label_id)
        return NOTHING if label is None or label.rule is None else label.rule.charge(amounts)

    def tags(self, label_id: int) -> Tags | None:
        label = self.labels.get(label_id)
        return None if label is None else label.tags

    def accounts(self) -> Iterator[Account]:
        for label_id, label in self.labels.items():
            balance = self.balances.get(label_id)
            if balance is not None:
                yield Account(label, self.book.limits.resolve(label.tags), balance)


def read_books(connection: Connection) -> Books:
    """Read all labels and balances."""
    book = read_rule_book(connection)
    table = tables.label.c
    labels = {}
    for row in connection.execute(select(table.id, table.key, table.tags).execution_options(**_CHUNK)):
        rule = label_rule(book.rules, row.tags)
        labels[row.id] = Label(row.id, row.key, row.tags, rule)
    rows = connection.execute(select(*BALANCE).execution_options(**_CHUNK)).mappings()
    balances = {row["label_id"]: balance_of(row) for row in rows}
    ids = {label.key: label.id for label in labels.values()}
    checked = sum(not only_queues(label.tags) for label in labels.values())
    return Books(book, labels, ids, balances, checked)


def check_sums(connection: Connection, books: Books, findings: Findings) -> int:
    """Sum the live applications anew and compare; their number is returned."""
    table = tables.application.c
    columns = (
        table.id,
        table.state,
        table.tags,
        table.label_ids,
        table.requested,
        table.used,
        table.external,
        table.devices,
    )
    live = select(*columns).where(table.finished_at.is_(None)).execution_options(**_CHUNK)
    sums: dict[int, Standing] = {}
    seen: dict[int, dict[str, int]] = {}
    count = 0
    for row in connection.execute(live).mappings():
        count += 1
        _check_labels(row, books, findings)
        _add(sums, row, books)
        _add_seen(seen, row, books)
    for label_id in sorted(sums.keys() | books.balances.keys() | books.labels.keys()):
        _compare(Check.BALANCE, label_id, sums.get(label_id, Standing()), books, findings)
        _compare_seen(label_id, seen.get(label_id, {}), books, findings)
    return count


def check_events(connection: Connection, books: Books, last: int, findings: Findings) -> int:
    """Fold the events since the newest checkpoint and compare; the number of these events is returned."""
    table = tables.checkpoint.c
    seq = connection.execute(select(func.max(table.seq)).where(table.label_id == MARK)).scalar_one() or 0
    written = (
        select(tables.checkpoint).where(table.seq == seq, table.label_id != MARK).execution_options(**_CHUNK)
    )
    start = {row["label_id"]: _standing(row) for row in connection.execute(written).mappings()}
    fold = Fold(seq, start, books.charge)
    for event in stream_events(connection, seq):
        fold.follow(event)
    for broken in fold.breaks:
        findings.add(Check.EVENT_ORDER, broken.reason, broken.before, broken.after)
    findings.add(Check.EVENT_ORDER, "last event", last, fold.seq)
    for label_id in sorted(fold.standings.keys() | books.balances.keys()):
        standing = fold.standings.get(label_id, Standing())
        _compare(Check.EVENTS, label_id, standing, books, findings)
        _compare_room(label_id, standing, books, findings)
    return fold.events


def _check_labels(row: RowMapping, books: Books, findings: Findings) -> None:
    try:
        keys = [label.key for label in books.book.rules.labels_for(row["tags"])]
        keys += [label_key(tags) for tags in device_labels(_held_devices(row))]
    except TagError as error:
        findings.add(Check.LABELS, "tags", "tags that the rules can read", str(error), subject=row["id"])
        return
    found = sorted(_key(books, label_id) for label_id in row["label_ids"])
    findings.add(Check.LABELS, "label_ids", sorted(keys), found, subject=row["id"])


def _key(books: Books, label_id: int) -> str:
    label = books.labels.get(label_id)
    return f"no label {label_id}" if label is None else label.key


def _held(row: RowMapping) -> Amounts:
    amounts: Amounts = row["requested"] if row["state"] == State.LOCKED else row["used"] or NOTHING
    return amounts


def _held_devices(row: RowMapping) -> Amounts:
    return amounts_of(read_held(row["devices"])) if row["state"] in HOLDING else NOTHING


def _add(sums: dict[int, Standing], row: RowMapping, books: Books) -> None:
    state = State(row["state"])
    if state not in HOLDING:
        return
    held = {**_held(row), **_held_devices(row)}
    for label_id in row["label_ids"]:
        total = sums.setdefault(label_id, Standing())
        total.applications += 1
        part = total.locked if state is State.LOCKED else total.used
        for dimension, amount in books.charge(label_id, held).items():
            part[dimension] = part.get(dimension, 0) + amount


def _add_seen(seen: dict[int, dict[str, int]], row: RowMapping, books: Books) -> None:
    """What external managers show of an application, at most what it holds."""
    if row["external"] is None or State(row["state"]) not in HOLDING:
        return
    held = _held(row)
    for label_id in row["label_ids"]:
        if label_id in books.labels and books.labels[label_id].is_external:
            sums = seen.setdefault(label_id, {})
            for dimension, amount in books.charge(label_id, least(held, row["external"]["shown"])).items():
                sums[dimension] = sums.get(dimension, 0) + amount


def _compare_seen(label_id: int, expected: Mapping[str, int], books: Books, findings: Findings) -> None:
    balance = books.balances.get(label_id)
    found = {} if balance is None else balance.seen
    for dimension in _dimensions(expected, found):
        amounts = expected.get(dimension, 0), found.get(dimension, 0)
        findings.add(Check.BALANCE, "seen", *amounts, label=books.tags(label_id), dimension=dimension)


def _standing(row: RowMapping) -> Standing:
    return Standing(
        dict(row["locked"]),
        dict(row["used"]),
        row["applications"],
        row["total"],
        row["protected"],
        row["closed"],
    )


def _compare(check: Check, label_id: int, expected: Standing, books: Books, findings: Findings) -> None:
    balance, tags = books.balances.get(label_id), books.tags(label_id)
    if balance is None or tags is None:
        what = "balance" if balance is None else "label"
        findings.add(check, what, "a row", None, label=tags, subject=f"label {label_id}")
        return
    for what, sums, amounts in (
        ("locked", expected.locked, balance.locked),
        ("used", expected.used, balance.used),
    ):
        for dimension in _dimensions(sums, amounts):
            found = amounts.get(dimension, 0)
            findings.add(check, what, sums.get(dimension, 0), found, label=tags, dimension=dimension)
    findings.add(check, "applications", expected.applications, balance.applications, label=tags)


def _compare_room(label_id: int, expected: Standing, books: Books, findings: Findings) -> None:
    balance, tags = books.balances.get(label_id), books.tags(label_id)
    if balance is not None and DEVICE_KEY not in (tags or {}):  # its total is that of the nodes
        findings.add(Check.EVENTS, "total", expected.total, balance.total, label=tags)
        findings.add(Check.EVENTS, "protected", expected.protected, balance.protected, label=tags)
        findings.add(Check.EVENTS, "closed", expected.closed, balance.closed, label=tags)


def _dimensions(*amounts: Iterable[str]) -> list[str]:
    return sorted(set().union(*amounts))
