"""What there is of each signature of devices, and what of it is held."""

from dataclasses import dataclass

from sqlalchemy import Connection, select

from rm_service.domain.amounts import plus
from rm_service.domain.device_attributes import Attributes
from rm_service.domain.devices import DEVICE_KEY, dimension_of
from rm_service.ledger import tables
from rm_service.ledger.class_rows import learn_signatures
from rm_service.ledger.rulebook import RuleBook


@dataclass(frozen=True, slots=True)
class SignatureStanding:
    """The devices of one attribute set, on all nodes that are not lost. Amounts are thousandths of a unit."""

    name: str
    attributes: Attributes
    total: int
    held: int
    """Locked and used."""


def read_signatures(connection: Connection, book: RuleBook) -> list[SignatureStanding]:
    """Every signature that was ever registered, by name; it costs as many rows. Index: ix_label_key_set."""
    label, balance = tables.label, tables.balance
    rows = connection.execute(
        select(label.c.tags, balance.c.total, balance.c.locked, balance.c.used)
        .join(balance, balance.c.label_id == label.c.id)
        .where(label.c.key_set == DEVICE_KEY)
    ).all()
    learn_signatures(connection, book.signatures, [row.tags[DEVICE_KEY] for row in rows])
    found = []
    for row in rows:
        name = row.tags[DEVICE_KEY]
        dimension = dimension_of(name)
        held = plus(row.locked, row.used).get(dimension, 0)
        total = (row.total or {}).get(dimension, 0)
        found.append(SignatureStanding(name, book.signatures[name], total, held))
    return sorted(found, key=lambda each: each.name)
