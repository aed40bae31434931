"""Counting in what runs when labels change: every live application gets its labels anew."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sqlalchemy import select, update

from rm_service.domain.amounts import Amounts, least, plus
from rm_service.domain.application import HOLDING, State
from rm_service.domain.devices import DEVICE_KEY, amounts_of, device_labels, device_rule, read_held
from rm_service.domain.label_rules import ChargedLabel, Kind, LabelRule, LabelRules, RuleError
from rm_service.domain.tags import TagError, Tags, label_key
from rm_service.ledger import tables
from rm_service.ledger.documents import Documents
from rm_service.ledger.label_ids import LabelIds
from rm_service.ledger.rulebook import Labels
from rm_service.ledger.turn import Turn

CHUNK = 5_000


@dataclass(slots=True)
class _Sum:
    label_id: int
    locked: Amounts = field(default_factory=dict)
    used: Amounts = field(default_factory=dict)
    seen: Amounts = field(default_factory=dict)
    applications: int = 0


@dataclass(frozen=True, slots=True)
class _Charged:
    id: str
    label_ids: list[int]


@dataclass(frozen=True, slots=True)
class _Live:
    id: str
    state: State
    tags: Tags
    label_ids: list[int]
    held: Amounts
    shown: Amounts


class RulesDoNotFitError(ValueError):
    """A live application has a tag that the new rules cannot read. Nothing was changed."""

    def __init__(self, application_id: str, error: TagError) -> None:
        self.application_id = application_id
        super().__init__(f"the label rules do not fit application {application_id}: {error}")


def recount(turn: Turn, rules: LabelRules, labels: Labels, keys: frozenset[str] | None) -> None:
    """Charge what runs to the labels of `rules`.

    With `keys` only the labels of that one new key set are counted in; without, every balance is built anew.
    """
    sums: dict[int, _Sum] = {}
    ids = LabelIds(turn, labels)
    for chunk in _live(turn, keys):
        changed = []
        for application in chunk:
            try:
                charged = _with_ids(ids, rules.labels_for(application.tags), application.held)
            except TagError as error:
                raise RulesDoNotFitError(application.id, error) from error
            label_ids = [label_id for label_id, _ in charged]
            if label_ids != application.label_ids:
                changed.append(_Charged(application.id, label_ids))
            _count(sums, application, charged, keys)
        documents = Documents(sqlite=turn.sqlite)
        turn.write(documents.update(tables.application, "id", ["label_ids"]), changed)
    if keys is None:
        nothing = {"locked": {}, "used": {}, "seen": {}, "applications": 0}
        turn.connection.execute(update(tables.balance).values(**nothing))
    ids.write(ids.new.keys())
    _write(turn, sums)


def check_holders_of_devices(turn: Turn, rules: LabelRules) -> None:
    """Refuse rules under which who holds units of devices would lose their node: nobody could give them back.

    Raises RuleError.
    """
    held, application, label = tables.application_device.c, tables.application.c, tables.label.c
    holders = select(held.application_id, held.label_id).distinct().subquery()
    query = (
        select(application.id, application.tags, label.key)
        .join(holders, holders.c.application_id == application.id)
        .join(tables.label, label.id == holders.c.label_id)
    )
    for row in turn.connection.execute(query):
        if _node_of(row.id, row.tags, rules) != row.key:
            reason = f"application {row.id} holds devices, and would not be charged to {row.key} any more"
            raise RuleError("label_rules", reason)


def _node_of(application_id: str, tags: Tags, rules: LabelRules) -> str | None:
    """The key of the node to which these tags are charged, if there is one."""
    try:
        labels = rules.labels_for(tags)
    except TagError as error:
        raise RulesDoNotFitError(application_id, error) from error
    nodes = [each.key for each in labels if each.rule.kind is Kind.CAPACITY and "node" in each.tags]
    return nodes[0] if nodes else None


def _count(
    sums: dict[int, _Sum],
    application: _Live,
    charged: Iterable[tuple[int, LabelRule]],
    keys: frozenset[str] | None,
) -> None:
    if application.state not in HOLDING:
        return
    for label_id, rule in charged:
        if keys is None or rule.keys == keys:
            total = sums.setdefault(label_id, _Sum(label_id))
            part = rule.charge(application.held)
            if application.state is State.LOCKED:
                total.locked = plus(total.locked, part)
            else:
                total.used = plus(total.used, part)
            total.applications += 1
            if rule.external is not None and application.shown:
                total.seen = plus(total.seen, rule.charge(least(application.held, application.shown)))


def _live(turn: Turn, keys: frozenset[str] | None) -> Iterator[list[_Live]]:
    """The live applications (those that carry all of `keys`), a chunk at a time in the order of their ids."""
    table = tables.application
    columns = (
        table.c.id,
        table.c.state,
        table.c.tags,
        table.c.label_ids,
        table.c.requested,
        table.c.used,
        table.c.external,
        table.c.devices,
    )
    query = select(*columns).where(table.c.finished_at.is_(None)).order_by(table.c.id).limit(CHUNK)
    last: str | None = None
    while True:
        after = query if last is None else query.where(table.c.id > last)
        rows = turn.connection.execute(after).all()
        if not rows:
            return
        last = rows[-1].id
        yield [
            _Live(
                row.id,
                State(row.state),
                row.tags,
                row.label_ids,
                {**(row.requested if row.used is None else row.used), **amounts_of(read_held(row.devices))},
                {} if row.external is None else row.external["shown"],
            )
            for row in rows
            if keys is None or keys <= row.tags.keys()
        ]


def _with_ids(ids: LabelIds, charged: Iterable[ChargedLabel], held: Amounts) -> list[tuple[int, LabelRule]]:
    wanted = {label.key: (label.tags, label.rule) for label in charged}
    for tags in device_labels(held):
        wanted[label_key(tags)] = tags, device_rule(tags[DEVICE_KEY])
    given = ids.give({key: tags for key, (tags, _) in wanted.items()})
    return [(given[key], rule) for key, (_, rule) in wanted.items()]


def _write(turn: Turn, sums: dict[int, _Sum]) -> None:
    columns = ["locked", "used", "seen", "applications"]
    bulk = Documents(sqlite=turn.sqlite).update(tables.balance, "label_id", columns)
    rows = list(sums.values())
    for start in range(0, len(rows), CHUNK):
        turn.write(bulk, rows[start : start + CHUNK])
