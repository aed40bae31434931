"""The rule book: label rules and limits of one epoch, and the labels as this process knows them.

Labels never change and are never deleted, so a copy in memory cannot be wrong; what a limit says about them
is kept only as long as the epoch lasts.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy import Connection, select

from rm_service.domain.account_rules import label_rule
from rm_service.domain.accounts import Account, Balance, Label
from rm_service.domain.class_book import ClassBook
from rm_service.domain.conversions import Conversions
from rm_service.domain.device_attributes import Attributes
from rm_service.domain.label_rules import LabelRules
from rm_service.domain.limits import Limit, Limits
from rm_service.domain.tags import Tags
from rm_service.ledger import tables
from rm_service.ledger.class_rows import Known, learn_signatures, read_classes

T = TypeVar("T")

MAX_REMEMBERED = 200_000


@dataclass(slots=True)
class RuleBook:
    """Rules and limits of one epoch, and what they say about labels met so far."""

    epoch: int
    conversions: Conversions
    rules: LabelRules
    limits: Limits
    registrations: Mapping[str, int]
    """How often each client has registered."""
    classes: ClassBook
    signatures: dict[str, Attributes]
    """What the attributes of each signature of devices are: as far as this process has met it."""
    _standings: dict[int, tuple[Label, Limit | None]] = field(default_factory=dict)
    _charged: dict[tuple[str | None, ...], tuple[int, ...]] = field(default_factory=dict)

    def not_met(self, label_ids: Iterable[int]) -> list[int]:
        """Those of these labels that still have to be taken in."""
        if len(self._standings) >= MAX_REMEMBERED:
            self._standings.clear()
        return [label_id for label_id in label_ids if label_id not in self._standings]

    def learn(self, label_id: int, key: str, tags: Tags) -> None:
        """Take in a label: its rule, and the limit that counts for it."""
        self._standings[label_id] = self._standing(label_id, key, tags)

    def new_account(self, label_id: int, key: str, tags: Tags) -> Account:
        """The account of a label that has no rows yet."""
        label, limit = self._standing(label_id, key, tags)
        return Account(label, limit, Balance(label_id, {}, {}))

    def account(self, balance: Balance) -> Account:
        """The account of a label that was taken in."""
        label, limit = self._standings[balance.label_id]
        return Account(label, limit, balance)

    def _standing(self, label_id: int, key: str, tags: Tags) -> tuple[Label, Limit | None]:
        return Label(label_id, key, tags, label_rule(self.rules, tags)), self.limits.resolve(tags)

    def charged(self, tags: Tags) -> tuple[int, ...] | None:
        """The ids of the labels that these tags are charged to, if that was found out before."""
        return self._charged.get(tuple([tags.get(key) for key in self.rules.keys]))

    def remember_charged(self, tags: Tags, label_ids: tuple[int, ...]) -> None:
        """Only the values of tags that some rule names matter, so this serves any number of jobs."""
        if len(self._charged) >= MAX_REMEMBERED:
            self._charged.clear()
        self._charged[tuple([tags.get(key) for key in self.rules.keys])] = label_ids


def read_rule_book(connection: Connection, known: Known | None = None) -> RuleBook:
    """The rule book of the present epoch. `known`: what was met of devices and classes; others are added."""
    epoch = connection.execute(select(tables.ledger_head.c.epoch)).scalar_one()
    document: Mapping[str, object] = connection.execute(select(tables.rule_set.c.document)).scalar_one()
    rules = LabelRules.from_document(document["label_rules"])
    rows = connection.execute(
        select(
            tables.limit_rule.c.id,
            tables.limit_rule.c.tags,
            tables.limit_rule.c.total,
            tables.limit_rule.c.protected,
        )
    )
    limits = Limits([Limit(row.id, row.tags, row.total, row.protected) for row in rows], rules)
    clients = connection.execute(select(tables.si_client.c.rm_id, tables.si_client.c.registration))
    registrations = {row.rm_id: row.registration for row in clients}
    known = known or Known()
    learn_signatures(connection, known.signatures)
    classes = ClassBook(read_classes(connection, known), known.signatures)
    return RuleBook(
        epoch,
        Conversions.from_document(document["conversions"]),
        rules,
        limits,
        registrations,
        classes,
        known.signatures,
    )


class Labels:
    """The labels that this process has met, by id and by canonical key; and devices and classes."""

    def __init__(self) -> None:
        self.known = Known()
        self._by_id: dict[int, tuple[str, Tags]] = {}
        self._id_of: dict[str, int] = {}

    def id_of(self, key: str) -> int | None:
        return self._id_of.get(key)

    def tags_of(self, label_id: int) -> Tags | None:
        known = self._by_id.get(label_id)
        return None if known is None else known[1]

    def remember(self, rows: Iterable[tuple[int, str, Tags]]) -> None:
        if len(self._by_id) >= MAX_REMEMBERED:
            self._by_id, self._id_of = {}, {}
        for label_id, key, tags in rows:
            self._by_id[label_id] = (key, tags)
            self._id_of[key] = label_id

    def of_ids(self, connection: Connection, label_ids: Iterable[int]) -> dict[int, tuple[str, Tags]]:
        """Key and tags of each of these labels, asking the database for those not met before."""
        columns = (tables.label.c.id, tables.label.c.key, tables.label.c.tags)
        found = {label_id: self._by_id.get(label_id) for label_id in label_ids}
        missing = [label_id for label_id, known in found.items() if known is None]
        for chunk in _chunks(missing):
            rows = connection.execute(select(*columns).where(tables.label.c.id.in_(chunk)))
            fresh = [(row.id, row.key, row.tags) for row in rows]
            self.remember(fresh)
            found.update({label_id: (key, tags) for label_id, key, tags in fresh})
        return {label_id: known for label_id, known in found.items() if known is not None}

    def ids_of(self, connection: Connection, keys: Iterable[str]) -> dict[str, int]:
        """The id of each of these labels that exists."""
        columns = (tables.label.c.id, tables.label.c.key, tables.label.c.tags)
        found = {key: self._id_of.get(key) for key in keys}
        missing = [key for key, known in found.items() if known is None]
        for chunk in _chunks(missing):
            rows = connection.execute(select(*columns).where(tables.label.c.key.in_(chunk)))
            fresh = [(row.id, row.key, row.tags) for row in rows]
            self.remember(fresh)
            found.update({key: label_id for label_id, key, _ in fresh})
        return {key: label_id for key, label_id in found.items() if label_id is not None}


def _chunks(items: list[T]) -> Iterator[list[T]]:
    for start in range(0, len(items), 1000):
        yield items[start : start + 1000]
