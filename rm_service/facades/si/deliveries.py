"""How far each stream of answers has come, written down now and then: a restart goes on from there."""

from collections.abc import Callable, Mapping
from threading import Event, Lock, Thread

import structlog
from sqlalchemy.exc import SQLAlchemyError

from rm_service.ledger.answers import StreamKey

EVERY_SECONDS = 1.0

_log = structlog.get_logger(__name__)


class Deliveries:
    """Written on a thread of its own, from `start` to `stop`. `note` is cheap; any thread may call it."""

    def __init__(self, write: Callable[[Mapping[StreamKey, int]], None]) -> None:
        self._write = write
        self._positions: dict[StreamKey, int] = {}
        self._moved: set[StreamKey] = set()
        self._lock = Lock()
        self._due = Event()
        self._stopping = False
        self._failing = False
        self._thread = Thread(target=self._run, name="si-deliveries", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Write what is left to be written."""
        self._stopping = True
        self._due.set()
        if self._thread.is_alive():
            self._thread.join()

    def note(self, key: StreamKey, seq: int) -> None:
        """The row of this number, and all before it, were handed to the transport."""
        with self._lock:
            if seq > self._positions.get(key, 0):
                self._positions[key] = seq
                self._moved.add(key)

    def noted(self, key: StreamKey) -> int:
        """The highest number that was noted in this process; 0 for none."""
        return self._positions.get(key, 0)

    def hurry(self) -> None:
        """Write soon: a stream has ended, and may go on in another process."""
        self._due.set()

    def _run(self) -> None:
        while not self._stopping:
            self._due.wait(EVERY_SECONDS)
            self._due.clear()
            self._flush()

    def _flush(self) -> None:
        with self._lock:
            moved = {key: self._positions[key] for key in self._moved}
            self._moved.clear()
        if not moved:
            return
        try:
            self._write(moved)
            self._failing = False
        except SQLAlchemyError as error:
            if not self._failing:
                _log.warning("deliveries_not_written", error=str(getattr(error, "orig", error)).strip())
            self._failing = True
            with self._lock:
                self._moved.update(moved)
