"""JSON merge patches (RFC 7386): the document that is to come out, with null for what is to go."""

from collections.abc import Mapping

MERGE_PATCH = "application/merge-patch+json"


def merged(document: object, patch: object) -> object:
    """The document with the patch applied; both stay as they are."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(document) if isinstance(document, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result
