"""JSON in and out: read strictly, because what two readers understand differently must not be booked."""

import json
from typing import Any, NoReturn

import orjson

from rm_service.facades.http.problems import ProblemError


def read_json(body: bytes) -> dict[str, Any]:
    """The object that a body holds.

    Raises ProblemError (`malformed_json`) for anything but JSON as RFC 8259 has it, a key named twice, NaN
    and infinities, half surrogates, deep nesting, and anything but an object at the top.
    """
    try:
        orjson.loads(
            body
        )  # strict about the text, fast, and says where it is wrong; keeps the last of two keys
        document = _DECODER.decode(body.decode())
    except orjson.JSONDecodeError as error:
        raise _malformed(str(error)) from error
    except (ValueError, RecursionError) as error:
        detail = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _malformed(detail) from error
    if not isinstance(document, dict):
        raise _malformed("it must be an object")
    return document


def write_json(document: object) -> bytes:
    """A document as UTF-8 JSON."""
    return orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:100]!r} stands twice in one object")
    return document


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refuse)


def _malformed(reason: str) -> ProblemError:
    return ProblemError("malformed_json", f"The body is not what is read here: {reason}.")
