"""Load on a ledger in this process: callers in flight, each with its next operation once one is answered."""

import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from benchmarks import traffic
from benchmarks.rounds import Load
from rm_service.domain.outcomes import Done, Outcome
from rm_service.ledger.ledger import Ledger

WARM_UP = 0.5
"""Seconds of load before a stretch is measured: plans are made, caches filled."""


class Flight:
    """Callers in flight on one ledger."""

    def __init__(self, ledger: Ledger, scripts: Iterable[traffic.Script]) -> None:
        self.ledger = ledger
        self.latencies: list[float] = []
        self.stopping = False
        self._callers = [_Caller(self, script) for script in scripts]
        self._aloft = len(self._callers)
        self._landing = threading.Lock()
        self._all_landed = threading.Event()
        self._error: BaseException | None = None

    def run_between(self, begin: float, end: float) -> Load:
        """Fly from now on, measure between two moments of `time.monotonic`, land."""
        with self.flying():
            self._pass(begin)
            first, begun = len(self.latencies), time.perf_counter()
            self._pass(end)
            last, ended = len(self.latencies), time.perf_counter()
        return Load((last - first) / (ended - begun), sorted(self.latencies[first:last]))

    def run_out(self) -> float:
        """Fly until every script is at its end; the seconds it took."""
        begun = time.perf_counter()
        self._start()
        self._await()
        return time.perf_counter() - begun

    @contextmanager
    def flying(self) -> Iterator[None]:
        """Fly as long as the body runs."""
        self._start()
        try:
            yield
        finally:
            self.stopping = True
            self._await()

    def landed(self, error: BaseException | None = None) -> None:
        """One caller has no more to do, or broke off."""
        with self._landing:
            if error is not None:
                self._error, self.stopping = error, True
            self._aloft -= 1
            if not self._aloft:
                self._all_landed.set()

    def _start(self) -> None:
        for caller in self._callers:
            caller.go_on()

    def _pass(self, moment: float) -> None:
        """Wait for a moment; a flight that broke off ends the wait."""
        self._all_landed.wait(max(moment - time.monotonic(), 0))

    def _await(self) -> None:
        self._all_landed.wait()
        if self._error is not None:
            raise self._error


class _Caller:
    __slots__ = ("_begun", "_flight", "_script")

    def __init__(self, flight: Flight, script: traffic.Script) -> None:
        self._flight = flight
        self._script = script

    def go_on(self) -> None:
        operation = None if self._flight.stopping else next(self._script, None)
        if operation is None:
            self._flight.landed()
            return
        self._begun = time.perf_counter()
        self._flight.ledger.enqueue((operation,)).add_done_callback(self._answered)

    def _answered(self, future: Future[list[Outcome]]) -> None:
        try:
            outcome = future.result()[0]
            assert isinstance(outcome, Done), outcome
            self._flight.latencies.append((time.perf_counter() - self._begun) * 1e3)
            self.go_on()
        except BaseException as error:  # noqa: BLE001 - told to whoever waits for the flight
            self._flight.landed(error)


def in_flight(ledger: Ledger, callers: int, seconds: float, sets: int) -> Load:
    """Grants by callers in flight."""
    return _measure(ledger, (traffic.grants(sets) for _ in range(callers)), seconds)


def lives_in_flight(ledger: Ledger, callers: int, seconds: float, sets: int) -> Load:
    """Whole lives by callers in flight; the rate counts operations, three a life."""
    return _measure(ledger, (traffic.lives(sets) for _ in range(callers)), seconds)


def _measure(ledger: Ledger, scripts: Iterable[traffic.Script], seconds: float) -> Load:
    begin = time.monotonic() + WARM_UP
    return Flight(ledger, scripts).run_between(begin, begin + seconds)


def on_threads(ledger: Ledger, threads: int, seconds: float, sets: int) -> Load:
    """Grants by threads that wait in `submit`, as request threads do."""
    begin = time.monotonic() + WARM_UP
    end = begin + seconds

    def work() -> list[float]:
        script, latencies = traffic.grants(sets), []
        while (begun := time.monotonic()) < end:
            outcome = ledger.submit((next(script),))[0]
            assert isinstance(outcome, Done), outcome
            if begun >= begin:
                latencies.append((time.monotonic() - begun) * 1e3)
        return latencies

    with ThreadPoolExecutor(threads) as pool:
        working = [pool.submit(work) for _ in range(threads)]
        measured = sorted(latency for worker in working for latency in worker.result())
    return Load(len(measured) / seconds, measured)
