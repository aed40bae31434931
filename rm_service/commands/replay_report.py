"""What a replay found, as JSON for scripts and as tables for people."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from rm_service.commands.audit import audit_view
from rm_service.commands.replay_run import Record
from rm_service.commands.tables import amount_text, facts, table

PERCENTILES = (50, 95, 99)


def percentile(durations: Sequence[float], percent: int) -> float:
    """The smallest duration that at least `percent` of 100 do not exceed; `durations` is sorted."""
    return durations[max(math.ceil(len(durations) * percent / 100), 1) - 1]


def report(record: Record) -> dict[str, Any]:
    """A replay as one JSON document. Amounts are base units, latencies milliseconds."""
    return {
        "trace": record.trace,
        "nodes": record.nodes,
        "granted": record.granted,
        "refused": record.refused.total(),
        "refused_by": dict(record.refused.most_common()),
        "total": record.total,
        "peak_used": record.peak,
        "operations": record.operations,
        "seconds": round(record.seconds, 3),
        "operations_per_second": round(_rate(record), 1),
        "latency_ms": {name: _latency(durations) for name, durations in _by_operation(record)},
        "digest": record.digest,
        "class_checks": record.class_checks,
        "audit": dict(record.audit),
    }


def describe(record: Record) -> Iterator[RenderableType]:
    """A replay as tables."""
    yield facts(
        [
            ("trace", record.trace),
            ("nodes", f"{record.nodes:,}"),
            ("granted", f"{record.granted:,}"),
            ("refused", f"{record.refused.total():,}"),
            *[(f"  {reason}", f"{tasks:,}") for reason, tasks in record.refused.most_common()],
            *([("class checks", f"{record.class_checks:,}")] if record.class_checks else []),
            ("operations", f"{record.operations:,} in {record.seconds:.1f} s, {_rate(record):,.0f} a second"),
        ]
    )
    yield Text(f"digest      {record.digest}\n")
    yield table(
        ["dimension", "total", "peak use", "of total"],
        [
            [
                name,
                amount_text(name, total),
                amount_text(name, record.peak.get(name, 0)),
                _share(record, name),
            ]
            for name, total in record.total.items()
        ],
        right=["total", "peak use", "of total"],
    )
    yield Text()
    heads = [f"p{percent}" for percent in PERCENTILES]
    rows = []
    for name, durations in _by_operation(record):
        latency = _latency(durations)
        rows.append([name, f"{len(durations):,}", *[f"{latency[head]:.2f}" for head in (*heads, "max")]])
    yield table(["latency, ms", "number", *heads, "max"], rows, right=["number", *heads, "max"])
    yield Text()
    if record.audit:
        yield from audit_view(dict(record.audit))


def _by_operation(record: Record) -> Iterator[tuple[str, list[float]]]:
    """Sorted durations of each operation, then of all together; nothing that never happened."""
    together: list[float] = []
    for name, durations in record.latencies.items():
        together += durations
        yield name, sorted(durations)
    if together:
        yield "all", sorted(together)


def _latency(durations: Sequence[float]) -> dict[str, float]:
    found = {f"p{percent}": percentile(durations, percent) for percent in PERCENTILES}
    return {name: round(1000 * seconds, 3) for name, seconds in {**found, "max": durations[-1]}.items()}


def _rate(record: Record) -> float:
    return record.operations / record.seconds if record.seconds else 0.0


def _share(record: Record, dimension: str) -> str:
    total = record.total[dimension]
    return f"{100 * record.peak.get(dimension, 0) / total:.1f} %" if total else "-"
