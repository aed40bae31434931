"""Why a message could not be taken in, in words that gRPC and HTTP share."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from rm_service.facades.si.answer_feed import RowAheadError
from rm_service.facades.si.intake import BadMessageError
from rm_service.hosting.authentication import UnauthorizedError
from rm_service.ledger.errors import LedgerClosedError, LedgerUnavailableError, OutcomeUnknownError
from rm_service.services.si.errors import NotRegisteredError, RegistrationRefusedError

AWAY = "the database cannot be reached; nothing was changed"
STOPPING = "the service is stopping"

_log = structlog.get_logger(__name__)


class Fault(Enum):
    """Whose fault it is, and what can be done."""

    BAD_MESSAGE = auto()
    REFUSED = auto()
    NOT_REGISTERED = auto()
    UNAUTHORIZED = auto()
    AWAY = auto()
    OUTCOME_UNKNOWN = auto()
    STOPPING = auto()
    REGISTERED_ANEW = auto()
    """Streams of an earlier registration end, so that the resource manager tells everything again."""
    DEFECT = auto()


@dataclass(frozen=True, slots=True)
class Failure:
    """A fault, and a sentence for people."""

    fault: Fault
    reason: str
    field: str = ""
    """The field at fault, if it is one."""


STOPPED = Failure(Fault.STOPPING, STOPPING)
UNREADABLE = Failure(Fault.AWAY, "the answers cannot be read: come back and go on")


def failure_of(error: BaseException, received: str) -> Failure:
    """What an exception is to the client who sent `received`; a defect is logged."""
    if isinstance(error, BadMessageError):
        return Failure(Fault.BAD_MESSAGE, str(error), error.field)
    if isinstance(error, NotRegisteredError):
        return Failure(Fault.NOT_REGISTERED, f"received {received}, but {error}")
    fault = _FAULTS.get(type(error))
    if fault is None:
        _log.error("si_request_failed", received=received, exc_info=error)
        return Failure(Fault.DEFECT, "this is a defect; the server's log says more")
    return Failure(fault, _REASONS.get(fault) or str(error))


_FAULTS: Mapping[type[BaseException], Fault] = {
    RowAheadError: Fault.BAD_MESSAGE,
    RegistrationRefusedError: Fault.REFUSED,
    UnauthorizedError: Fault.UNAUTHORIZED,
    OutcomeUnknownError: Fault.OUTCOME_UNKNOWN,
    LedgerUnavailableError: Fault.AWAY,
    OperationalError: Fault.AWAY,
    InterfaceError: Fault.AWAY,
    PoolTimeoutError: Fault.AWAY,
    LedgerClosedError: Fault.STOPPING,
}
_REASONS = {Fault.AWAY: AWAY, Fault.STOPPING: STOPPING}
