"""What a benchmark found: tables of measured values, and ratios beside their targets."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

Cell = str | int | float


@dataclass(frozen=True, slots=True)
class Ratio:
    """One claim: a quotient (or a cost) that is to be at least, else at most, its target."""

    what: str
    value: float
    target: float
    at_least: bool = True
    unit: str = "x"

    @property
    def reached(self) -> bool:
        return self.value >= self.target if self.at_least else self.value <= self.target


@dataclass(frozen=True, slots=True)
class Table:
    """Measured values; a row's first cell says of what."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that one benchmark has to say."""

    title: str
    tables: Sequence[Table]
    ratios: Sequence[Ratio] = ()
    notes: Sequence[str] = field(default_factory=tuple)

    def as_text(self) -> str:
        """The findings in Markdown, to be read in a terminal and pasted into docs/performance.md."""
        parts = [f"## {self.title}", *map(_table, self.tables)]
        if self.ratios:
            rows = [(ratio.what, _value(ratio), _target(ratio), _verdict(ratio)) for ratio in self.ratios]
            parts.append(_table(Table(("ratio", "measured", "target", ""), rows)))
        parts += [f"Note: {note}" for note in self.notes]
        return "\n\n".join(parts)

    def as_document(self) -> dict[str, Any]:
        """The findings as JSON values, each ratio with its verdict."""
        document = asdict(self)
        document["ratios"] = [{**asdict(ratio), "reached": ratio.reached} for ratio in self.ratios]
        return document


def as_json(machine: dict[str, str], findings: Iterable[tuple[str, Findings]]) -> str:
    """A whole run as one JSON document."""
    benchmarks = {name: found.as_document() for name, found in findings}
    return json.dumps({"machine": machine, "benchmarks": benchmarks}, indent=2)


def _table(table: Table) -> str:
    rows = [tuple(map(_cell, row)) for row in table.rows]
    widths = [max(map(len, column)) for column in zip(table.columns, *rows, strict=True)]
    rule = ["-" * width for width in widths]
    lines = [_line(table.columns, widths, str.ljust), "|" + "|".join(f" {dashes} " for dashes in rule) + "|"]
    lines += [_line(row, widths, str.rjust) for row in rows]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int], adjust: Callable[[str, int], str]) -> str:
    first, *others = zip(cells, widths, strict=True)
    padded = [first[0].ljust(first[1]), *(adjust(cell, width) for cell, width in others)]
    return "| " + " | ".join(padded) + " |"


def _cell(value: Cell) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else value


def _value(ratio: Ratio) -> str:
    return f"{ratio.value:.2f} {ratio.unit}"


def _target(ratio: Ratio) -> str:
    return f"{'>=' if ratio.at_least else '<='} {ratio.target:.2f} {ratio.unit}"


def _verdict(ratio: Ratio) -> str:
    return "reached" if ratio.reached else "NOT reached"
