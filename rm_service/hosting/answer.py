"""A complete HTTP answer, and the problem documents (RFC 9457) that the server itself gives."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers and the whole body."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


def problem(
    status: HTTPStatus,
    code: str,
    detail: str,
    headers: Sequence[tuple[str, str]] = (),
    errors: Mapping[str, Sequence[str]] | None = None,
) -> Answer:
    """A refusal. `code` is stable, `detail` is for people, `errors` says what is wrong field by field."""
    document = {"status": status, "title": status.phrase, "detail": detail, "code": code}
    body = json.dumps(document | ({"errors": errors} if errors else {})).encode()
    own = [("Content-Type", "application/problem+json"), ("Content-Length", str(len(body)))]
    return Answer(status, [*own, *headers], body)


def latin_1(headers: Sequence[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Headers as the wire has them."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
