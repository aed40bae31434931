"""The rows of limits, and whose they are: an operator's, a resource manager's, or a limit source's."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection, bindparam, delete, insert, or_, select, update

from rm_service.domain.amounts import Amounts
from rm_service.domain.limits import LimitTerms
from rm_service.domain.tags import Tags, label_key
from rm_service.ledger import tables

_TABLE = tables.limit_rule
_RULE = _TABLE.c


def store_limit(
    connection: Connection, tags: Tags, total: Amounts, protected: Amounts, owner: str | None
) -> tuple[int, bool]:
    """Set the limit of these tags, whosesoever it was; its id, and whether it is new."""
    values = {"tags": dict(tags), "total": dict(total), "protected": dict(protected), "client": owner}
    key = label_key(tags)
    known = connection.execute(
        update(_TABLE).where(_RULE.key == key).values(**values).returning(_RULE.id)
    ).scalar_one_or_none()
    if known is not None:
        return known, False
    return connection.execute(insert(_TABLE).values(key=key, **values).returning(_RULE.id)).scalar_one(), True


def is_anothers(connection: Connection, tags: Tags, owner: str) -> bool:
    """Whether somebody else than this owner has set the limit of these tags."""
    found = connection.execute(select(_RULE.client).where(_RULE.key == label_key(tags))).first()
    return found is not None and found.client != owner


def replace_limits(
    connection: Connection,
    owner: str,
    limits: Sequence[LimitTerms],
    combinations: Collection[Tags] | None = None,
) -> tuple[list[LimitTerms], list[Tags]]:
    """Make these the owner's limits; which ones were set or changed, and whose tags have none any more.

    Only those of `combinations` are looked at, if they are given. Limits that somebody else set on the same
    tags stay: an operator's word goes before a file's.
    """
    here = None if combinations is None else _RULE.key.in_([label_key(tags) for tags in combinations])
    owned = select(_RULE.key, _RULE.tags, _RULE.total, _RULE.protected).where(_RULE.client == owner)
    others = select(_RULE.key).where(or_(_RULE.client.is_(None), _RULE.client != owner))
    before = {row.key: row for row in connection.execute(owned if here is None else owned.where(here))}
    taken = set(connection.execute(others if here is None else others.where(here)).scalars())
    wanted = {key: limit for limit in limits if (key := label_key(limit.tags)) not in taken}
    changed = {
        key: limit
        for key, limit in wanted.items()
        if key not in before
        or _amounts(limit) != {"total": before[key].total, "protected": before[key].protected}
    }
    gone = [key for key in before if key not in wanted]
    _write(connection, owner, changed, known=before.keys(), gone=gone)
    return list(changed.values()), [before[key].tags for key in gone]


def _write(
    connection: Connection,
    owner: str,
    changed: Mapping[str, LimitTerms],
    *,
    known: Collection[str],
    gone: Sequence[str],
) -> None:
    for start in range(0, len(gone), 1000):
        connection.execute(delete(_TABLE).where(_RULE.key.in_(gone[start : start + 1000])))
    anew = [{"of": key, **_amounts(limit)} for key, limit in changed.items() if key in known]
    if anew:
        later = update(_TABLE).where(_RULE.key == bindparam("of"))
        later = later.values(total=bindparam("total"), protected=bindparam("protected"))
        connection.execute(later, anew)
    added = [
        {"key": key, "tags": dict(limit.tags), "client": owner, **_amounts(limit)}
        for key, limit in changed.items()
        if key not in known
    ]
    if added:
        connection.execute(insert(_TABLE), added)


def _amounts(limit: LimitTerms) -> dict[str, dict[str, int]]:
    return {"total": dict(limit.total), "protected": dict(limit.protected)}
