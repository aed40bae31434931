"""Two replicas on one PostgreSQL: what taking turns costs."""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial

from benchmarks import traffic
from benchmarks.flight import Flight
from benchmarks.report import Findings, Ratio, Table
from benchmarks.rounds import Load, alternate, p99, rate
from benchmarks.setting import Setting

CALLERS = 256
TARGET = 0.8
ONE, TWO = "one replica", "two replicas"
READY = 3.0
"""Seconds in which every process has opened its ledger and flies."""


def measure(setting: Setting) -> Findings:
    """One process with 256 callers against two with 128 each: the same load in all."""
    with (
        setting.database() as url,
        ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes,
    ):
        traffic.open_ledger(url, traffic.SPREAD).close()
        sides = {
            f"{name}, {where}": partial(together, processes, url, replicas, sets, setting.seconds)
            for where, sets in traffic.SETS.items()
            for replicas, name in ((1, ONE), (2, TWO))
        }
        measured = alternate(sides, setting.rounds)
    rows = [(name, rate(loads), p99(loads)) for name, loads in measured.items()]
    ratios = [
        Ratio(
            f"two replicas to one, {where}",
            rate(measured[f"{TWO}, {where}"]) / rate(measured[f"{ONE}, {where}"]),
            TARGET,
        )
        for where in traffic.SETS
    ]
    return Findings(
        "Two replicas on one PostgreSQL",
        [Table(("side", "grants/s in all", "p99 ms"), rows)],
        ratios,
        [f"{CALLERS} callers in all; each replica is a process with a ledger of its own."],
    )


def together(processes: ProcessPoolExecutor, url: str, replicas: int, sets: int, seconds: float) -> Load:
    """The sum of what several replicas grant in the same stretch of time."""
    begin = time.monotonic() + READY
    flights = [
        processes.submit(fly, url, CALLERS // replicas, sets, begin, begin + seconds) for _ in range(replicas)
    ]
    loads = [flight.result() for flight in flights]
    latencies = sorted(latency for load in loads for latency in load.latencies)
    return Load(sum(load.rate for load in loads), latencies)


def fly(url: str, callers: int, sets: int, begin: float, end: float) -> Load:
    """One replica's part, in a process of its own."""
    with closing(traffic.open_ledger(url)) as ledger:
        assert time.monotonic() < begin, "a replica was not ready in time"
        return Flight(ledger, [traffic.grants(sets) for _ in range(callers)]).run_between(begin, end)
