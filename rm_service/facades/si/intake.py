"""What resource managers send, whichever way: a row for each method, and one place that takes it in."""

import logging
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf.message import DecodeError, Message
from sqlalchemy.exc import SQLAlchemyError

from rm_service.facades.si import reading
from rm_service.facades.si.proto import si_pb2 as si
from rm_service.facades.si.proto import si_v0_pb2 as si_v0
from rm_service.facades.si.redaction import redacted
from rm_service.facades.si.rendering import STREAM_OF, Stream
from rm_service.services.si.requests import Dialect, Registration, Update

_MESSAGES = logging.getLogger(f"{__name__}.messages")
REGISTER = "RegisterResourceManager"
EVERYTHING = frozenset(STREAM_OF)


class Scheduler(Protocol):
    """What is done with it: SchedulerService."""

    def register(self, registration: Registration) -> None:
        """Raises RegistrationRefusedError, LedgerUnavailableError, OutcomeUnknownError, LedgerClosedError."""

    def update(self, update: Update) -> Future[None]:
        """Ends when all of it is committed. Raises NotRegisteredError."""

    def at_hand(self, rm_id: str) -> bool:
        """Whether `update` knows this resource manager without asking the database."""


class BadMessageError(ValueError):
    """A message cannot be what it should be. `field` is the name of the field at fault, if it is one."""

    def __init__(self, reason: str, field: str = "") -> None:
        self.reason = reason
        self.field = field
        super().__init__(f"{field}: {reason}" if field else reason)


@dataclass(frozen=True, slots=True)
class Method:
    """One of the methods by which a resource manager says something and is answered."""

    name: str
    request: type[Message]
    stream: str
    """The name of the stream of its answers."""
    kinds: AbstractSet[str]
    """The kinds of answers that stream shows."""
    read: Callable[[Any, Dialect], Update]
    dialect: Dialect | None = None
    """The only one that has this method."""


def _kinds(stream: Stream) -> AbstractSet[str]:
    return frozenset(kind for kind, shown_by in STREAM_OF.items() if shown_by is stream)


METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        Method(
            "UpdateAllocation",
            si.AllocationRequest,
            Stream.ALLOCATION.value,
            _kinds(Stream.ALLOCATION),
            reading.read_allocations,
        ),
        Method(
            "UpdateApplication",
            si.ApplicationRequest,
            Stream.APPLICATION.value,
            _kinds(Stream.APPLICATION),
            reading.read_applications,
        ),
        Method("UpdateNode", si.NodeRequest, Stream.NODE.value, _kinds(Stream.NODE), reading.read_nodes),
        Method(
            "Update",
            si_v0.UpdateRequest,
            "update",
            EVERYTHING,
            lambda message, _: reading.read_old_update(message),
            Dialect.OLD,
        ),
    )
}
HTTP_STREAM = "responses"
KINDS_OF: Mapping[str, AbstractSet[str]] = {
    HTTP_STREAM: EVERYTHING,
    **{method.stream: method.kinds for method in METHODS.values()},
}
"""What each stream of answers shows; for AnswerFeed."""


class Intake:
    """Takes messages in. Every method may be called from any thread, and may ask the database.

    `spoken` is told of a resource manager that was found to speak a dialect, unless that was known; `heard`
    of each that asks for something.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        spoken: Callable[[str, Dialect], None],
        heard: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._scheduler = scheduler
        self._heard = heard
        self._spoken = spoken
        self._dialects: dict[str, Dialect] = {}

    def register(self, message: si.RegisterResourceManagerRequest) -> None:
        """Returns when it is committed. Raises what Scheduler.register does."""
        _show(message)
        self._scheduler.register(reading.read_registration(message))

    def update(self, method: Method, message: Any) -> Future[None]:  # noqa: ANN401 - one of method.request
        """Hand a message in, without waiting for its commit. Raises BadMessageError, NotRegisteredError."""
        rm_id = message.rmID
        if not rm_id:
            raise BadMessageError("must not be empty", "rmID")
        seen = reading.dialect_of(message)
        known = self._dialects.get(rm_id)
        taken_in = self._scheduler.update(method.read(message, seen or known or Dialect.NEWEST))
        _show(message)
        self._heard(rm_id)
        if seen is not None and seen is not known:
            self._dialects[rm_id] = seen
            with suppress(SQLAlchemyError):  # it was taken in; what is lost here, the next process finds out
                self._spoken(rm_id, seen)
        return taken_in

    def waits(self, message: Any) -> bool:  # noqa: ANN401 - one of method.request
        """Whether `update` may have to wait: for the database, or for whoever knows a user's groups."""
        seen, rm_id = reading.dialect_of(message), message.rmID
        return (
            not isinstance(message, si.AllocationRequest)
            or not self._scheduler.at_hand(rm_id)
            or (seen is not None and seen is not self._dialects.get(rm_id))
        )

    def dialect(self, rm_id: str, known: str | None = None) -> Dialect:
        """What a resource manager speaks: as last seen here, else as is `known` of it, else the newest."""
        seen = self._dialects.get(rm_id)
        if seen is None:
            seen = Dialect(known) if known else Dialect.NEWEST
        return seen


def _show(message: Message) -> None:
    """Put a message into the log, where everything is shown: without what is secret."""
    if _MESSAGES.isEnabledFor(logging.DEBUG):
        _MESSAGES.debug("%s %s", message.DESCRIPTOR.name, redacted(message))


def parse(request: type[Message], data: bytes) -> Any:  # noqa: ANN401 - a message of that type
    """Raises BadMessageError."""
    try:
        return request.FromString(data)
    except DecodeError as error:
        raise BadMessageError(f"this is no {request.DESCRIPTOR.name}") from error
