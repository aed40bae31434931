"""Growth: what a grant and a question cost as applications and labels become many."""

import statistics
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial

from benchmarks import traffic
from benchmarks.flight import Flight
from benchmarks.large_ledger import empty_sweep, pause_of_a_limit, sweep_plan, usage_by_user, usage_of_live
from benchmarks.report import Cell, Findings, Ratio, Table
from benchmarks.rounds import alternate
from benchmarks.setting import Setting
from rm_service.domain import operations as op
from rm_service.domain.outcomes import Done
from rm_service.ledger.ledger import Ledger

CALLERS = 256
BURST = 2_000
LIVE, LIVE_FEW = 100_000, 1_000
USERS, EACH_OF_OTHERS = 100, 10
OTHERS = (USERS - 1) * EACH_OF_OTHERS
"""Live applications of the users other than the one whose labels are measured."""

FEW_SETS, MANY_SETS = 32, 3_332
"""Sets of three labels; with the four that all sets share: 100 and 10,000 labels."""

LIVE_TARGET, LABEL_TARGET, USAGE_TARGET = 1.1, 1.2, 1.2


@dataclass(frozen=True, slots=True)
class Part:
    """What one part of the benchmark adds to the findings."""

    rows: list[tuple[Cell, ...]]
    ratios: list[Ratio]
    notes: list[str]


def measure(setting: Setting) -> Findings:
    """Live applications, labels, usage by user, an empty sweep, the pause of a new limit."""
    with ExitStack() as stack:
        empty, full = (stack.enter_context(opened(setting, USERS)) for _ in range(2))
        populate(full, LIVE)
        parts = [_by_live(setting, empty, full)]
        populate(empty, LIVE_FEW - OTHERS)
        parts += [_usage(setting, empty, full), _sweep(setting, empty, full), _pause(full)]
    with opened(setting, FEW_SETS) as few, opened(setting, MANY_SETS) as many:
        parts.append(_by_labels(setting, few, many))
    return Findings(
        "Growth",
        [Table(("what", "median", "unit"), [row for part in parts for row in part.rows])],
        [ratio for part in parts for ratio in part.ratios],
        [note for part in parts for note in part.notes],
    )


@contextmanager
def opened(setting: Setting, sets: int) -> Iterator[Ledger]:
    """A ledger on a PostgreSQL database of its own."""
    with setting.database() as url, closing(traffic.open_ledger(url, sets)) as ledger:
        settle(ledger)
        yield ledger


def populate(ledger: Ledger, live: int) -> None:
    """Grant so many applications on one set of labels, and some on each other user's."""
    others = [number for number in range(1, USERS) for _ in range(EACH_OF_OTHERS)]
    fly(ledger, [traffic.apply(number) for number in [0] * live + others])
    settle(ledger)


def settle(ledger: Ledger) -> None:
    """Do what autovacuum would do in a minute or two, perhaps in the middle of one side."""
    with ledger.readers.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("SET statement_timeout = 0")
        connection.exec_driver_sql("VACUUM ANALYZE")
        connection.exec_driver_sql("RESET statement_timeout")


def fly(ledger: Ledger, applications: list[op.Apply]) -> float:
    """The seconds in which these are granted, with 256 callers in flight."""
    return Flight(ledger, [iter(applications[start::CALLERS]) for start in range(CALLERS)]).run_out()


def burst(ledger: Ledger, sets: int) -> float:
    """The cost of a grant (us) in a short burst, whose applications are released again, untimed."""
    applications = [traffic.apply(number % sets) for number in range(BURST)]
    seconds = fly(ledger, applications)
    releases = [op.Release(application.id) for application in applications]
    assert all(isinstance(outcome, Done) for outcome in ledger.submit(releases))
    return seconds / BURST * 1e6


def _bursts(setting: Setting) -> int:
    return max(3, round(3 * setting.seconds * setting.rounds))


def _by_live(setting: Setting, empty: Ledger, full: Ledger) -> Part:
    none, many = "a grant, none live on its labels", f"a grant, {LIVE:,} live on each of its labels"
    costs = medians(
        alternate({none: partial(burst, empty, 1), many: partial(burst, full, 1)}, _bursts(setting))
    )
    rows: list[tuple[Cell, ...]] = [(name, cost, "us") for name, cost in costs.items()]
    claim = f"a grant with {LIVE:,} live applications on the same labels to one with none"
    return Part(rows, [Ratio(claim, costs[many] / costs[none], LIVE_TARGET, at_least=False)], [])


def _by_labels(setting: Setting, few: Ledger, many: Ledger) -> Part:
    small = "a grant, 100 labels, spread over all"
    same = "a grant, 10,000 labels, spread over 100 of them"
    spread = "a grant, 10,000 labels, spread over all"
    sides = {
        small: partial(burst, few, FEW_SETS),
        same: partial(burst, many, FEW_SETS),
        spread: partial(burst, many, MANY_SETS),
    }
    costs = medians(alternate(sides, _bursts(setting)))
    rows: list[tuple[Cell, ...]] = [(name, cost, "us") for name, cost in costs.items()]
    ratios = [
        Ratio(
            f"a grant with 10,000 labels to one with 100, {how}",
            costs[side] / costs[small],
            LABEL_TARGET,
            at_least=False,
        )
        for how, side in (("the same traffic", same), ("spread over all", spread))
    ]
    note = (
        "Spread over all, a batch changes three times as many balances when there are 10,000 labels, because"
        " neighbours in the queue share fewer. The same traffic shows what the labels alone cost."
    )
    return Part(rows, ratios, [note])


def _usage(setting: Setting, few: Ledger, full: Ledger) -> Part:
    less, more = (f"usage --by user, {live:,} live" for live in (LIVE_FEW, LIVE))
    sides = {less: partial(usage_by_user, few, USERS), more: partial(usage_by_user, full, USERS)}
    times = medians(alternate(sides, 20 * setting.rounds))
    rows: list[tuple[Cell, ...]] = [(name, milliseconds, "ms") for name, milliseconds in times.items()]
    summed = statistics.median(usage_of_live(full) for _ in range(setting.rounds))
    rows.append((f"the same without a roll-up, summed over {LIVE:,} live", summed, "ms"))
    claim = f"usage --by user with {LIVE:,} live applications to {LIVE_FEW:,}, {USERS} users"
    return Part(rows, [Ratio(claim, times[more] / times[less], USAGE_TARGET, at_least=False)], [])


def _sweep(setting: Setting, few: Ledger, full: Ledger) -> Part:
    sides = {
        f"a sweep that finds nothing due, {live:,} live": partial(empty_sweep, ledger)
        for live, ledger in ((LIVE_FEW, few), (LIVE, full))
    }
    times = medians(alternate(sides, 20 * setting.rounds))
    rows: list[tuple[Cell, ...]] = [(name, milliseconds, "ms") for name, milliseconds in times.items()]
    plan = sweep_plan(full)
    rows.append((f"pages that it touches, {LIVE:,} live", plan.pages, "8 KiB"))
    return Part(rows, [], [f"The empty sweep reads {', '.join(plan.scans)}."])


def _pause(full: Ledger) -> Part:
    duration, longest = pause_of_a_limit(full)
    rows: list[tuple[Cell, ...]] = [
        (f"a new limit that counts in {LIVE:,} live applications", duration, "ms"),
        ("the longest that a grant waited meanwhile", longest, "ms"),
    ]
    return Part(rows, [], [])


def medians(measured: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in measured.items()}
