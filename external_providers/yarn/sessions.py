"""HTTP connections to ResourceManagers, and the end of what takes too long.

A `requests.Session` is not meant for two threads at once, and the SPNEGO exchange in it even less. A session
is therefore lent to one call at a time. Idle ones wait in a deque, whose `pop` and `append` need no lock;
there are as many as there were calls at the same time, usually one. One session a thread would keep a
connection for every thread of the refresher and every cluster that it ever asked.
"""

import contextlib
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase, HTTPBasicAuth
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from external_providers.yarn import kerberos


class Deadline:
    """A moment by which everything is over."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    @property
    def seconds_left(self) -> float:
        """Never less than nothing."""
        return max(0.0, self._end - self._clock())

    @property
    def passed(self) -> bool:
        return self.seconds_left == 0.0

    def share(self, parts: int) -> "Deadline":
        """An earlier one: a fair part of what is left."""
        return Deadline(self.seconds_left / parts, self._clock)


class Lent:
    """A session while one call has it. At the call's deadline its connections are cut, whatever they do:

    a timeout of the socket alone starts again with every byte that drips in.
    """

    def __init__(self, session: requests.Session, adapter: "_Adapter") -> None:
        self.session = session
        self._adapter = adapter

    @contextlib.contextmanager
    def until(self, deadline: Deadline) -> Iterator[None]:
        guard = threading.Lock()
        over = False

        def cut() -> None:
            with guard:
                if not over:
                    self._adapter.cut()

        timer = threading.Timer(deadline.seconds_left, cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            with guard:
                over = True

    def close(self) -> None:
        self.session.close()


class Sessions:
    """The sessions of one record."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._params = params
        self._idle: deque[Lent] = deque()
        self._closed = False

    @contextlib.contextmanager
    def lend(self) -> Iterator[Lent]:
        try:
            lent = self._idle.pop()
        except IndexError:
            lent = self._open()
        try:
            yield lent
        except BaseException:
            lent.close()  # who knows what is still on its connections
            raise
        self._idle.append(lent)
        if self._closed:
            self.close()

    def close(self) -> None:
        """Let go of all; those that are lent go when they come back."""
        self._closed = True
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _open(self) -> Lent:
        session = requests.Session()
        # Nothing but the record says how to ask: no proxy, no .netrc, no certificates of the environment.
        session.trust_env = False
        session.verify = self._params.get("ca_file") or self._params["verify"]
        session.auth = authentication(self._params)
        session.headers["Accept"] = "application/json"
        session.headers["Accept-Encoding"] = "identity"  # so that an answer's length is what was sent
        adapter = _Adapter()
        session.mount("http://", adapter)
        session.mount("https://", adapter)
        return Lent(session, adapter)


def authentication(params: Mapping[str, Any]) -> AuthBase | None:
    """What proves who asks: nothing, user and password, or a ticket. Raises ProviderError."""
    if "user" in params:
        # Bytes: as texts they would be written in Latin-1, which lacks most of the world's letters.
        return HTTPBasicAuth(params["user"].encode(), params["password"].encode())
    if "kerberos" in params:
        return kerberos.ticket(params["kerberos"])
    return None


class _Adapter(HTTPAdapter):
    """An adapter that knows the sockets of its connections."""

    def __init__(self) -> None:
        self._sockets: deque[socket.socket] = deque(maxlen=16)
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

    def cut(self) -> None:
        """End every connection from this side; who reads from one reads its end."""
        for one in list(self._sockets):
            with contextlib.suppress(OSError):
                # Not an SSLSocket's own, which takes the encryption away from under the one that reads.
                socket.socket.shutdown(one, socket.SHUT_RDWR)
