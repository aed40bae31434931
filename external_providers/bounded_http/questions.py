"""One question on a line of its own, with a deadline for all of it: connection, handshake, head and body.

Plain `http.client` on a socket that is ours, so that the handshake too can be cut short. For those who ask
now and then: nothing is kept, and nothing is shared between threads.
"""

import http.client
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from external_providers.base import ProviderError, UnreachableError
from external_providers.bounded_http.answers import CHUNK, Answer, LateError, NoHttpError, gathered
from external_providers.bounded_http.deadlines import Deadline, cut


@dataclass(frozen=True, slots=True)
class Question:
    """What to ask of whom."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    method: str = "GET"
    body: bytes | None = field(default=None, repr=False)
    connect_seconds: float | None = None
    """How long to wait for a connection; None: as long as there is."""
    tls: Callable[[], ssl.SSLContext] = ssl.create_default_context
    """Makes what an https server is checked with. It may raise ProviderError."""


def ask(question: Question, deadline: Deadline, most_bytes: int) -> Answer:
    """The answer, whatever its status; a body is read with status 200 only, else it is empty.

    The name's resolution is the system's, and is not cut short. Raises UnreachableError (of them LateError),
    NoHttpError, TooLongError, and what `tls` raises.
    """
    try:
        answer = _asked(question, deadline, most_bytes)
    except ProviderError:
        raise
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _told(error, question, deadline) from None
    if deadline.passed:
        raise LateError  # a body without a length only ends: it may have been cut
    return answer


def origin(url: str) -> str:
    """Scheme, host and port, as one text for the same place: `http://rm1:8088`. Empty if it has none."""
    try:
        parts = urlsplit(url)
        port = _port(parts)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.hostname}:{port}" if parts.hostname and port else ""


def _asked(question: Question, deadline: Deadline, most_bytes: int) -> Answer:
    parts = urlsplit(question.url)
    place = (parts.hostname or "", _port(parts) or 0)
    if deadline.passed:
        raise LateError
    seconds = min(question.connect_seconds or deadline.seconds_left, deadline.seconds_left)
    # Cut by a twin: TLS takes the socket away.
    with (
        socket.create_connection(place, timeout=seconds) as line,
        line.dup() as twin,
        deadline.ending(lambda: cut(twin)),
    ):
        line.settimeout(None)
        connection = _connection(question, parts.scheme, place, line)
        try:
            connection.request(question.method, _path(parts), question.body, dict(question.headers))
            with connection.getresponse() as response:
                body = gathered(_chunks(response), most_bytes) if response.status == 200 else b""
                headers = {name.lower(): value for name, value in response.getheaders()}
                return Answer(response.status, headers, body)
        finally:
            connection.close()


def _connection(
    question: Question, scheme: str, place: tuple[str, int], line: socket.socket
) -> http.client.HTTPConnection:
    if scheme == "http":
        connection = http.client.HTTPConnection(*place)
        connection.sock = line
        return connection
    context = question.tls()
    connection = http.client.HTTPSConnection(*place, context=context)
    connection.sock = context.wrap_socket(line, server_hostname=place[0])
    return connection


def _port(parts: SplitResult) -> int | None:
    return parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _path(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    while chunk := response.read1(CHUNK):
        yield chunk
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)


def _told(error: Exception, question: Question, deadline: Deadline) -> ProviderError:
    """What happened, in words that hold nothing of what came."""
    if deadline.passed or (isinstance(error, TimeoutError) and question.connect_seconds is None):
        return LateError()
    if not isinstance(error, OSError | http.client.IncompleteRead):
        return NoHttpError(type(error).__name__)
    return UnreachableError(_words(error, question))


def _words(error: Exception, question: Question) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {error.verify_message}"
        case ssl.SSLError():
            return f"TLS failed: {error.reason or 'the line was cut'}"
        case TimeoutError():
            return f"no connection within {question.connect_seconds:g} s"
        case ConnectionRefusedError():
            return "the connection is refused"
        case ConnectionError() | http.client.IncompleteRead():
            return "the connection was cut off"
    return getattr(error, "strerror", None) or type(error).__name__
