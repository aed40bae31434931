"""One question to one ResourceManager: its answer, or what was wrong in words for an operator."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests

from external_providers.base import DeniedError, MalformedError, ProviderError, UnreachableError
from external_providers.yarn import kerberos
from external_providers.yarn.json_tolerance import Object, excerpt, read
from external_providers.yarn.sessions import Deadline, Lent

MOST_BYTES = 32 * 2**20
CHUNK = 64 * 2**10
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
        path = excerpt(urlsplit(location).path.encode()).strip("'") if origin(location) else ""
        where = origin(location) + path
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


def fetch(question: Question, lent: Lent) -> Object:
    """The JSON object that is answered. Raises ProviderError."""
    address = question.address
    connect = max(0.001, min(question.params["connect_timeout_seconds"], question.deadline.seconds_left))
    read_seconds = max(0.001, question.deadline.seconds_left)
    try:
        with (
            lent.until(question.deadline),
            lent.session.get(
                question.url, stream=True, allow_redirects=False, timeout=(connect, read_seconds)
            ) as response,
        ):
            body = _body(response, address)
            _refuse_status(response, body, question)
    except ProviderError:
        raise
    except Exception as error:
        found = _fault(error, question)
        if found is None:
            raise
        raise found from error
    if question.deadline.passed:
        raise UnreachableError(f"{address} did not answer in time")
    return _document(response, body, question)


def origin(url: str) -> str:
    """Scheme, host and port, as one text for the same place: `http://rm1:8088`. Empty if it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.hostname}:{port}" if parts.hostname and port else ""


def _absolute(location: str, question: Question) -> str:
    try:
        return urljoin(question.url, location) if location else ""
    except ValueError:
        return ""


def _body(response: requests.Response, address: str) -> bytes:
    parts: list[bytes] = []
    length = 0
    chunks: Iterator[bytes] = response.iter_content(CHUNK)
    for chunk in chunks:
        length += len(chunk)
        if length > MOST_BYTES:
            raise MalformedError(f"{address}: the answer is longer than {MOST_BYTES >> 20} MiB")
        parts.append(chunk)
    return b"".join(parts)


def _refuse_status(response: requests.Response, body: bytes, question: Question) -> None:
    address, status = question.address, response.status_code
    if body.startswith(STANDBY) or (300 <= status < 400 and "Location" in response.headers):
        location = _absolute(response.headers.get("Location", ""), question)
        if body.startswith(STANDBY):
            raise StandbyError(f"{address} stands by", location)
        raise RedirectedError(address, location)
    if status in {401, 403}:
        raise DeniedError(f"{address} does not let us look (HTTP {status})")
    if status >= 500:
        raise UnreachableError(f"{address} answers HTTP {status}")
    if status != 200:
        raise MalformedError(f"{address} answers HTTP {status} to {question.path.partition('?')[0]}")


def _document(response: requests.Response, body: bytes, question: Question) -> Object:
    try:
        return read(body, secrets(question.params))
    except MalformedError as error:
        # A ResourceManager that stands by while none is active tells browsers, in words, to come again.
        if "Refresh" in response.headers:
            raise StandbyError(f"{question.address} stands by") from error
        raise MalformedError(f"{question.address}: {error}") from error


def secrets(params: Mapping[str, Any]) -> tuple[str, ...]:
    """What must not be shown, whoever sends it back."""
    if "password" not in params:
        return ()
    password = params["password"]
    return (base64.b64encode(f"{params['user']}:{password}".encode()).decode(), password)


def _fault(error: Exception, question: Question) -> ProviderError | None:
    """What an error of a library tells; None: it is a fault of ours."""
    address = question.address
    if question.deadline.passed:
        return UnreachableError(f"{address} did not answer in time")
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
            return excerpt(found.strerror.encode()).strip("'\"")
        inner = getattr(found, "reason", None) or found.__cause__ or found.__context__
        first = found.args[0] if found.args and isinstance(found.args[0], BaseException) else None
        found = first or (inner if isinstance(inner, BaseException) else None)
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the answer was cut off"
    return "the connection failed" if isinstance(error, requests.ConnectionError) else type(error).__name__
