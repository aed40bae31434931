"""Finding applications by their tags: what an index answers, what the database filters, what Python matches.

PostgreSQL has a GIN index on the tags of live applications (ix_application_live_tags), SQLite the table
application_tag. Both answer only "this key has this value". Of the other requirements the orderings alone are
not put to the database: it would have to read numbers as selectors do.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, false, func, or_, select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB

from rm_service.domain.selectors import Operator, Requirement, Selector
from rm_service.domain.tags import Tags
from rm_service.ledger import tables

_DECIDED = frozenset({Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.MISSING})


def named(selector: Selector) -> list[Requirement]:
    """The requirements that name the values they want."""
    return [term for term in selector.requirements if term.operator is Operator.IN]


def requirements_of(tags: Tags) -> list[Requirement]:
    """Each of these tags, as a requirement."""
    return [Requirement(key, Operator.IN, (value,)) for key, value in tags.items()]


def undecided(selector: Selector) -> Selector:
    """What `fulfilling` leaves open: the orderings."""
    return Selector(tuple([term for term in selector.requirements if term.operator not in _DECIDED]))


def live_with(connection: Connection, terms: Sequence[Requirement]) -> list[ColumnElement[bool]]:
    """Conditions for `named` terms on live applications, answered by the index."""
    if connection.dialect.name == "postgresql":
        return [_contains(term) for term in terms]
    tag, application_id = tables.application_tag.c, tables.application.c.id
    return [
        application_id.in_(select(tag.application_id).where(tag.key == term.key, tag.value.in_(term.values)))
        for term in terms
    ]


def fulfilling(connection: Connection, terms: Sequence[Requirement]) -> list[ColumnElement[bool]]:
    """Conditions for any terms on any applications, to filter by; an ordering only asks for its key."""
    return [_fulfils(connection, term) for term in terms]


def value_of(connection: Connection, key: str) -> ColumnElement[Any]:
    """The value of an application's tag as text, NULL where there is none."""
    if connection.dialect.name == "postgresql":
        text: ColumnElement[Any] = type_coerce(tables.application.c.tags, JSONB)[key].astext
        return text
    return func.json_extract(tables.application.c.tags, f'$."{key}"')  # a key holds no quotes, no backslash


def _fulfils(connection: Connection, term: Requirement) -> ColumnElement[bool]:
    value = value_of(connection, term.key)
    match term.operator:
        case Operator.IN if connection.dialect.name == "postgresql":
            return _contains(term)
        case Operator.IN:
            return value.in_(term.values)
        case Operator.NOT_IN:
            return or_(value.is_(None), value.not_in(term.values))
        case Operator.MISSING:
            return value.is_(None)
        case _:
            return value.is_not(None)


def _contains(term: Requirement) -> ColumnElement[bool]:
    tags = type_coerce(tables.application.c.tags, JSONB)
    return or_(false(), *[tags.contains({term.key: value}) for value in term.values])
