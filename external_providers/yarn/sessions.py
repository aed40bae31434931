"""HTTP connections to ResourceManagers.

A session is not meant for two threads at once, and the SPNEGO exchange in it even less. It is therefore lent
to one call at a time. Idle ones wait in a deque, whose `pop` and `append` need no lock; there are as many as
there were calls at the same time, usually one. One session a thread would keep a connection for every thread
of the refresher and every cluster that it ever asked.
"""

import contextlib
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from requests.auth import AuthBase, HTTPBasicAuth

from external_providers.bounded_http import BoundedSession
from external_providers.yarn import kerberos


class Sessions:
    """The sessions of one record."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._params = params
        self._idle: deque[BoundedSession] = deque()
        self._closed = False

    @contextlib.contextmanager
    def lend(self) -> Iterator[BoundedSession]:
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

    def _open(self) -> BoundedSession:
        opened = BoundedSession()
        opened.session.verify = self._params.get("ca_file") or self._params["verify"]
        opened.session.auth = authentication(self._params)
        opened.session.headers["Accept-Encoding"] = "identity"  # so that its length is what was sent
        return opened


def authentication(params: Mapping[str, Any]) -> AuthBase | None:
    """What proves who asks: nothing, user and password, or a ticket. Raises ProviderError."""
    if "user" in params:
        # Bytes: as texts they would be written in Latin-1, which lacks most of the world's letters.
        return HTTPBasicAuth(params["user"].encode(), params["password"].encode())
    if "kerberos" in params:
        return kerberos.ticket(params["kerberos"])
    return None
