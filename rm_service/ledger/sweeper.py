"""The sweeper: ends what is past its deadline, by the same operations as everybody else.

The database says what is due, APScheduler only when to look. Each operation is judged again on settled rows,
so any number of replicas may sweep at once.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from threading import Event, Lock

import structlog
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from rm_service.domain import operations as op
from rm_service.domain.application import SECOND, Instant
from rm_service.domain.clients import ClientState
from rm_service.domain.outcomes import Done, Refused
from rm_service.ledger.due import Due, read_due
from rm_service.ledger.errors import LedgerClosedError, LedgerUnavailableError, OutcomeUnknownError
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.resync import give_up_unreported
from rm_service.ledger.schema import ensure_partitions

MISSED_SWEEPS = 2
"""After so many intervals without a sweep the service was away, and its absence counts for nobody."""

JITTER = 0.1
"""Part of the interval by which the time of a look varies, so that replicas do not look all at once."""

_AWAY = (LedgerUnavailableError, OutcomeUnknownError, SQLAlchemyError)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SweepSettings:
    """How often to look for what is due, and to write a checkpoint."""

    sweep_seconds: float = 5
    checkpoint_seconds: float = 3600
    pause_seconds: float = 60
    """A client that gives no sign of life for so long gets nothing new until it does."""
    stop_seconds: float = 3600
    """After so long it is given up: what it holds stays, or (`release_stopped`) is given back."""
    release_stopped: bool = False


@dataclass(slots=True)
class SweepReport:
    """What one sweep ended; what another replica was quicker with is not counted."""

    applications: int = 0
    """Ended because their deadline had passed: reclaimed or expired."""
    nodes: int = 0
    """Found silent and lost; `engines` likewise."""
    engines: int = 0
    stranded: int = 0
    """Applications given back because their node is lost."""
    clients_away: int = 0
    """Clients that were paused or stopped."""
    unreported: int = 0
    """Applications and nodes given up because their client, registered anew, did not report them again."""
    woken: int = 0
    """Labels whose queue was looked at: nobody else had done it, or time has passed there."""
    shifted: Instant = 0
    """By how much the deadlines were moved after an absence of the service, in microseconds."""
    checkpoint: bool = False
    seconds: float = 0

    def ended(self) -> int:
        """How much was ended in all; each step of an end that has several counts."""
        return self.applications + self.nodes + self.engines + self.stranded + self.unreported


class Sweeper:
    """Sweeps one ledger at an interval, from `start` to `stop`; `sweep` may also be called by itself.

    `on_sweep` is called after each sweep that ran to its end, `on_failure` after one that did not.
    """

    def __init__(
        self,
        ledger: Ledger,
        settings: SweepSettings,
        *,
        on_sweep: Callable[[SweepReport], object] | None = None,
        on_failure: Callable[[BaseException], object] | None = None,
    ) -> None:
        self._ledger = ledger
        self._settings = settings
        self._on_sweep = on_sweep
        self._on_failure = on_failure
        self._last_success: float | None = None
        self._partitions_made: date | None = None
        self._away = False
        self._refused = ""
        """Why something did not end in the last round, as far as a reason was given."""
        self._stopping = Event()
        self._sweeping = Lock()
        self._scheduler = BackgroundScheduler(executors={"default": ThreadPoolExecutor(1)}, timezone=UTC)

    def start(self) -> None:
        """Look at once, and then at every interval."""
        interval = self._settings.sweep_seconds
        self._scheduler.add_job(
            self._look_in,
            "interval",
            seconds=interval,
            jitter=interval * JITTER,
            max_instances=1,
            coalesce=True,
            misfire_grace_time=None,
            next_run_time=datetime.now(UTC),
        )
        self._scheduler.start()

    def stop(self) -> None:
        """Let a sweep that is running end its round, then look no more."""
        self._stopping.set()
        self._scheduler.shutdown()

    def last_success(self) -> float | None:
        """`time.monotonic()` of when a sweep of this process last got through; None if none has yet."""
        return self._last_success

    def sweep(self) -> SweepReport:
        """End everything that is due now. Raises LedgerUnavailableError and SQLAlchemyError."""
        with self._sweeping:
            started, report = time.monotonic(), SweepReport()
            due = self._look()
            if self._was_away(due):
                report.shifted = self._shift(due)
                due = self._look()
            due = self._end(due, report)
            self._look_after_clients(due, report)
            self._keep_house(due, report)
            report.seconds = time.monotonic() - started
        return report

    def _look_in(self) -> None:
        """One look of the scheduler: whatever goes wrong is told once, and the next look is another try."""
        try:
            report = self.sweep()
        except LedgerClosedError:
            return
        except Exception as error:  # noqa: BLE001 - the next look must come
            self._tell(error)
            return
        if self._away:
            self._away = False
            _log.info("sweep_recovered", shifted_seconds=report.shifted / SECOND)
        if self._on_sweep is not None:
            self._on_sweep(report)

    def _tell(self, error: Exception) -> None:
        if not isinstance(error, _AWAY):
            _log.error("sweep_failed", exc_info=error)
        elif not self._away:
            _log.warning("sweep_put_off", error=str(error).strip())
            self._away = True
        if self._on_failure is not None:
            self._on_failure(error)

    def _look(self) -> Due:
        with self._ledger.readers.connect() as connection:
            return read_due(connection)

    def _was_away(self, due: Due) -> bool:
        """Whether no replica has swept for so long that nobody could have renewed anything meanwhile."""
        allowed = MISSED_SWEEPS * self._settings.sweep_seconds * SECOND
        return due.succeeded_at > 0 and due.now - due.succeeded_at > allowed

    def _shift(self, due: Due) -> Instant:
        outcome = self._ledger.submit_whole(op.ShiftDeadlines(due.succeeded_at))
        if not isinstance(outcome, Done) or outcome.repeated:
            return 0
        gap = due.now - due.succeeded_at
        _log.warning("deadlines_shifted", seconds=gap / SECOND)
        return gap

    def _end(self, due: Due, report: SweepReport) -> Due:
        """Submit what is due, round after round, until nothing is; each round is noted as a sign of life.

        Marks are looked at in the first round only: a busy ledger always has some, which their own writer
        is about to look at.
        """
        report.woken += self._submit([op.Wake(label_id) for label_id in due.woken])
        while True:
            self._ledger.submit_whole(op.RecordSweep(due.now))
            self._last_success = time.monotonic()
            if not _anything(due) or self._stopping.is_set():
                return due
            before, changed = due, self._round(due, report)
            due = self._look()
            if not changed and _same(before, due):
                reason = self._refused or "nothing came of it"
                left = {"applications": due.applications[:5], "nodes": due.nodes[:5]}
                _log.error("due_but_not_ended", reason=reason, **left)
                return due

    def _round(self, due: Due, report: SweepReport) -> bool:
        """Whether anything came of it."""
        before, self._refused = report.ended(), ""
        silent = "no heartbeat before its deadline"
        report.nodes += self._submit(
            [
                op.LoseNode(name, silent, only_if_silent=True, partition=partition)
                for name, partition in due.nodes
            ]
        )
        report.applications += self._submit(
            [op.Reclaim(application_id) for application_id in due.applications]
        )
        report.engines += self._submit(
            [op.LoseEngine(name, f"engine {name}: {silent}") for name in due.engines]
        )
        stranded = [
            op.Lose(left.application_id, f"node {left.node}: {left.reason}", only_if_node_lost=True)
            for left in due.stranded
        ]
        report.stranded += self._submit(stranded)
        for client in due.unreported:
            report.unreported += give_up_unreported(self._ledger, client)
        return report.ended() > before

    def _submit(self, operations: Sequence[op.DecidedOperation]) -> int:
        """Carry them out; how many changed something."""
        outcomes = self._ledger.submit(operations) if operations else []
        self._refused = next((each.detail for each in outcomes if isinstance(each, Refused)), self._refused)
        return sum(isinstance(outcome, Done) and not outcome.repeated for outcome in outcomes)

    def _look_after_clients(self, due: Due, report: SweepReport) -> None:
        """Pause clients that have been away for a while, stop those that have been away for long."""
        for presence in due.clients:
            away = due.now - presence.seen_at
            stopped = away > self._settings.stop_seconds * SECOND
            state = ClientState.STOPPED if stopped else ClientState.PAUSED
            if away <= self._settings.pause_seconds * SECOND or presence.state == state:
                continue
            operation = op.SetClientState(
                id=presence.client,
                state=state,
                unseen_since=presence.seen_at + 1,
                give_up=stopped and self._settings.release_stopped,
            )
            outcome = self._ledger.submit_whole(operation)
            if isinstance(outcome, Done) and not outcome.repeated:
                report.clients_away += 1
                _log.warning(
                    "si_client_away", rm_id=presence.client, state=state.value, seconds=away / SECOND
                )

    def _keep_house(self, due: Due, report: SweepReport) -> None:
        if due.now - due.checkpoint_at >= self._settings.checkpoint_seconds * SECOND:
            self._ledger.submit_whole(op.WriteCheckpoint())
            report.checkpoint = True
        now = datetime.fromtimestamp(due.now / SECOND, UTC)
        if self._partitions_made != now.date():
            with self._ledger.readers.begin() as connection:
                if connection.dialect.name == "postgresql":
                    connection.execute(text("SET LOCAL lock_timeout = '2s'"))
                ensure_partitions(connection, now)
            self._partitions_made = now.date()


def _anything(due: Due) -> bool:
    return any(_parts(due))


def _same(before: Due, after: Due) -> bool:
    """Whether just the same is due as before."""
    return _anything(after) and _parts(before) == _parts(after)


def _parts(due: Due) -> tuple[tuple[object, ...], ...]:
    return (due.applications, due.nodes, due.engines, due.stranded, due.unreported)
