"""Rows in and out of the database as one JSON document a table and batch.

One text parameter instead of an array a column: the driver has nothing to convert, the database reads the
rows with its own parser, and both dialects speak it (measured in docs/decisions/0002-one-turn.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import JSON, Table
from sqlalchemy.dialects import postgresql

_POSTGRES = postgresql.dialect()  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Documents:
    """Statement texts for one dialect. They take a JSON array of objects and give one of arrays."""

    sqlite: bool

    @property
    def mark(self) -> str:
        """The driver's placeholder."""
        return "?" if self.sqlite else "%s"

    def rows(self, table: Table, columns: Sequence[str]) -> str:
        """The rows of the document as a relation `r` with these columns of the table."""
        if self.sqlite:
            values = ", ".join(f"json_extract(value, '$.{name}') AS {name}" for name in columns)
            return f"(SELECT {values} FROM json_each({self.mark})) AS r"
        types = ", ".join(f"{name} {table.c[name].type.compile(_POSTGRES)}" for name in columns)
        return f"json_to_recordset({self.mark}::json) AS r({types})"

    def insert(self, table: Table, columns: Sequence[str], tail: str = "") -> str:
        """Insert the document's rows."""
        names = ", ".join(columns)
        # SQLite takes a WHERE to tell an upsert's ON from a join's.
        where = " WHERE true" if tail else ""
        source = self.rows(table, columns)
        return f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {source}{where} {tail}"

    def upsert(self, table: Table, columns: Sequence[str]) -> str:
        """Insert the document's rows, or set them where the key is there."""
        keys = [column.name for column in table.primary_key]
        changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in keys)
        return self.insert(table, columns, f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}")

    def update(self, table: Table, key: str, columns: Sequence[str]) -> str:
        """Set these columns of the rows that the document names by their key."""
        changes = ", ".join(f"{name} = r.{name}" for name in columns)
        rows = self.rows(table, [key, *columns])
        return f"UPDATE {table.name} SET {changes} FROM {rows} WHERE {table.name}.{key} = r.{key}"

    def select(self, table: Table, columns: Sequence[str], where: str) -> str:
        """All rows that fulfil `where` as one array of arrays, each with these columns in their order."""
        if self.sqlite:
            values = ", ".join(
                f"json({name})" if isinstance(table.c[name].type, JSON) else name for name in columns
            )
            return f"SELECT json_group_array(json_array({values})) FROM {table.name} WHERE {where}"
        names = ", ".join(columns)
        return f"SELECT json_agg(json_build_array({names}))::text FROM {table.name} WHERE {where}"

    def members(self) -> str:
        """The members of a JSON array given as parameter, as a sub-select's source of texts."""
        if self.sqlite:
            return f"SELECT value FROM json_each({self.mark})"
        return f"SELECT json_array_elements_text({self.mark}::json)"
