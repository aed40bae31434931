"""The ledger in process against plain SQL: everything written that production writes."""

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial

from benchmarks import traffic
from benchmarks.flight import in_flight, lives_in_flight, on_threads
from benchmarks.floor import Floor
from benchmarks.report import Cell, Findings, Ratio, Table
from benchmarks.rounds import Load, alternate, p50, p99, rate
from benchmarks.setting import Setting

CALLERS = 256
FEW = 32

TARGETS = {"hot": 6.0, "spread": 1.0}


def measure(setting: Setting) -> Findings:
    """The engine at 256 and 32 callers, with real threads, and whole lives, beside the floor."""
    with setting.database() as floor_url, setting.database() as url:
        floor = Floor(setting, floor_url)
        with closing(traffic.open_ledger(url, traffic.SPREAD)) as ledger:
            seconds = setting.seconds
            sides: dict[str, Callable[[], Load]] = {}
            lives: dict[str, Callable[[], Load]] = {}
            for where, sets in traffic.SETS.items():
                sides |= {
                    f"floor, {where}": partial(floor.grants, where, seconds),
                    f"engine, {CALLERS} callers, {where}": partial(in_flight, ledger, CALLERS, seconds, sets),
                    f"engine, {FEW} callers, {where}": partial(in_flight, ledger, FEW, seconds, sets),
                    f"engine, {FEW} threads, {where}": partial(on_threads, ledger, FEW, seconds, sets),
                }
                lives[f"whole lives, {CALLERS} callers, {where}"] = partial(
                    lives_in_flight, ledger, CALLERS, seconds, sets
                )
            measured = alternate(sides, setting.rounds) | alternate(lives, 1)
    ratios = [
        Ratio(
            f"engine at {CALLERS} callers to the floor, {where}", quotient(measured, where, CALLERS), target
        )
        for where, target in TARGETS.items()
    ]
    return Findings(
        "The engine against the floor",
        [_table(measured)],
        ratios,
        [
            *(
                f"{FEW} callers reach {quotient(measured, where, FEW):.2f} x the floor, {where}."
                for where in TARGETS
            ),
            "A grant of the floor changes three balances in one dimension; one of ours seven in three.",
            "Whole lives (apply, use, release) count operations, three a life.",
        ],
    )


def quotient(measured: dict[str, list[Load]], where: str, callers: int) -> float:
    return rate(measured[f"engine, {callers} callers, {where}"]) / rate(measured[f"floor, {where}"])


def _table(measured: dict[str, list[Load]]) -> Table:
    rows: list[Sequence[Cell]] = []
    for name, loads in measured.items():
        timed: tuple[Cell, Cell] = ("", "") if name.startswith("floor") else (p50(loads), p99(loads))
        rows.append((name, rate(loads), *timed))
    return Table(("side", "operations/s", "p50 ms", "p99 ms"), rows)
