"""SQLite: the ledger at 32 waiting callers against one durable commit a grant."""

from collections.abc import Callable
from contextlib import closing

from benchmarks import traffic
from benchmarks.flight import in_flight, on_threads
from benchmarks.floor import SqliteFloor
from benchmarks.report import Findings, Ratio, Table
from benchmarks.rounds import Load, alternate, p50, p99, rate
from benchmarks.setting import Setting

CALLERS = 32
TARGET = 3.0


def measure(setting: Setting) -> Findings:
    """Grants on SQLite, hot and spread."""
    url = f"sqlite:///{setting.folder / 'engine.db'}"
    with (
        closing(SqliteFloor(setting.folder / "floor.db")) as floor,
        closing(traffic.open_ledger(url, traffic.SPREAD)) as ledger,
    ):
        seconds = setting.seconds
        sides: dict[str, Callable[[], Load]] = {}
        for where, sets in traffic.SETS.items():
            sides |= {
                f"floor, {where}": lambda where=where: floor.grants(where, seconds),
                f"engine, {CALLERS} callers, {where}": lambda sets=sets: in_flight(
                    ledger, CALLERS, seconds, sets
                ),
                f"engine, {CALLERS} threads, {where}": lambda sets=sets: on_threads(
                    ledger, CALLERS, seconds, sets
                ),
            }
        measured = alternate(sides, setting.rounds)
    rows = [(name, rate(loads), p50(loads), p99(loads)) for name, loads in measured.items()]
    ratios = [
        Ratio(
            f"engine at {CALLERS} callers to one durable commit a grant, {where}",
            rate(measured[f"engine, {CALLERS} callers, {where}"]) / rate(measured[f"floor, {where}"]),
            TARGET,
        )
        for where in traffic.SETS
    ]
    table = Table(("side", "grants/s", "p50 ms", "p99 ms"), rows)
    return Findings("SQLite, WAL and synchronous=FULL", [table], ratios)
