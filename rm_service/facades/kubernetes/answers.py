"""Documents as answers of the HTTP server."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus

import orjson

from rm_service.facades.kubernetes.media_types import JSON
from rm_service.facades.kubernetes.statuses import StatusError
from rm_service.hosting.answer import Answer

_HEADERS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
)


def answer(
    document: object,
    status: HTTPStatus = HTTPStatus.OK,
    headers: Sequence[tuple[str, str]] = (),
    content_type: str = JSON,
) -> Answer:
    """A document as JSON."""
    body = orjson.dumps(document)
    own = [("Content-Type", content_type), ("Content-Length", str(len(body))), *_HEADERS]
    return Answer(status, [*own, *headers], body)


def refusal(error: StatusError, more: Mapping[str, str] | None = None) -> Answer:
    """A refusal as an object of kind Status."""
    headers = [*error.headers.items(), *(more or {}).items()]
    return answer(error.document(), HTTPStatus(error.code), headers)
