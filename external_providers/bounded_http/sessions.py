"""A session of `requests` whose answers have bounds. It keeps its connections from one question to the next.

Here, and nowhere else among the providers, urllib3 under `requests` is spoken to itself: only its connections
know their sockets, and only its raw answers give what has come instead of waiting for more.
"""

import socket
import ssl
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import requests
import urllib3.exceptions
from requests.adapters import HTTPAdapter
from requests.exceptions import ChunkedEncodingError, ContentDecodingError, ReadTimeout, SSLError
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from external_providers.base import ProviderError
from external_providers.bounded_http.answers import CHUNK, Answer, LateError, gathered
from external_providers.bounded_http.deadlines import Deadline, cut

LEAST_SECONDS = 0.001
"""A timeout of 0 is an error to the socket."""
MOST_SOCKETS = 16
_GZIP = 16 + zlib.MAX_WBITS


class BoundedSession:
    """For one question at a time: a `requests.Session` is not meant for two threads at once.

    Nothing but its owner says how to ask: no proxy, no .netrc, no certificates of the environment.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        """With `tls` it alone says whom to trust; without it `session.verify` does."""
        self.session = requests.Session()
        """For its owner to set headers, `auth` and `verify`."""
        self.session.trust_env = False
        self.session.headers["Accept"] = "application/json"
        self._adapter = _Adapter(tls)
        self.session.mount("http://", self._adapter)
        self.session.mount("https://", self._adapter)

    def get(
        self,
        url: str,
        deadline: Deadline,
        *,
        most_bytes: int,
        connect_seconds: float,
        query: Mapping[str, str] | None = None,
    ) -> Answer:
        """The answer, whatever its status; a body that was packed by gzip is unpacked, within the bounds.

        Raises LateError, TooLongError; requests.RequestException and OSError for what keeps it from being
        asked or read; and what `auth` raises.
        """
        if deadline.passed:
            raise LateError
        left = max(LEAST_SECONDS, deadline.seconds_left)
        timeout = (min(connect_seconds, left), left)
        try:
            with (
                deadline.ending(self._adapter.cut),
                self.session.get(
                    url, params=query, timeout=timeout, allow_redirects=False, stream=True
                ) as response,
            ):
                headers = {name.lower(): value for name, value in response.headers.items()}
                answer = Answer(response.status_code, headers, gathered(_body(response), most_bytes))
        except ProviderError:
            raise
        except Exception as error:
            if deadline.passed:
                raise LateError from error
            raise
        if deadline.passed:
            raise LateError  # a body without a length only ends: it may have been cut
        return answer

    def close(self) -> None:
        self.session.close()
        self._adapter.cut()  # what still refers to an answer, such as an error, would keep its line open


def _body(response: requests.Response) -> Iterator[bytes]:
    packed = response.headers.get("Content-Encoding") == "gzip"
    return _unpacked(_chunks(response)) if packed else _chunks(response)


def _chunks(response: requests.Response) -> Iterator[bytes]:
    """As they came. Raises what `requests` makes of urllib3's errors."""
    try:
        while chunk := response.raw.read1(CHUNK, decode_content=False):
            yield chunk
    except urllib3.exceptions.ReadTimeoutError as error:
        raise ReadTimeout(error) from error
    except urllib3.exceptions.SSLError as error:
        raise SSLError(error) from error
    except urllib3.exceptions.HTTPError as error:
        raise ChunkedEncodingError(error) from error


def _unpacked(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """In pieces, because a few bytes can unpack to very many."""
    unpack = zlib.decompressobj(_GZIP)
    try:
        for chunk in chunks:
            yield unpack.decompress(chunk, CHUNK)
            while unpack.unconsumed_tail:
                yield unpack.decompress(unpack.unconsumed_tail, CHUNK)
        yield unpack.flush()
    except zlib.error as error:
        raise ContentDecodingError(error) from error
    if not unpack.eof:
        raise ChunkedEncodingError("the answer was cut off")


class _Adapter(HTTPAdapter):
    """An adapter that knows the sockets of its connections."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._sockets: deque[socket.socket] = deque(maxlen=MOST_SOCKETS)
        super().__init__(max_retries=0)
        sockets = self._sockets

        class Plain(HTTPConnection):
            def connect(self) -> None:
                super().connect()
                sockets.append(self.sock)

        class Encrypted(HTTPSConnection):
            def connect(self) -> None:
                super().connect()
                sockets.append(self.sock)

        plain = type("Pool", (HTTPConnectionPool,), {"ConnectionCls": Plain})
        encrypted = type("Pool", (HTTPSConnectionPool,), {"ConnectionCls": Encrypted})
        self.poolmanager.pool_classes_by_scheme = {"http": plain, "https": encrypted}

    def init_poolmanager(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - the library's own
        if self._tls is not None:
            options["ssl_context"] = self._tls
        super().init_poolmanager(*args, **options)

    def cert_verify(self, *args: object, **options: object) -> None:
        """Not where a context knows whom to trust: the public authorities would be added to it."""
        if self._tls is None:
            super().cert_verify(*args, **options)  # type: ignore[no-untyped-call]

    def cut(self) -> None:
        for one in list(self._sockets):
            cut(one)
