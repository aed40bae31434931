"""Resource classes: created, removed, and how much of what they select there is and is held."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from rm_service.domain import operations as op
from rm_service.domain.class_book import ClassBook, ResourceClass
from rm_service.domain.class_expressions import Outcome as Verdict
from rm_service.domain.device_selection import UNIT
from rm_service.domain.outcomes import Outcome
from rm_service.domain.resource_classes import ResourceClassSpec, SelectorReason, explain, match
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.events import last_seq
from rm_service.ledger.queries.signatures import SignatureStanding, read_signatures

NONE: Mapping[str, str] = MappingProxyType({})

MAX_REASONS = 8
"""So many different reasons why devices cannot be compared are told."""


@dataclass(frozen=True, slots=True)
class ClassStatus:
    """How a class stands. Amounts are thousandths of a device.

    A device counts in every class that selects it: the sum over classes means nothing.
    """

    allocatable: int = 0
    requested: int = 0
    """Held, whoever asked for it and by which class."""
    uncomparable: int = 0
    """Devices (whole ones) of which it cannot be said whether the class selects them."""
    reasons: tuple[str, ...] = ()
    """Why, each reason once."""


@dataclass(frozen=True, slots=True)
class ClassStanding:
    """A class and how it stands."""

    resource_class: ResourceClass
    status: ClassStatus


@dataclass(frozen=True, slots=True)
class Standings:
    """All classes by name, as they stood when the outbox had come to `seq`, or a little later."""

    seq: int
    items: Sequence[ClassStanding]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Devices that two classes share, in thousandths."""

    other: str
    allocatable: int
    free: int
    free_without: int
    """What is left to the class if the other takes all that is free of what they share."""


@dataclass(frozen=True, slots=True)
class SignatureExplained:
    """How a class comes out for the devices of one signature."""

    standing: SignatureStanding
    selected: bool
    selectors: Sequence[SelectorReason]


@dataclass(frozen=True, slots=True)
class ClassExplained:
    """Why a class stands as it does."""

    standing: ClassStanding
    signatures: Sequence[SignatureExplained]
    overlaps: Sequence[Overlap]


@dataclass(frozen=True, slots=True)
class ResourceClasses:
    """The classes of one ledger."""

    ledger: Ledger

    def create(
        self,
        name: str,
        spec: ResourceClassSpec,
        labels: Mapping[str, str] = NONE,
        annotations: Mapping[str, str] = NONE,
    ) -> Outcome:
        """Create a class; Done.resource_class is the stored one. Refused: class_exists."""
        created = ResourceClass(name, str(uuid.uuid4()), spec, dict(labels), dict(annotations))
        return self.ledger.submit_whole(op.CreateClass(created))

    def remove(self, name: str, uid: str | None = None) -> Outcome:
        """Remove a class, only if it is the one with this uid where one is given. Refused: unknown_class."""
        return self.ledger.submit_whole(op.RemoveClass(name, uid))

    def standings(self) -> Standings:
        """All classes; it costs as much as there are classes and signatures, not devices."""
        seq, book, signatures = self._read()
        items = [
            ClassStanding(known, _status(book, known.name, signatures)) for known in book.classes.values()
        ]
        return Standings(seq, items)

    def standing(self, name: str) -> tuple[int, ClassStanding | None]:
        """One class, with the number of the outbox's last event."""
        seq, book, signatures = self._read()
        known = book.classes.get(name)
        return seq, None if known is None else ClassStanding(known, _status(book, name, signatures))

    def explain(self, name: str) -> ClassExplained | None:
        """Per signature which expression decided, and what the class shares with others."""
        _, book, signatures = self._read()
        known = book.classes.get(name)
        if known is None:
            return None
        explained = [
            SignatureExplained(each, book.selects(name, each.name), explain(known.spec, each.attributes))
            for each in signatures
        ]
        overlaps = [
            found
            for other in book.classes
            if other != name and (found := _overlap(book, name, other, signatures)) is not None
        ]
        return ClassExplained(ClassStanding(known, _status(book, name, signatures)), explained, overlaps)

    def _read(self) -> tuple[int, ClassBook, list[SignatureStanding]]:
        with self.ledger.readers.connect() as connection:
            seq = last_seq(connection)  # first: what comes in between is told again rather than missed
            book = self.ledger.book(fresh=True)
            return seq, book.classes, read_signatures(connection, book)


def _status(book: ClassBook, name: str, signatures: Sequence[SignatureStanding]) -> ClassStatus:
    allocatable = requested = uncomparable = 0
    reasons: dict[str, None] = {}
    for each in signatures:
        verdict = book.verdict(name, each.name)
        if verdict is Verdict.HOLDS:
            allocatable += each.total
            requested += each.held
        elif verdict is Verdict.UNCOMPARABLE and each.total:
            uncomparable += each.total // UNIT
            if len(reasons) < MAX_REASONS:
                found = match(book.classes[name].spec, each.attributes).uncomparable
                reasons.update({f"{reason.text}: {reason.why}": None for reason in found})
    return ClassStatus(allocatable, requested, uncomparable, tuple(reasons)[:MAX_REASONS])


def _overlap(
    book: ClassBook, name: str, other: str, signatures: Sequence[SignatureStanding]
) -> Overlap | None:
    selected = [each for each in signatures if each.total and book.selects(name, each.name)]
    shared = [each for each in selected if book.selects(other, each.name)]
    if not shared:
        return None
    free = sum(max(0, each.total - each.held) for each in shared)
    free_of_all = sum(max(0, each.total - each.held) for each in selected)
    return Overlap(other, sum(each.total for each in shared), free, free_of_all - free)
