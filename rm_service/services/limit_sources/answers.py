"""The question to a configuration service and its answer, as JSON."""

import json
from collections.abc import Mapping, Sequence

from external_providers.base import MalformedError
from rm_service.domain.limits import LimitTerms
from rm_service.domain.resource_shapes import read_amounts
from rm_service.domain.shape_fields import ShapeError
from rm_service.domain.tags import TagError, Tags, check_tags, label_key
from rm_service.services.limit_sources.sources import Said


def question(combinations: Sequence[Tags]) -> bytes:
    """The body that asks for these."""
    return json.dumps({"combinations": [dict(tags) for tags in combinations]}).encode()


def read_answer(body: bytes, combinations: Sequence[Tags]) -> Said:
    """What an answer says of what was asked.

    An answer of another form, or about what was not asked for, is refused whole: MalformedError. Amounts that
    are none make only their own combination unusable, because one bad entry must not blind us to all others.
    """
    asked = {label_key(tags) for tags in combinations}
    found: dict[str, LimitTerms] = {}
    unusable: dict[str, str] = {}
    for place, entry in enumerate(_entries(body)):
        tags = _tags(entry, f"limits.{place}")
        key = label_key(tags)
        if key not in asked:
            raise MalformedError(f"limits.{place}.tags: this combination was not asked for")
        if key in found or key in unusable:
            raise MalformedError(f"limits.{place}.tags: this combination is answered twice")
        try:
            found[key] = _terms(tags, entry)
        except ShapeError as error:
            unusable[key] = f"limits.{place}: {error}"
    return Said(list(found.values()), unusable)


def _entries(body: bytes) -> list[object]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise MalformedError("the answer is no JSON") from None
    entries = document.get("limits") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise MalformedError("the answer has no list `limits`")
    return entries


def _tags(entry: object, path: str) -> dict[str, str]:
    if not isinstance(entry, Mapping):
        raise MalformedError(f"{path}: must be an object")
    try:
        return check_tags(entry.get("tags"))
    except TagError as error:
        raise MalformedError(f"{path}.tags: {error}") from None


def _terms(tags: Tags, entry: object) -> LimitTerms:
    document: Mapping[str, object] = entry if isinstance(entry, Mapping) else {}
    total = _amounts(document, "total", document.get("total"))
    protected = _amounts(document, "protected", document.get("protected", {}))
    return LimitTerms(tags, total, protected)


def _amounts(entry: Mapping[str, object], part: str, document: object) -> dict[str, int]:
    if part not in entry and part == "total":
        raise ShapeError(part, "is missing")
    try:
        amounts, carried = read_amounts(document)
    except ShapeError as error:
        raise ShapeError(f"{part}.{error.path}" if error.path else part, error.reason) from error
    if carried:
        raise ShapeError(part, "names a place: say it in the tags")
    return amounts
