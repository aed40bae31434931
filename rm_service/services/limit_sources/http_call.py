"""One POST with a deadline that holds for all of it: a server that drips bytes passes any timeout for a read.

So the line is cut when the time is over. Redirects are not followed: the question may carry a token.
"""

import http.client
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from threading import Timer
from time import monotonic
from urllib.parse import SplitResult, urlsplit

from external_providers.base import DeniedError, MalformedError, ProviderError, UnreachableError

MAX_ANSWER = 8 * 1024 * 1024
_CHUNK = 64 * 1024


def post(url: str, body: bytes, headers: Mapping[str, str], seconds: float) -> bytes:
    """The body of a 200 answer.

    Raises UnreachableError (asking again may help), DeniedError for 401 and 403, MalformedError for what is
    no answer to use; none repeats what came.
    """
    ends = monotonic() + seconds
    parts = urlsplit(url)
    try:
        found = _ask(parts, body, headers, ends)
    except ProviderError:
        raise
    except OSError as error:
        raise UnreachableError(_words(error, ends)) from None
    except (http.client.HTTPException, ValueError) as error:
        if monotonic() >= ends:
            raise UnreachableError("no whole answer in time") from None
        raise MalformedError(f"it does not answer as HTTP: {type(error).__name__}") from None
    if monotonic() >= ends:  # a body without a length only ends: it may have been cut
        raise UnreachableError("no whole answer in time")
    return found


def _ask(parts: SplitResult, body: bytes, headers: Mapping[str, str], ends: float) -> bytes:
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    with socket.create_connection((host, port), timeout=_left(ends)) as line, line.dup() as twin:
        cutter = Timer(_left(ends), _cut, [twin])  # by a twin: TLS takes the socket away
        cutter.daemon = True
        cutter.start()
        connection = http.client.HTTPConnection(host, port)
        try:
            line.settimeout(None)
            connection.sock = _secured(line, host) if parts.scheme == "https" else line
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("POST", path, body, dict(headers))
            with connection.getresponse() as response:
                _check_status(response)
                return _body(response)
        finally:
            cutter.cancel()
            cutter.join()
            connection.close()


def _secured(line: socket.socket, host: str) -> socket.socket:
    return ssl.create_default_context().wrap_socket(line, server_hostname=host)


def _cut(line: socket.socket) -> None:
    with suppress(OSError):  # the other side was quicker
        line.shutdown(socket.SHUT_RDWR)


def _left(ends: float) -> float:
    left = ends - monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _body(response: http.client.HTTPResponse) -> bytes:
    body = bytearray()
    while chunk := response.read1(_CHUNK):
        body += chunk
        if len(body) > MAX_ANSWER:
            raise MalformedError(f"the answer is longer than {MAX_ANSWER} bytes")
    if response.length:
        raise ConnectionError
    return bytes(body)


def _check_status(response: http.client.HTTPResponse) -> None:
    status = response.status
    if status == 200:
        return
    said = f"it answered {status} {http.client.responses.get(status, '')}".rstrip()
    if status in {401, 403}:
        raise DeniedError(said)
    if status >= 500 or status == 429:
        raise UnreachableError(said)
    raise MalformedError(said)


def _words(error: OSError, ends: float) -> str:
    if monotonic() >= ends or isinstance(error, TimeoutError):
        return "no whole answer in time"
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {error.verify_message}"
        case ConnectionRefusedError():
            return "the connection is refused"
        case ConnectionError():
            return "the connection was cut off"
    return error.strerror or type(error).__name__
