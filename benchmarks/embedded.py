"""SQLite: the ledger at 32 waiting callers against one durable commit a grant."""

from collections.abc import Callable
from contextlib import closing
from functools import partial

from benchmarks import traffic
from benchmarks.flight import in_flight, on_threads
from benchmarks.report import Findings, Ratio, Table
from benchmarks.rounds import Load, alternate, p50, p99, rate
from benchmarks.setting import Setting
from benchmarks.sqlite_floor import SqliteFloor

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
                f"floor, {where}": partial(floor.grants, where, seconds),
                f"floor, {CALLERS} connections, {where}": partial(floor.contended, where, seconds),
                f"engine, {CALLERS} callers, {where}": partial(in_flight, ledger, CALLERS, seconds, sets),
                f"engine, {CALLERS} threads, {where}": partial(on_threads, ledger, CALLERS, seconds, sets),
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
    contended = [
        rate(measured[f"engine, {CALLERS} callers, {where}"])
        / rate(measured[f"floor, {CALLERS} connections, {where}"])
        for where in traffic.SETS
    ]
    notes = [
        "The floor's first side is one connection that never waits for another: its best case.",
        "How far common commits beat it depends on what a commit costs on this disk.",
        f"Against {CALLERS} callers with a connection each: {' and '.join(f'{x:.2f} x' for x in contended)}.",
    ]
    return Findings("SQLite, WAL and synchronous=FULL", [table], ratios, notes)
