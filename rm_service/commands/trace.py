"""A cluster trace: nodes and tasks in the two CSV files of the openb format, read and checked as a whole.

The format is that of the Alibaba "cluster-trace-gpu-v2023" (docs/replay.md names every column). Columns are
found by their names; others are ignored.
"""

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rm_service.domain.amounts import INT64_MAX, Amounts
from rm_service.domain.tags import value_fault

GPU_DIMENSION = "gpu_milli"
"""Thousandths of a GPU: 1000 is one whole card. Not part of this vector where there are none."""

MIB = 2**20

Item = TypeVar("Item")

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
TASK_COLUMNS = (
    *("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"),
    *("gpu_spec", "qos", "creation_time", "deletion_time"),
)


class TraceError(ValueError):
    """A trace file cannot be read as one. `line` counts from 1, the header included; `column` is its name.

    `column` is empty when the line as a whole is wrong.
    """

    def __init__(self, file: Path, line: int, column: str, reason: str) -> None:
        self.file = file
        self.line = line
        self.column = column
        self.reason = reason
        place = f", column {column}" if column else ""
        super().__init__(f"{file}, line {line}{place}: {reason}")


@dataclass(frozen=True, slots=True)
class TraceNode:
    """One machine: its name and what it has in total. `model` is None where it has no GPU."""

    instance: str
    total: Amounts
    gpus: int
    model: str | None


@dataclass(frozen=True, slots=True)
class TraceTask:
    """One task: what it needs, and when it comes and goes, in whole seconds of the trace."""

    name: str
    resource: Amounts
    gpus: int
    """How many cards it needs at least a share of."""
    models: tuple[str, ...]
    """The GPU models that it may run on; empty: any."""
    qos: str
    created: int
    deleted: int | None
    """None: it was still there when the trace ended."""


def read_nodes(file: Path) -> list[TraceNode]:
    """All nodes, in the file's order. Raises TraceError, and OSError when the file cannot be opened."""
    return _read_all(file, NODE_COLUMNS, _node, "sn")


def read_tasks(file: Path) -> list[TraceTask]:
    """All tasks, in the file's order. Raises TraceError, and OSError when the file cannot be opened."""
    return _read_all(file, TASK_COLUMNS, _task, "name")


def _node(row: "_Row") -> TraceNode:
    gpus = row.count("gpu")
    model = row.text("model")
    if gpus and not model:
        raise row.error("model", f"is empty, but the node has {gpus} GPUs")
    total = {"memory": row.count("memory_mib", MIB), "vcore": row.count("cpu_milli")}
    if gpus:
        total[GPU_DIMENSION] = row.count("gpu", 1000)
    return TraceNode(row.name("sn"), total, gpus, model or None)


def _task(row: "_Row") -> TraceTask:
    gpus = row.count("num_gpu")
    wanted = {"memory": row.count("memory_mib", MIB), "vcore": row.count("cpu_milli")}
    share = row.count("gpu_milli") if gpus else 0
    if share > 1000:
        raise row.error("gpu_milli", f"{share} is more than one card's 1000")
    if gpus:
        wanted[GPU_DIMENSION] = row.count("num_gpu", share)
    resource = {dimension: amount for dimension, amount in wanted.items() if amount}
    if not resource:
        raise row.error("cpu_milli", "the task asks for nothing")
    created = row.count("creation_time")
    deleted = row.count("deletion_time") if row.text("deletion_time") else None
    if deleted is not None and deleted < created:
        raise row.error("deletion_time", f"{deleted} is before the creation at {created}")
    models = tuple(sorted({model for model in row.text("gpu_spec").split("|") if model}))
    return TraceTask(row.name("name"), resource, gpus, models, row.text("qos"), created, deleted)


class _Row:
    """One line's values under the names of their columns."""

    def __init__(self, file: Path, line: int, values: Mapping[str, str]) -> None:
        self.file = file
        self.line = line
        self.values = values

    def error(self, column: str, reason: str) -> TraceError:
        return TraceError(self.file, self.line, column, reason)

    def text(self, column: str) -> str:
        """The value without surrounding blanks; it must be fit to be a tag's value."""
        value = self.values[column].strip()
        fault = value_fault(value)
        if fault:
            raise self.error(column, fault)
        return value

    def name(self, column: str) -> str:
        """A text that is not empty."""
        value = self.text(column)
        if not value:
            raise self.error(column, "is empty")
        return value

    def count(self, column: str, unit: int = 1) -> int:
        """A whole number that is not negative, times `unit`."""
        value = self.text(column)
        if not (value.isascii() and value.isdigit() and len(value) <= 19):
            raise self.error(column, f"{value!r} is not a whole number of 0 or more")
        amount = int(value) * unit
        if amount > INT64_MAX:
            raise self.error(column, f"{value} is too large")
        return amount


def _read_all(file: Path, columns: tuple[str, ...], make: Callable[[_Row], Item], key: str) -> list[Item]:
    items: list[Item] = []
    first_lines: dict[str, int] = {}
    for row in _rows(file, columns):
        items.append(make(row))
        name = row.text(key)
        if name in first_lines:
            raise row.error(key, f"{name!r} is in line {first_lines[name]} already")
        first_lines[name] = row.line
    if not items:
        raise TraceError(file, 1, "", "there is no line below the header")
    return items


def _rows(file: Path, columns: tuple[str, ...]) -> Iterator[_Row]:
    with file.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, strict=True)
        try:
            header = next(reader, [])
            names = _check_header(file, header, columns)
            for values in reader:
                if not values:
                    continue  # an empty line at the end
                if len(values) != len(names):
                    reason = f"{len(values)} values under {len(names)} columns"
                    raise TraceError(file, reader.line_num, "", reason)
                yield _Row(file, reader.line_num, dict(zip(names, values, strict=True)))
        except csv.Error as error:
            raise TraceError(file, reader.line_num, "", str(error)) from error
        except UnicodeDecodeError as error:
            raise TraceError(file, reader.line_num + 1, "", "is not UTF-8") from error


def _check_header(file: Path, header: list[str], columns: tuple[str, ...]) -> list[str]:
    names = [name.strip() for name in header]
    for column in columns:
        if names.count(column) != 1:
            reason = "is missing in the header" if column not in names else "is in the header twice"
            raise TraceError(file, 1, column, reason)
    return names
