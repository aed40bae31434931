"""Many rows by one statement, in the way that each database takes them best.

PostgreSQL: one JSON document a statement, which it takes apart itself (`json_to_recordset`), so that the
driver has nothing to convert and one round trip serves a batch. SQLite: one prepared statement, bound once a
row; it runs in this process, and taking a document apart costs it twice as much. Both measured in
docs/decisions/0002-one-turn.md.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import orjson
from sqlalchemy import JSON, Table
from sqlalchemy.dialects import postgresql

_POSTGRES = postgresql.dialect()  # type: ignore[no-untyped-call]


_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


def to_json(value: object) -> str:
    """The value as JSON; dataclasses become objects with their fields, keys become texts.

    No database takes the character NUL, which other people's texts may hold: U+FFFD stands in its place.
    """
    text = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    return _NUL.sub(r"\1\\ufffd", text) if r"\u0000" in text else text


@dataclass(frozen=True, slots=True)
class Bulk:
    """A statement that writes rows, given as objects with an attribute for each column."""

    text: str
    values: Callable[[object], Sequence[object]] | None
    """What to bind for a row; None where the statement takes all rows as one document."""


@dataclass(frozen=True)
class Documents:
    """Statement texts for one dialect."""

    sqlite: bool

    @property
    def mark(self) -> str:
        """The driver's placeholder."""
        return "?" if self.sqlite else "%s"

    def insert(self, table: Table, columns: Sequence[str], tail: str = "") -> Bulk:
        """Insert rows."""
        names = ", ".join(columns)
        if self.sqlite:
            marks = ", ".join("?" * len(columns))
            return Bulk(
                f"INSERT INTO {table.name} ({names}) VALUES ({marks}) {tail}", _values(table, columns)
            )
        source = _recordset(table, columns)
        return Bulk(f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {source} {tail}", None)

    def upsert(self, table: Table, columns: Sequence[str]) -> Bulk:
        """Insert rows, or set them where the key is there."""
        keys = [column.name for column in table.primary_key]
        changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in keys)
        return self.insert(table, columns, f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}")

    def update(self, table: Table, key: str, columns: Sequence[str]) -> Bulk:
        """Set these columns of the rows that are named by their key."""
        if self.sqlite:
            changes = ", ".join(f"{name} = ?" for name in columns)
            return Bulk(f"UPDATE {table.name} SET {changes} WHERE {key} = ?", _values(table, [*columns, key]))
        changes = ", ".join(f"{name} = r.{name}" for name in columns)
        rows = _recordset(table, [key, *columns])
        return Bulk(f"UPDATE {table.name} SET {changes} FROM {rows} WHERE {table.name}.{key} = r.{key}", None)

    def select(self, table: Table, columns: Sequence[str], where: str) -> str:
        """All rows that fulfil `where` as one array of arrays, each with these columns in their order."""
        if self.sqlite:
            values = ", ".join(f"json({name})" if _is_json(table, name) else name for name in columns)
            return f"SELECT json_group_array(json_array({values})) FROM {table.name} WHERE {where}"
        names = ", ".join(columns)
        return f"SELECT json_agg(json_build_array({names}))::text FROM {table.name} WHERE {where}"

    def members(self) -> str:
        """The members of a JSON array given as parameter, as a sub-select's source of texts."""
        if self.sqlite:
            return f"SELECT value FROM json_each({self.mark})"
        return f"SELECT json_array_elements_text({self.mark}::json)"


def _recordset(table: Table, columns: Sequence[str]) -> str:
    """The rows of a document as a relation `r` with these columns of the table."""
    types = ", ".join(f"{name} {table.c[name].type.compile(_POSTGRES)}" for name in columns)
    return f"json_to_recordset(%s::json) AS r({types})"


def _values(table: Table, columns: Sequence[str]) -> Callable[[object], Sequence[object]]:
    attributes: Callable[[object], tuple[Any, ...]] = attrgetter(*columns)
    documents = [place for place, name in enumerate(columns) if _is_json(table, name)]

    def values(row: object) -> Sequence[object]:
        bound = list(attributes(row))
        for place in documents:
            if bound[place] is not None:
                bound[place] = to_json(bound[place])
        return bound

    return values


def _is_json(table: Table, column: str) -> bool:
    return isinstance(table.c[column].type, JSON)
