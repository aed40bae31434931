"""Which resource managers are there: those with an open stream, or that have asked for something just now."""

import time
from collections.abc import Callable, Iterable
from threading import Condition, Thread

import structlog
from sqlalchemy.exc import SQLAlchemyError

from rm_service.ledger.errors import LedgerClosedError, LedgerUnavailableError, OutcomeUnknownError

MOST_SECONDS = 5.0
"""How often signs of life are written down at least, for all at once."""

_log = structlog.get_logger(__name__)


class Presence:
    """Writes down who is there, from `start` to `stop`; one who comes is noted at once.

    `streaming` gives those with open streams; `note` is told of ids and is to let them have grants again.
    After `pause_seconds` without a sign of life a resource manager is taken for away.
    """

    def __init__(
        self,
        streaming: Callable[[], Iterable[str]],
        note: Callable[[Iterable[str]], object],
        *,
        pause_seconds: float,
    ) -> None:
        self._period = min(MOST_SECONDS, pause_seconds / 4)
        self._streaming = streaming
        self._note = note
        self._heard: set[str] = set()
        self._known: dict[str, float] = {}
        self._changed = Condition()
        self._hurried = self._stopping = False
        self._thread = Thread(target=self._run, name="si-presence", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()

    def heard(self, rm_id: str) -> None:
        """A resource manager has opened a stream or asked for something. Any thread may call it."""
        noted = self._known.get(rm_id)
        if noted is not None and time.monotonic() - noted < self._period:
            self._heard.add(rm_id)
            return
        with self._changed:
            self._heard.add(rm_id)
            self._hurried = True
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._hurried or self._stopping, self._period)
                if self._stopping:
                    return
                heard, self._heard, self._hurried = self._heard, set(), False
            there = heard.union(self._streaming())
            try:
                self._note(there)
            except LedgerClosedError:
                return
            except (SQLAlchemyError, LedgerUnavailableError, OutcomeUnknownError) as error:
                _log.warning("si_presence_not_noted", error=str(error).strip())
            except Exception:  # noqa: BLE001 - without this thread everybody would be taken for away
                _log.exception("si_presence_failed")
            self._known = dict.fromkeys(there, time.monotonic())
