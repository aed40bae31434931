"""What goes wrong, as the Status that the client is told."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import structlog
from sqlalchemy.exc import SQLAlchemyError

from rm_service.domain.outcomes import Code, Refused
from rm_service.facades.kubernetes.statuses import StatusError, already_exists, conflict, not_found
from rm_service.hosting.authentication import CHALLENGE, UnauthorizedError
from rm_service.ledger.errors import LedgerClosedError, LedgerUnavailableError, OutcomeUnknownError

_AWAY = "the database cannot be reached; nothing was changed"
"""Where it is and why it is away stands in the log, not in an answer."""

_log = structlog.get_logger(__name__)


def status_of(error: Exception, path: str) -> StatusError:
    """What an exception is to the client who asked for `path`; a defect is logged."""
    for kind, translate in _TRANSLATIONS.items():
        if isinstance(error, kind):
            return translate(error)
    _log.error("request_failed", path=path, exc_info=error)
    message = "an error on the server: this is a defect; its log says more"
    return StatusError(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", message, about_class=False)


def status_of_refusal(refused: Refused, name: str) -> StatusError:
    """What a refusal by the ledger is to the client who named the class `name`."""
    if refused.code is Code.UNKNOWN_CLASS:
        return not_found(name)
    if refused.field == "preconditions.uid":
        return conflict(name, f"Precondition failed: {refused.detail}")
    if refused.code is Code.CLASS_EXISTS:
        return already_exists(name)
    raise ValueError(refused)  # the ledger refuses nothing else of a class


def _unauthorized(error: UnauthorizedError) -> StatusError:
    headers = {"WWW-Authenticate": CHALLENGE}
    message = f"Unauthorized: {error.reason}"
    return StatusError(HTTPStatus.UNAUTHORIZED, "Unauthorized", message, about_class=False, headers=headers)


def _database_away(error: SQLAlchemyError) -> StatusError:
    _log.warning("database_unavailable", error=str(getattr(error, "orig", error)).strip())
    return _unavailable(_AWAY)


def _unavailable(message: str, seconds: int = 1) -> StatusError:
    return StatusError(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "ServiceUnavailable",
        message,
        about_class=False,
        headers={"Retry-After": str(seconds)},
        retry_after=seconds,
    )


_TRANSLATIONS: Mapping[type[Exception], Callable[[Any], StatusError]] = {
    StatusError: lambda error: error,
    UnauthorizedError: _unauthorized,
    LedgerUnavailableError: lambda error: _unavailable(_AWAY, error.retry_after),
    OutcomeUnknownError: lambda error: _unavailable(str(error)),
    LedgerClosedError: lambda _: _unavailable("the service is stopping"),
    SQLAlchemyError: _database_away,
}
