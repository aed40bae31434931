"""Finding applications by their tags: what the database's index can answer, and what is left for Python.

PostgreSQL has a GIN index on the tags of live applications (ix_application_live_tags), SQLite the table
application_tag. Both answer only "this key has this value"; every other requirement is matched in Python.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, false, func, or_, select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB

from rm_service.domain.selectors import Operator, Requirement, Selector
from rm_service.domain.tags import Tags
from rm_service.ledger import tables


def split(selector: Selector) -> tuple[list[Requirement], Selector]:
    """The requirements that name values, and the rest of the selector."""
    by_value = [term for term in selector.requirements if term.operator is Operator.IN]
    rest = [term for term in selector.requirements if term.operator is not Operator.IN]
    return by_value, Selector(tuple(rest))


def requirements_of(tags: Tags) -> list[Requirement]:
    """Each of these tags, as a requirement."""
    return [Requirement(key, Operator.IN, (value,)) for key, value in tags.items()]


def live_with(connection: Connection, requirements: Sequence[Requirement]) -> list[ColumnElement[bool]]:
    """Conditions on live applications, answered by the index."""
    if connection.dialect.name == "postgresql":
        return [_contains(term) for term in requirements]
    tag, application_id = tables.application_tag.c, tables.application.c.id
    return [
        application_id.in_(select(tag.application_id).where(tag.key == term.key, tag.value.in_(term.values)))
        for term in requirements
    ]


def any_with(connection: Connection, requirements: Sequence[Requirement]) -> list[ColumnElement[bool]]:
    """The same conditions on applications live or not: no index, but the database leaves out the others."""
    if connection.dialect.name == "postgresql":
        return [_contains(term) for term in requirements]
    return [value_of(connection, tables.application, term.key).in_(term.values) for term in requirements]


def value_of(connection: Connection, table: Table, key: str) -> ColumnElement[Any]:
    """The value of a tag as text, NULL where there is none."""
    if connection.dialect.name == "postgresql":
        text: ColumnElement[Any] = type_coerce(table.c.tags, JSONB)[key].astext
        return text
    return func.json_extract(table.c.tags, f'$."{key}"')  # a key holds no quotes and no backslash


def _contains(term: Requirement) -> ColumnElement[bool]:
    tags = type_coerce(tables.application.c.tags, JSONB)
    return or_(false(), *[tags.contains({term.key: value}) for value in term.values])
