"""The writer: takes every operation that is waiting, decides them in one turn, commits once."""

import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread

import psycopg
import structlog
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from rm_service.domain import operations as op
from rm_service.domain.application import SECOND, Instant
from rm_service.domain.outcomes import Outcome
from rm_service.domain.view import Periods, View
from rm_service.ledger import whole
from rm_service.ledger.batch import Batch, Group, Result, asked_of_nodes, asks_for_nodes
from rm_service.ledger.commit_fate import Fate, fate_of
from rm_service.ledger.commits import Commit, session_of
from rm_service.ledger.errors import LedgerClosedError, LedgerUnavailableError, OutcomeUnknownError
from rm_service.ledger.label_ids import LabelIds
from rm_service.ledger.nodes import NodeWatch
from rm_service.ledger.rulebook import Labels, RuleBook, read_rule_book
from rm_service.ledger.turn import Turn
from rm_service.ledger.write import write

MAX_BATCH = 512
"""Operations a batch: beyond this a longer batch only makes everybody wait longer."""

_log = structlog.get_logger(__name__)
_DRIVER_ERRORS = (DBAPIError, psycopg.Error, sqlite3.Error)
_BAD_DATA = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.ProgrammingError,
    psycopg.NotSupportedError,
    sqlite3.DataError,
    sqlite3.IntegrityError,
    sqlite3.ProgrammingError,
    sqlite3.NotSupportedError,
)


class _AwayError(Exception):
    """Nobody has swept for so long that nobody could renew: deadlines are to be moved first."""

    def __init__(self, seen: Instant) -> None:
        self.seen = seen
        super().__init__()


@dataclass(slots=True)
class Waiting:
    """A group in the queue, and where its outcomes go."""

    group: Group
    dry_run: bool = False
    whole: op.WholeLedgerOperation | None = None
    future: Future[list[Outcome]] = field(default_factory=Future)

    @property
    def alone(self) -> bool:
        return self.whole is not None


class Writer:
    """The one thread of this process that changes the ledger."""

    def __init__(
        self, engine: Engine, labels: Labels, *, periods: Periods, outage_seconds: float | None
    ) -> None:
        self._engine = engine
        self._labels = labels
        self._periods = periods
        self._outage = None if outage_seconds is None else int(outage_seconds * SECOND)
        self._watch = NodeWatch()
        self._book: RuleBook | None = None
        self._connection: Connection | None = None
        self._session: int | None = None
        self._queue: deque[Waiting] = deque()
        self._ready = Condition()
        self._closing = False
        self._thread = Thread(target=self._run, name="ledger-writer", daemon=True)
        self.on_commit: list[Callable[[Commit], object]] = []
        """Called after each commit that made events, before its operations are answered: must be quick."""

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Finish what is waiting, then stop."""
        with self._ready:
            self._closing = True
            self._ready.notify()
        self._thread.join()
        self._disconnect()
        self._engine.dispose()

    def enqueue(self, waiting: Waiting) -> Future[list[Outcome]]:
        with self._ready:
            if self._closing:
                raise LedgerClosedError
            self._queue.append(waiting)
            self._ready.notify()
        return waiting.future

    def waiting(self) -> int:
        """How many groups stand in the queue."""
        return len(self._queue)

    def _run(self) -> None:
        while True:
            with self._ready:
                while not self._queue and not self._closing:
                    self._ready.wait()
                if not self._queue:
                    return
                batch = self._take()
            self._serve(batch)

    def _take(self) -> list[Waiting]:
        """The groups of the next batch: as many as fit, of one sort, in their order."""
        first = self._queue.popleft()
        batch, size = [first], first.group.weight()
        while self._queue and not first.alone:
            following = self._queue[0]
            size += following.group.weight()
            if size > MAX_BATCH or following.alone or following.dry_run is not first.dry_run:
                break
            batch.append(self._queue.popleft())
        return batch

    def _serve(self, batch: Sequence[Waiting], *, again: bool = False) -> None:
        """Give every group of the batch its outcomes, one way or another."""
        try:
            self._transact(batch)
        except OutcomeUnknownError as error:
            self._fail(batch, error)
        except _DRIVER_ERRORS as error:
            self._mend(batch, error.orig if isinstance(error, DBAPIError) else error, again=again)
        except Exception as error:  # noqa: BLE001 - a fault in one group must not end the writer
            if len(batch) == 1:
                _log.exception("operation_failed", operations=str(batch[0].group.operations)[:500])
                self._fail(batch, error)
            else:
                self._one_by_one(batch)

    def _mend(self, batch: Sequence[Waiting], error: BaseException | None, *, again: bool) -> None:
        """Nothing was committed. Bad data is the fault of one group; anything else is tried once more."""
        text = str(error).strip()
        if not isinstance(error, _BAD_DATA):
            _log.warning("database_unavailable", error=text, again=again)
            if again:
                self._fail(batch, LedgerUnavailableError(text))
            else:
                self._serve(batch, again=True)
        elif len(batch) > 1:
            self._one_by_one(batch)
        else:
            _log.error("operation_refused_by_database", error=text)
            self._fail(batch, error)

    def _one_by_one(self, batch: Sequence[Waiting]) -> None:
        for waiting in batch:
            self._serve([waiting])

    def _fail(self, batch: Sequence[Waiting], error: BaseException) -> None:
        for waiting in batch:
            if not waiting.future.done():
                waiting.future.set_exception(error)

    def _transact(self, batch: Sequence[Waiting]) -> None:
        connection = self._connect()
        turn = Turn(connection)
        woken: set[int] = set()
        results: list[Result] = []
        view: View | None = None
        try:
            self._prepare(connection, batch)
            connection.begin()
            operation = batch[0].whole
            if operation is not None:
                outcome, woken = whole.run(turn, operation, turn.take(), self._labels)
                results = [[outcome]]
                turn.commit()
                if not isinstance(operation, op.RecordSweep | op.WriteCheckpoint):
                    self._book = None
                    self._watch.forget()
            else:
                view, results, ids = self._decide(turn, batch)
                if batch[0].dry_run:
                    turn.roll_back()
                else:
                    write(turn, view, ids)
                    turn.commit()
                    ids.settle()
        except _AwayError as away:
            turn.roll_back()
            self._transact([Waiting(Group(()), whole=op.ShiftDeadlines(away.seen))])
            self._transact(batch)
            return
        except BaseException as error:
            if not self._survived(turn, view, error):
                raise
        if view is not None and batch[0].dry_run:
            self._watch.spoil(view.changed_accounts)
        elif view is not None:
            self._watch.committed(view, view.seq - len(view.events))
            woken = view.woken
        if not batch[0].dry_run and (view is None or view.events):
            self._tell(Commit(view.events if view is not None else (), self._session))
        self._committed(batch, results, woken)

    def _prepare(self, connection: Connection, batch: Sequence[Waiting]) -> None:
        """Do what takes long and needs no turn; whether it still holds is seen when there is one."""
        groups = [waiting.group for waiting in batch]
        if not any(asks_for_nodes(group) for group in groups):
            return
        if self._book is None:
            with connection.begin():
                self._book = read_rule_book(connection, self._labels.known)
        wanted = [asked for group in groups for asked in asked_of_nodes(group, self._book)]
        self._watch.prepare(connection, self._book, self._labels, wanted)

    def _tell(self, commit: Commit) -> None:
        for callback in self.on_commit:
            try:
                callback(commit)
            except Exception:  # noqa: BLE001 - the commit stands, whatever a listener makes of it
                _log.exception("on_commit_failed")

    def _decide(self, turn: Turn, batch: Sequence[Waiting]) -> tuple[View, list[Result], LabelIds]:
        """Plan with the rules that we know, and again if the turn shows that they have changed."""
        groups = [waiting.group for waiting in batch]
        while True:
            if self._book is None:
                turn.take()
                self._book = read_rule_book(turn.connection, self._labels.known)
            ids = LabelIds(turn, self._labels)
            plan = Batch(turn, self._book, self._labels, ids, self._watch, self._periods)
            plan.plan(groups)
            rows = turn.read(plan.wanted)
            head = turn.take()
            if self._outage is not None and 0 < head.swept_at < head.now - self._outage:
                raise _AwayError(head.swept_at)
            if head.epoch == self._book.epoch:
                return *plan.run(groups, head, rows), ids
            self._book = None

    def _survived(self, turn: Turn, view: View | None, error: BaseException) -> bool:
        """Whether the commit took place although the connection broke; raises if nobody can tell."""
        self._watch.forget()
        first = view.events[0] if view is not None and view.events else None
        broke = not turn.sqlite and turn.driver.closed and isinstance(error, _DRIVER_ERRORS)
        self._disconnect()
        if first is None or not broke:
            return False
        fate = fate_of(self._engine, first)
        if fate is Fate.UNKNOWN:
            raise OutcomeUnknownError from error
        return fate is Fate.COMMITTED

    def _committed(self, batch: Sequence[Waiting], results: Sequence[Result], woken: set[int]) -> None:
        """Hand out the outcomes; queues where something was freed are looked at next."""
        if woken:
            wakes = Group([op.Wake(label_id) for label_id in sorted(woken)])
            with self._ready:
                self._queue.appendleft(Waiting(wakes))
        for waiting, result in zip(batch, results, strict=True):
            waiting.future.set_result(result)

    def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect()
            self._session = session_of(self._connection)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.invalidate()
                connection.close()
            except SQLAlchemyError as error:
                _log.debug("writer_disconnect", error=str(error))
