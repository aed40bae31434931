"""Waiting: what a grant, a release that lets one in, and a question cost as those who wait become many."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial

from benchmarks import traffic
from benchmarks.growth import burst, medians, settle
from benchmarks.report import Cell, Findings, Ratio, Table
from benchmarks.rounds import alternate
from benchmarks.setting import Setting
from benchmarks.waiting_line import CHUNK, Ask, Line, make_scarce, node_ask, quota_ask, selecting_ask
from rm_service.domain import operations as op
from rm_service.domain.outcomes import Done
from rm_service.ledger.database import is_sqlite
from rm_service.ledger.ledger import Ledger

FEW, MANY = 1_000, 100_000
SELECTORS = 1_000
"""So many wait in the last part, each for a node of another selector."""
TIMES = 20
"""Releases in a row of one measurement."""
HEADS = 8
"""Too large ones before the line."""
LONELY = 100
"""Grants one after another of one measurement."""
SETS = 10

GRANT_TARGET, LINE_TARGET = 1.1, 1.2

LINES: Mapping[str, Ask] = {"for a quota": quota_ask, "for a node": node_ask}


@dataclass(slots=True)
class Part:
    """What one database adds to the findings."""

    loaded: list[tuple[Cell, ...]] = field(default_factory=list)
    rows: list[tuple[Cell, ...]] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)

    def compare(self, what: str, unit: str, less: float, more: float, target: float | None) -> None:
        """Two sides of one row; a ratio with a target, where there is one."""
        self.rows.append((what, unit, less, more, more / less))
        if target is not None:
            self.ratios.append(Ratio(what, more / less, target, at_least=False))


def measure(setting: Setting) -> Findings:
    """On PostgreSQL and on SQLite: lines of 1,000 and of 100,000 for a quota and for a node."""
    parts = []
    with ExitStack() as stack:
        urls = [stack.enter_context(setting.database()) for _ in range(4)]
        parts.append(_measure(setting, "PostgreSQL", urls))
    parts.append(_measure(setting, "SQLite", [_file(setting, number) for number in range(4)]))
    return Findings(
        "Waiting",
        [
            Table(
                (f"loading {MANY:,}", "s", f"the first {FEW:,}, us each", f"the last {FEW:,}, us each"),
                [row for part in parts for row in part.loaded],
            ),
            Table(
                ("what", "unit", "less", "more", "more / less"), [row for part in parts for row in part.rows]
            ),
        ],
        [ratio for part in parts for ratio in part.ratios],
        [
            f"Less: nobody waits where a grant is measured, else {FEW:,} a line; more: {MANY:,} a line.",
            "A release that lets one in is timed until both are committed, the release and the grant.",
            "`As loaded` is before any VACUUM or ANALYZE; everything else is after them.",
            "The place of one who waits is counted: the cost is the number of those who stand before it.",
        ],
    )


def _file(setting: Setting, number: int) -> str:
    return f"sqlite:///{setting.folder / f'waiting-{number}.db'}"


def _measure(setting: Setting, where: str, urls: list[str]) -> Part:
    part = Part()
    with ExitStack() as stack:
        none, few, many, scattered = (stack.enter_context(_opened(url)) for url in urls)
        lines = {name: (Line(few, ask, FEW), Line(many, ask, MANY)) for name, ask in LINES.items()}
        for name, (_, long) in lines.items():
            costs, few_chunks = long.loaded.costs, FEW // CHUNK
            first, last = (statistics.mean(found) for found in (costs[:few_chunks], costs[-few_chunks:]))
            part.loaded.append((f"{where}: who wait {name}", long.loaded.seconds, first, last))
        _let_in(part, f"{where}, as loaded", lines, rounds=2 * setting.rounds)
        for ledger in (none, few, many):
            _settle(ledger)
        _let_in(part, where, lines, rounds=3 * setting.rounds)
        _join(part, where, lines, setting.rounds)
        _grants(part, f"{where}: {2 * MANY:,} waiting", none, many, setting.rounds)
        _positions(part, where, lines, setting.rounds)
        _scatter(scattered)
        for ledger in (none, scattered):
            _settle(ledger)
        _grants(part, f"{where}: {SELECTORS:,} waiting by as many selectors", none, scattered, setting.rounds)
    return part


@contextmanager
def _opened(url: str) -> Iterator[Ledger]:
    with closing(traffic.open_ledger(url, SETS)) as ledger:
        _vacuum_by_hand(ledger)
        make_scarce(ledger)
        yield ledger


def _vacuum_by_hand(ledger: Ledger) -> None:
    """Keep autovacuum from coming in the middle of one side, or before what is measured `as loaded`."""
    if not is_sqlite(ledger.settings.url):
        with ledger.readers.begin() as connection:
            for table in ("application", "balance", "waiter"):
                connection.exec_driver_sql(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")


def _settle(ledger: Ledger) -> None:
    if not is_sqlite(ledger.settings.url):
        settle(ledger)


def _let_in(part: Part, where: str, lines: Mapping[str, tuple[Line, Line]], rounds: int) -> None:
    for name, (short, long) in lines.items():
        ways: dict[str, Callable[[Line], float]] = {
            f"{where}: a release lets one in who waits {name}": lambda line: line.let_in(TIMES),
            f"{where}: the same, {HEADS} too large ones first": lambda line: line.let_in_past(HEADS, TIMES),
        }
        for what, way in ways.items():
            less, more = _both(partial(way, short), partial(way, long), rounds)
            part.compare(what, "us", less, more, LINE_TARGET)


def _join(part: Part, where: str, lines: Mapping[str, tuple[Line, Line]], rounds: int) -> None:
    for name, (short, long) in lines.items():
        less, more = _both(short.join, long.join, 10 * rounds)
        part.compare(f"{where}: an ask is parked {name}", "us", less, more, LINE_TARGET)


def _grants(part: Part, where: str, none: Ledger, many: Ledger, rounds: int) -> None:
    ways: dict[str, Callable[[Ledger], float]] = {
        "an unrelated grant of 256 callers": lambda ledger: burst(ledger, 1),
        "an unrelated grant of one caller": _lonely,
    }
    for what, way in ways.items():
        less, more = _both(partial(way, none), partial(way, many), 5 * rounds)
        part.compare(f"{where}, {what}", "us", less, more, GRANT_TARGET)


def _positions(part: Part, where: str, lines: Mapping[str, tuple[Line, Line]], rounds: int) -> None:
    short, long = next(iter(lines.values()))
    for who, share in (("first", 0.0), ("middle", 0.5), ("last", 1.0)):
        less, more = _both(partial(short.position, share), partial(long.position, share), 10 * rounds)
        part.compare(f"{where}: reading the {who} of a line and its place", "ms", less, more, None)


def _both(less: Callable[[], float], more: Callable[[], float], rounds: int) -> tuple[float, float]:
    """The medians of two sides, measured in turns after one round that does not count."""
    sides = {"less": less, "more": more}
    alternate(sides, 1)
    found = medians(alternate(sides, rounds))
    return found["less"], found["more"]


def _lonely(ledger: Ledger) -> float:
    """The median cost (us) of a grant by one caller alone; released again, untimed."""
    applications, costs = [traffic.apply(0) for _ in range(LONELY)], []
    for application in applications:
        begun = time.perf_counter()
        ledger.submit((application,))
        costs.append((time.perf_counter() - begun) * 1e6)
    outcomes = ledger.submit([op.Release(application.id) for application in applications])
    assert all(isinstance(outcome, Done) for outcome in outcomes)
    return statistics.median(costs)


def _scatter(ledger: Ledger) -> None:
    """Let many wait who are not in one line."""
    full = Line(ledger, node_ask, 0)
    asks = [selecting_ask(f"pool=busy,node!=none-{number}") for number in range(SELECTORS)]
    assert full.loaded.costs == []
    outcomes = ledger.submit(asks)
    assert all(isinstance(outcome, Done) for outcome in outcomes)
