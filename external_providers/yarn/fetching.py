"""One question to one ResourceManager: its answer, or what was wrong in words for an operator."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

import requests

from external_providers.base import DeniedError, MalformedError, ProviderError, UnreachableError
from external_providers.bounded_http import (
    Answer,
    BoundedSession,
    Deadline,
    LateError,
    TooLongError,
    origin,
)
from external_providers.yarn import kerberos
from external_providers.yarn.json_tolerance import Object, read
from external_providers.yarn.words import plain

MOST_BYTES = 32 * 2**20
STANDBY = b"This is standby RM"


class StandbyError(UnreachableError):
    """This one stands by. `location` is where it says the active one is; empty if it does not."""

    def __init__(self, reason: str, location: str = "") -> None:
        self.location = location
        super().__init__(reason)


class RedirectedError(MalformedError):
    """It sends us elsewhere, to `location`."""

    def __init__(self, address: str, location: str) -> None:
        self.location = location
        there = origin(location)
        where = "another page" if there in {"", origin(address)} else there
        super().__init__(f"{address} redirects to {where}, where we do not follow")


@dataclass(frozen=True, slots=True)
class Question:
    """What to ask of whom."""

    address: str
    path: str
    deadline: Deadline
    params: Mapping[str, Any]

    @property
    def url(self) -> str:
        return self.address.rstrip("/") + self.path


def fetch(question: Question, session: BoundedSession) -> Object:
    """The JSON object that is answered. Raises ProviderError."""
    try:
        answer = session.get(
            question.url,
            question.deadline,
            most_bytes=MOST_BYTES,
            connect_seconds=question.params["connect_timeout_seconds"],
        )
    except LateError as error:
        raise UnreachableError(f"{question.address} did not answer in time") from error
    except TooLongError as error:
        reason = f"{question.address}: the answer is longer than {MOST_BYTES >> 20} MiB"
        raise MalformedError(reason) from error
    except Exception as error:
        found = _fault(error, question)
        if found is None:
            raise
        raise found from error
    _refuse_status(answer, question)
    return _document(answer, question)


def _absolute(location: str, question: Question) -> str:
    try:
        return urljoin(question.url, location) if location else ""
    except ValueError:
        return ""


def _refuse_status(answer: Answer, question: Question) -> None:
    address, status = question.address, answer.status
    stands_by = answer.body.startswith(STANDBY)
    if stands_by or (300 <= status < 400 and "location" in answer.headers):
        location = _absolute(answer.headers.get("location", ""), question)
        if stands_by:
            raise StandbyError(f"{address} stands by", location)
        raise RedirectedError(address, location)
    if status in {401, 403}:
        raise DeniedError(f"{address} does not let us look (HTTP {status})")
    if status >= 500:
        raise UnreachableError(f"{address} answers HTTP {status}")
    if status != 200:
        raise MalformedError(f"{address} answers HTTP {status} to {question.path.partition('?')[0]}")


def _document(answer: Answer, question: Question) -> Object:
    try:
        return read(answer.body)
    except MalformedError as error:
        # A ResourceManager that stands by while none is active tells browsers, in words, to come again.
        if "refresh" in answer.headers:
            raise StandbyError(f"{question.address} stands by") from error
        raise MalformedError(f"{question.address}: {error}") from error


def _fault(error: Exception, question: Question) -> ProviderError | None:
    """What an error of a library tells; None: it is a fault of ours."""
    address = question.address
    if "kerberos" in question.params and (found := kerberos.fault(error, address)):
        return found
    if isinstance(error, requests.RequestException):
        return UnreachableError(f"{address}: {_reason(error)}")
    if isinstance(error, OSError):  # a file of certificates that cannot be read
        return UnreachableError(f"{address}: {error.strerror or error}")
    return None


def _reason(error: BaseException) -> str:
    """The innermost reason in a few words; the outer texts are long and name our own classes."""
    found: BaseException | None = error
    for _ in range(10):
        if found is None:
            break
        if isinstance(found, OSError) and found.strerror:
            return plain(found.strerror)
        inner = getattr(found, "reason", None) or found.__cause__ or found.__context__
        first = found.args[0] if found.args and isinstance(found.args[0], BaseException) else None
        found = first or (inner if isinstance(inner, BaseException) else None)
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the answer was cut off"
    return "the connection failed" if isinstance(error, requests.ConnectionError) else type(error).__name__
