"""What goes wrong, as the problem that the client is told."""

from collections.abc import Callable, Mapping
from typing import Any

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from werkzeug.exceptions import HTTPException

from rm_service.domain.tags import TagError
from rm_service.facades.http.paths import tag_path
from rm_service.facades.http.problems import ProblemError, invalid_fields
from rm_service.hosting.authentication import CHALLENGE, UnauthorizedError
from rm_service.ledger.errors import LedgerClosedError, LedgerUnavailableError, OutcomeUnknownError
from rm_service.ledger.queries.paging import CursorError

_CODES = {400: "malformed_request", 404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}

_AWAY = "the database cannot be reached; nothing was changed"
"""Where it is and why it is away stands in the log, not in an answer."""

_log = structlog.get_logger(__name__)


def problem_of(error: Exception, path: str) -> ProblemError:
    """What an exception is to the client who asked for `path`; a defect is logged."""
    for kind, translate in _TRANSLATIONS.items():
        if isinstance(error, kind):
            return translate(error)
    _log.error("request_failed", path=path, exc_info=error)
    return ProblemError("internal", "This is a defect; the server's log says more.")


def _later(code: str, detail: str, seconds: int = 1) -> ProblemError:
    return ProblemError(code, detail, headers={"Retry-After": str(seconds)})


def _database_away(error: Exception) -> ProblemError:
    reason = str(getattr(error, "orig", error)).strip()
    _log.warning("database_unavailable", error=reason)
    return _later("unavailable", _AWAY)


def _problem_of_http(error: HTTPException) -> ProblemError:
    status = error.code or 500
    code = _CODES.get(status, "internal" if status >= 500 else "malformed_request")
    headers = {name: value for name, value in error.get_headers() if name == "Allow"}
    allowed = f"allowed here: {headers['Allow']}" if headers else "not allowed here"
    detail = {404: "nothing is under this path", 405: allowed, 413: "the body is longer than is read"}
    said = error.description or "the request cannot be read"
    return ProblemError(code, detail.get(status, said), headers=headers)


_TRANSLATIONS: Mapping[type[Exception], Callable[[Any], ProblemError]] = {
    ProblemError: lambda error: error,
    UnauthorizedError: lambda error: ProblemError(
        "unauthorized", error.reason, headers={"WWW-Authenticate": CHALLENGE}
    ),
    TagError: lambda error: invalid_fields({tag_path(error): [error.reason]}),
    CursorError: lambda _: invalid_fields({"cursor": ["is not one of this list: begin without one"]}),
    HTTPException: _problem_of_http,
    LedgerUnavailableError: lambda error: _later("unavailable", _AWAY, error.retry_after),
    OutcomeUnknownError: lambda error: _later("outcome_unknown", str(error)),
    LedgerClosedError: lambda _: _later("closing", "the service is stopping"),
    OperationalError: _database_away,
    InterfaceError: _database_away,
    PoolTimeoutError: _database_away,
}
