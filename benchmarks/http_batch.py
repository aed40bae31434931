"""HTTP batches of 100 applications against the ledger at 256 callers."""

import json
import multiprocessing
import random
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing
from functools import partial

from benchmarks import traffic
from benchmarks.flight import WARM_UP, in_flight
from benchmarks.http_load import Asked, load, request
from benchmarks.report import Findings, Ratio, Table
from benchmarks.rounds import Load, alternate, p50, p99, rate
from benchmarks.service import serving
from benchmarks.setting import Setting

SIZE = 100
CLIENTS = 8
CALLERS = 256
TARGET = 0.5

PATH = "/api/v1/batch"
PREPARED = 100
"""Different batches that clients choose from."""


def measure(setting: Setting) -> Findings:
    """Applications a second in batches."""
    with ExitStack() as stack:
        enter = stack.enter_context
        url = enter(setting.database())
        ledger = enter(closing(traffic.open_ledger(url, traffic.SPREAD)))
        client = enter(ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")))
        service = enter(serving(url, setting.folder))

        def ask(sets: int) -> Load:
            batches = client.submit(
                load, service, batches_of(sets), CLIENTS, WARM_UP, setting.seconds
            ).result()
            return Load(batches.rate * SIZE, batches.latencies)

        sides: dict[str, Callable[[], Load]] = {}
        for where, sets in traffic.SETS.items():
            sides[f"ledger, {CALLERS} callers, {where}"] = partial(
                in_flight, ledger, CALLERS, setting.seconds, sets
            )
            sides[f"HTTP, {CLIENTS} clients, {where}"] = partial(ask, sets)
        measured = alternate(sides, setting.rounds)
    rows = [(name, rate(loads), p50(loads), p99(loads)) for name, loads in measured.items()]
    ratios = [
        Ratio(
            f"HTTP batches to the ledger at {CALLERS} callers, {where}",
            rate(measured[f"HTTP, {CLIENTS} clients, {where}"])
            / rate(measured[f"ledger, {CALLERS} callers, {where}"]),
            TARGET,
        )
        for where in traffic.SETS
    ]
    return Findings(
        f"HTTP batches of {SIZE}",
        [Table(("side", "applications/s", "p50 ms", "p99 ms"), rows)],
        ratios,
        [f"A latency of HTTP is that of a whole batch of {SIZE}."],
    )


def batches_of(sets: int) -> Asked:
    """Requests for a hundred applications each; a right answer says a hundred times that one is locked."""
    requests = []
    for _ in range(min(sets, PREPARED)):
        operations = [{"op": "apply", **traffic.body(random.randrange(sets))} for _ in range(SIZE)]
        requests.append(request("POST", PATH, json.dumps({"operations": operations}).encode()))
    return Asked(requests, b'"status":201', SIZE)
