"""HTTP, one application a request, against what it is made of: the server alone, and the ledger alone."""

import multiprocessing
import statistics
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing
from functools import partial

from benchmarks import traffic
from benchmarks.flight import WARM_UP, in_flight
from benchmarks.floor import Floor
from benchmarks.http_load import Address, Asked, load, request
from benchmarks.report import Findings, Ratio, Table
from benchmarks.rounds import Load, alternate, p50, p99, rate
from benchmarks.service import NULL, serving
from benchmarks.setting import Setting

CLIENTS = 32
SHARE = 0.6
HOT_TO_SPREAD = 1.5
TRANSACTIONS = 2.0

PATH = "/api/v1/applications"
NO_LEDGER, LEDGER, HTTP = "server without ledger", "ledger without server", "HTTP"
ALONE_NO_LEDGER, ALONE_HTTP, ALONE_SQL = (
    "server without ledger, alone",
    "HTTP, alone",
    "plain transaction, alone",
)


def measure(setting: Setting) -> Findings:
    """Rates and latencies of 32 clients and of one alone."""
    with ExitStack() as stack:
        enter = stack.enter_context
        floor = Floor(setting, enter(setting.database()))
        url = enter(setting.database())
        ledger = enter(closing(traffic.open_ledger(url, traffic.SPREAD)))
        client = enter(ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")))
        service = enter(serving(url, setting.folder))
        null_service = enter(serving(url, setting.folder, NULL))

        def ask(address: Address, sets: int, clients: int) -> Load:
            asked = applications(sets)
            return client.submit(load, address, asked, clients, WARM_UP, setting.seconds).result()

        sides: dict[str, Callable[[], Load]] = {
            NO_LEDGER: partial(ask, null_service, traffic.SPREAD, CLIENTS)
        }
        for where, sets in traffic.SETS.items():
            sides[f"{LEDGER}, {where}"] = partial(in_flight, ledger, CLIENTS, setting.seconds, sets)
            sides[f"{HTTP}, {where}"] = partial(ask, service, sets, CLIENTS)
        sides |= {
            ALONE_SQL: partial(floor.lonely, setting.seconds),
            ALONE_NO_LEDGER: partial(ask, null_service, traffic.SPREAD, 1),
            ALONE_HTTP: partial(ask, service, traffic.SPREAD, 1),
        }
        measured = alternate(sides, setting.rounds)
    rows = [(name, rate(loads), p50(loads), p99(loads)) for name, loads in measured.items()]
    ratios = [*_rates(measured), _hot_to_spread(measured), _alone(measured)]
    return Findings(
        f"HTTP, one application a request, {CLIENTS} clients",
        [Table(("side", "requests/s", "p50 ms", "p99 ms"), rows)],
        ratios,
        ["H is the server without the ledger, E the ledger without the server, both at as many callers."],
    )


def applications(sets: int) -> Asked:
    """Requests for applications, one prepared for each set of labels."""
    requests = [request("POST", PATH, traffic.encoded(number)) for number in range(sets)]
    return Asked(requests, b"HTTP/1.1 201 ")


def _rates(measured: dict[str, list[Load]]) -> list[Ratio]:
    ratios = []
    for where in traffic.SETS:
        both = 1 / (1 / rate(measured[NO_LEDGER]) + 1 / rate(measured[f"{LEDGER}, {where}"]))
        ratios.append(
            Ratio(f"HTTP to 1/(1/H + 1/E), {where}", rate(measured[f"{HTTP}, {where}"]) / both, SHARE)
        )
    return ratios


def _hot_to_spread(measured: dict[str, list[Load]]) -> Ratio:
    quotient = p99(measured[f"{HTTP}, hot"]) / p99(measured[f"{HTTP}, spread"])
    return Ratio("p99 hot to p99 spread", quotient, HOT_TO_SPREAD, at_least=False)


def _alone(measured: dict[str, list[Load]]) -> Ratio:
    """What the ledger adds to one client's p50, counted in plain transactions; compared round by round."""
    rounds = zip(measured[ALONE_HTTP], measured[ALONE_NO_LEDGER], measured[ALONE_SQL], strict=True)
    added = statistics.median((http.p50 - null.p50) / sql.p50 for http, null, sql in rounds)
    what = "one client alone: p50 above the server's own"
    return Ratio(what, added, TRANSACTIONS, at_least=False, unit="transactions")
