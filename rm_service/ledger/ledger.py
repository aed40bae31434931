"""The ledger's one door: every change of an amount is an operation handed to `Ledger.submit`."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from sqlalchemy import Engine, select
from sqlalchemy.exc import DBAPIError

from rm_service.domain import operations as op
from rm_service.domain.application import SECOND
from rm_service.domain.outcomes import Outcome, Refused
from rm_service.domain.tags import Tags
from rm_service.domain.view import Periods
from rm_service.ledger import tables
from rm_service.ledger.batch import Group
from rm_service.ledger.commits import Commit
from rm_service.ledger.database import reader_engine, writer_engine
from rm_service.ledger.errors import LedgerUnavailableError
from rm_service.ledger.rulebook import Labels, RuleBook, read_rule_book
from rm_service.ledger.writer import Waiting, Writer

BOOK_SECONDS = 1.0
"""How long a rule book is used for preparing requests before its epoch is looked at again."""


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """What the ledger can be told. Seconds, unless said otherwise."""

    url: str
    wait_age_seconds: int = 600
    """How long the first waiter may be passed by smaller ones behind it."""
    echo_seconds: int = 30
    """How long a client may take to confirm that it has ended an allocation."""
    completing_seconds: int = 30
    """How long an application without members stays open for new ones."""
    outage_seconds: float | None = None
    """Without a sweep for so long nobody could renew: deadlines are moved before anything is decided."""
    rules: Mapping[str, object] | None = None
    """`conversions` and `label_rules` as in config/default.yaml; None leaves those in the database."""


@dataclass(slots=True)
class Ledger:
    """The ledger on one database. Open it once a process; every method may be called from any thread."""

    settings: LedgerSettings
    readers: Engine = field(init=False)
    """For queries: they see what was committed, and take no turn."""
    labels: Labels = field(init=False, default_factory=Labels)
    _writer: Writer = field(init=False)
    _book: RuleBook | None = field(init=False, default=None)
    _book_checked: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.readers = reader_engine(self.settings.url)
        writers = writer_engine(self.settings.url)
        self._writer = Writer(
            writers,
            self.labels,
            periods=Periods(
                wait_age=self.settings.wait_age_seconds * SECOND,
                echo=self.settings.echo_seconds * SECOND,
                completing=self.settings.completing_seconds * SECOND,
            ),
            outage_seconds=self.settings.outage_seconds,
        )

    def open(self) -> None:
        """Start the writer and put the configured rules into force.

        Raises LedgerUnavailableError, and ValueError if the rules are refused.
        """
        self._writer.start()
        if self.settings.rules is not None:
            outcome = self.submit_whole(op.ChangeRules(self.settings.rules))
            if isinstance(outcome, Refused):
                raise ValueError(outcome.detail)

    def close(self) -> None:
        """Finish what was handed in, then stop. Nothing handed in afterwards is taken."""
        self._writer.close()
        self.readers.dispose()

    def on_commit(self, callback: Callable[[Commit], object]) -> None:
        """Have `callback` called on the writer's thread after each commit here; it must be quick."""
        self._writer.on_commit.append(callback)

    def submit(self, operations: Sequence[op.DecidedOperation], *, atomic: bool = False) -> list[Outcome]:
        """Carry out operations in their order; the outcomes come when they are committed.

        `atomic`: all of them or none, and a wait counts as a refusal. Otherwise each stands for itself.
        Raises LedgerUnavailableError (nothing changed), OutcomeUnknownError, LedgerClosedError.
        """
        return self.enqueue(operations, atomic=atomic).result()

    def enqueue(
        self,
        operations: Sequence[op.DecidedOperation],
        *,
        atomic: bool = False,
        looks: Sequence[op.Observe] = (),
    ) -> Future[list[Outcome]]:
        """As `submit`, without waiting. `looks` are told before; their outcomes stand before the others'.

        What they say of a place of which nothing is known is written down only if it is used then.
        """
        return self._writer.enqueue(Waiting(Group(operations, atomic, looks)))

    def explain(self, operation: op.DecidedOperation, looks: Sequence[op.Observe] = ()) -> Outcome:
        """What `submit` would answer just now, knowing of these looks; nothing is changed."""
        return self._writer.enqueue(Waiting(Group((operation,), looks=looks), dry_run=True)).result()[-1]

    def submit_whole(self, operation: op.WholeLedgerOperation) -> Outcome:
        """Carry out an operation that touches the whole ledger, in a turn of its own."""
        outcome = self.enqueue_whole(operation).result()[0]
        self._book_checked = 0.0  # who set a limit sees it in the next answer
        return outcome

    def enqueue_whole(self, operation: op.WholeLedgerOperation) -> Future[list[Outcome]]:
        """As `submit_whole`, without waiting; the one outcome is in a list."""
        return self._writer.enqueue(Waiting(Group(()), whole=operation))

    def waiting(self) -> int:
        """How many requests stand before the writer."""
        return self._writer.waiting()

    def book(self, *, fresh: bool = False) -> RuleBook:
        """Rules, limits and classes in force, at most a second old unless `fresh`: for preparing a request
        and for showing them, never for a grant.
        """
        now = time.monotonic()
        book = self._book
        if book is not None and not fresh and now - self._book_checked < BOOK_SECONDS:
            return book
        try:
            with self.readers.connect() as connection:
                epoch = connection.execute(select(tables.ledger_head.c.epoch)).scalar_one()
                if book is None or book.epoch != epoch:
                    book = read_rule_book(connection, self.labels.known)
        except DBAPIError as error:
            raise LedgerUnavailableError(str(error.orig)) from error
        self._book, self._book_checked = book, now
        return book

    def label_tags(self, label_ids: Sequence[int]) -> list[Tags]:
        """The tags of labels, in the order of their ids as given."""
        known = {label_id: self.labels.tags_of(label_id) for label_id in label_ids}
        if None in known.values():
            with self.readers.connect() as connection:
                found = self.labels.of_ids(connection, label_ids)
            known = {label_id: tags for label_id, (_, tags) in found.items()}
        return [tags for label_id in label_ids if (tags := known.get(label_id)) is not None]
