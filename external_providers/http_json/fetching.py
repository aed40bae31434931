"""One GET with a deadline that holds for all of it: name, connection, handshake, head and body.

Plain `http.client`, because whoever drips a byte now and then passes any timeout for a single read, and with
a connection of our own the line can be cut when the time is over. One connection a question: one is asked
every few seconds, and nothing is shared between threads.
"""

import http.client
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Timer
from time import monotonic
from urllib.parse import SplitResult, urljoin, urlsplit

from external_providers.base import DeniedError, MalformedError, ProviderError, UnreachableError

MAX_BODY = 32 * 1024 * 1024
MAX_REDIRECTS = 3
_CHUNK = 64 * 1024
_REDIRECTS = {301, 302, 303, 307, 308}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to ask, and how."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_seconds: float = 2.0
    verify: bool = True
    ca_file: str | None = None
    """Certificates that are trusted instead of the machine's."""

    def __str__(self) -> str:
        """For errors: the query may hold a secret, and is left out."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"


class _Deadline:
    """A point in time after which a line is cut."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = monotonic() + seconds

    @property
    def left(self) -> float:
        return max(self._end - monotonic(), 0.0)

    @contextmanager
    def cutting(self, line: socket.socket) -> Iterator[None]:
        """Cut the line when the time is over, whoever waits for it. By a twin: TLS takes the socket away."""
        twin = line.dup()
        timer = Timer(self.left, _cut, [twin])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
            twin.close()


def _cut(line: socket.socket) -> None:
    with suppress(OSError):  # the other side was quicker
        line.shutdown(socket.SHUT_RDWR)


def fetch(endpoint: Endpoint, timeout_seconds: float) -> bytes:
    """The body of a 200 answer.

    Follows redirects on the same server only, because headers may hold credentials. Raises UnreachableError,
    DeniedError for 401 and 403, MalformedError for what is no answer to use; none repeats what came.
    """
    deadline = _Deadline(timeout_seconds)
    url = endpoint.url
    try:
        for _ in range(MAX_REDIRECTS + 1):
            target, body = _ask(endpoint, url, deadline)
            if not deadline.left:
                raise TimeoutError  # a body without a length only ends: it may have been cut
            if target is None:
                return body
            url = _same_server(endpoint, url, target)
    except ProviderError:
        raise
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _told(endpoint, deadline, error) from None
    raise MalformedError(f"{endpoint} redirects more than {MAX_REDIRECTS} times")


def _ask(endpoint: Endpoint, url: str, deadline: _Deadline) -> tuple[str | None, bytes]:
    """Where it redirects to, or the body."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", _port(parts)
    seconds = min(endpoint.connect_seconds, deadline.left)
    if not seconds:
        raise TimeoutError
    with socket.create_connection((host, port), timeout=seconds) as line, deadline.cutting(line):
        line.settimeout(None)
        connection = _connection(endpoint, parts.scheme, host, port, line)
        try:
            connection.request("GET", _path(parts), headers=dict(endpoint.headers))
            with connection.getresponse() as response:
                if response.status in _REDIRECTS:
                    return response.getheader("Location", ""), b""
                _check_status(endpoint, response.status)
                return None, _body(endpoint, response)
        finally:
            connection.close()


def _connection(
    endpoint: Endpoint, scheme: str, host: str, port: int, line: socket.socket
) -> http.client.HTTPConnection:
    if scheme == "http":
        connection = http.client.HTTPConnection(host, port)
        connection.sock = line
        return connection
    context = _context(endpoint)
    connection = http.client.HTTPSConnection(host, port, context=context)
    connection.sock = context.wrap_socket(line, server_hostname=host)
    return connection


def _context(endpoint: Endpoint) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=endpoint.ca_file)
    except OSError as error:
        raise UnreachableError(f"{endpoint.ca_file} cannot be used: {error.strerror}") from None
    if not endpoint.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _body(endpoint: Endpoint, response: http.client.HTTPResponse) -> bytes:
    body = bytearray()
    while chunk := response.read1(_CHUNK):
        body += chunk
        if len(body) > MAX_BODY:
            raise MalformedError(f"{endpoint} answers more than {MAX_BODY} bytes")
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return bytes(body)


def _check_status(endpoint: Endpoint, status: int) -> None:
    if status == 200:
        return
    said = f"{endpoint} answered {status} {http.client.responses.get(status, '')}".rstrip()
    if status in {401, 403}:
        raise DeniedError(said)
    if status >= 500 or status == 429:
        raise UnreachableError(said)
    raise MalformedError(said)


def _same_server(endpoint: Endpoint, url: str, target: str) -> str:
    here, there = urlsplit(url), urlsplit(urljoin(url, target))
    if (there.scheme, there.hostname, _port(there)) != (here.scheme, here.hostname, _port(here)):
        raise MalformedError(f"{endpoint} redirects to another server, which is not followed")
    return there.geturl()


def _told(endpoint: Endpoint, deadline: _Deadline, error: Exception) -> ProviderError:
    """What happened, in words that hold nothing of what came."""
    if not deadline.left:
        return UnreachableError(f"{endpoint} gave no whole answer within {deadline.seconds:g} s")
    if not isinstance(error, OSError | http.client.IncompleteRead):
        return MalformedError(f"{endpoint} does not answer as HTTP: {type(error).__name__}")
    return UnreachableError(f"{endpoint}: {_words(endpoint, error)}")


def _words(endpoint: Endpoint, error: Exception) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {error.verify_message}"
        case ssl.SSLError():
            return f"TLS failed: {error.reason or 'the line was cut'}"
        case TimeoutError():
            return f"no connection within {endpoint.connect_seconds:g} s"
        case ConnectionRefusedError():
            return "the connection is refused"
        case ConnectionError() | http.client.IncompleteRead():
            return "the connection was cut off"
    return getattr(error, "strerror", None) or type(error).__name__


def _port(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


def _path(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
