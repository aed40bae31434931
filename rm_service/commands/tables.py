"""Tables for people: amounts as quantities, numbers aligned to the right, at 80 columns and when piped."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from rm_service.domain.amounts import DEVICE
from rm_service.domain.class_book import CLASS
from rm_service.domain.exact_quantities import format_milli
from rm_service.domain.quantities import format_quantity

PIPED_WIDTH = 1000
"""Columns where nobody looks: a record then stays on one line, as grep and awk want it."""

WORD = 20
"""A column does not become so narrow that it breaks words up to this length."""
GAP = 2
"""Blanks between columns."""

BALANCE = ("total", "protected", "locked", "used", "unseen", "others", "left")

BLANK = Text("")
"""The cell below a value that holds for this line too."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def make_console(*, stderr: bool = False) -> Console:
    """The console to print on; without colours and escapes where it is no terminal."""
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPED_WIDTH
    return console


def plain(value: object) -> str:
    """A value of the service as text that cannot steer a terminal; an absent one is a dash."""
    if value is None or value == "":
        return "-"
    return _CONTROL.sub("\ufffd", str(value))


def tags_text(tags: Mapping[str, Any]) -> str:
    """`user=alice, creator=IDE`: a line may end between two."""
    return plain(", ".join(f"{key}={value}" for key, value in tags.items()))


def amounts_text(amounts: Mapping[str, int] | None) -> str:
    """`memory=2Gi vcore=500m`"""
    pairs = [f"{dimension}={amount_text(dimension, amount)}" for dimension, amount in (amounts or {}).items()]
    return plain(" ".join(pairs))


def amount_text(dimension: str, amount: int | None) -> str:
    """`2Gi`; a dash where there is no such amount, which is not the same as 0."""
    if amount is None:
        return "-"
    if dimension.startswith((DEVICE, CLASS)):  # thousandths of a device
        return format_milli(amount)
    return format_quantity(dimension, amount)


def moment_text(time: str | None) -> str:
    """`2026-11-20 06:12:26Z`, of a time with microseconds."""
    return plain(None if time is None else f"{time[:10]} {time[11:19]}Z")


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Iterable[str] = (),
    whole: Iterable[str] = (),
) -> Table:
    """A table without lines; the columns in `right` are numbers. Where the width ends the others fold, but
    not those in `whole`.
    """
    texts = [[cell if cell is BLANK else Text(plain(cell)) for cell in row] for row in rows]
    numbers, unfolded = frozenset(right), frozenset([*right, *whole])
    natural, least = [], []
    for place, column in enumerate(columns):
        cells = [column, *(row[place].plain for row in texts)]
        longest, word = _longest(cells), min(_longest(" ".join(cells).split()), WORD)
        natural.append(longest)
        least.append(longest if column in unfolded else word)
    widths = _fit(natural, least, make_console().width - GAP * (len(columns) - 1))
    drawn = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for column, width in zip(columns, widths, strict=True):
        justify: JustifyMethod = "right" if column in numbers else "left"
        drawn.add_column(column, justify=justify, overflow="fold", width=width)
    for row in texts:
        drawn.add_row(*row)
    return drawn


def _longest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


def _fit(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Widths that add up to `room` if they can: the widest column gives way first, none below its least."""
    widths = list(natural)
    while sum(widths) > room:
        yielding = [place for place, width in enumerate(widths) if width > least[place]]
        if not yielding:
            break
        widths[max(yielding, key=widths.__getitem__)] -= 1
    return widths


def facts(pairs: Iterable[tuple[str, object]]) -> Table:
    """What is known of one thing: a line for each fact."""
    drawn = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_header=False)
    drawn.add_column(style="bold", no_wrap=True)
    drawn.add_column(overflow="fold")
    for name, value in pairs:
        drawn.add_row(name, Text(plain(value)))
    return drawn


def balances(
    heads: Sequence[str],
    records: Iterable[tuple[Sequence[object], Mapping[str, Any]]],
    *,
    right: Iterable[str] = (),
) -> Table:
    """Records with amounts: each begins with its `heads` and takes a line for each of its dimensions.

    The amounts are those of `BALANCE`; a column that is empty or 0 everywhere is left out.
    """
    known = list(records)
    shown = [name for name in BALANCE if any(any((record.get(name) or {}).values()) for _, record in known)]
    rows: list[list[object]] = []
    for cells, record in known:
        lead: Sequence[object] = cells
        for dimension in _dimensions(record):
            amounts = [amount_text(dimension, (record.get(name) or {}).get(dimension)) for name in shown]
            rows.append([*lead, dimension, *amounts])
            lead = [BLANK] * len(cells)
    return table([*heads, "dimension", *shown], rows, right=[*shown, *right])


def _dimensions(record: Mapping[str, Any]) -> list[str]:
    """Every dimension that the record speaks of, in the order of its total; at least one line."""
    found = {dimension: None for name in BALANCE for dimension in record.get(name) or {}}
    return list(found) or [""]
