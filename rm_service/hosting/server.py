"""The HTTP server inside the service's one process.

An event loop in a thread of its own reads requests, holds the streams and hands everything else to a WSGI
application on a fixed number of threads. Why it is built on uvicorn: docs/decisions/0004-http-server.md.
"""

import asyncio
import socket
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import uvloop

from rm_service.hosting.bind import host_and_port
from rm_service.hosting.connection import Limits
from rm_service.hosting.dispatch import Dispatcher
from rm_service.hosting.listener import Listener, listen
from rm_service.hosting.request_pool import RequestPool
from rm_service.hosting.streams import StreamHub, StreamRoute

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


class HttpServer:
    """Serves one WSGI application and its streams on one address.

    `bind` is `host:port`, IPv6 in brackets, port 0 for any free one. At most `threads` requests are handled
    at a time, `waiting` more wait, the next is answered 503. `max_body` is in bytes (beyond: 413). A request
    has `request_seconds` to arrive completely (408). Streams get their keep-alive chunk every
    `keep_alive_seconds`. With `reuse_port` other processes may serve the same port (SO_REUSEPORT).
    """

    address: tuple[str, int]
    """Host and port, from `start` on."""

    def __init__(  # noqa: PLR0913 - each is a setting of its own
        self,
        wsgi_app: "WSGIApplication",
        *,
        bind: str,
        threads: int = 32,
        streams: Sequence[StreamRoute] = (),
        max_body: int = 4 * 2**20,
        waiting: int = 1024,
        request_seconds: float = 30.0,
        keep_alive_seconds: float = 15.0,
        reuse_port: bool = False,
    ) -> None:
        self._wsgi_app = wsgi_app
        self._bind = host_and_port(bind)
        self._reuse_port = reuse_port
        self._routes = streams
        self._limits = Limits(body=max_body, request_seconds=request_seconds)
        self._keep_alive_seconds = keep_alive_seconds
        self._pool = RequestPool(threads, waiting)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="http-loop", daemon=True)
        self._loop: asyncio.AbstractEventLoop
        self._hub: StreamHub
        self._listener: Listener
        self._socket: socket.socket

    def start(self) -> None:
        """Returns when connections are accepted. Raises `OSError` if the address cannot be had."""
        self._socket = listen(*self._bind, reuse_port=self._reuse_port)
        host, port = self._socket.getsockname()[:2]
        self.address = (host, port)
        self._pool.start()
        self._thread.start()
        self._ready.wait()
        if not self._thread.is_alive():
            msg = "the event loop did not start; its thread has said why"
            raise RuntimeError(msg)

    def stop(self, grace: float) -> None:
        """Takes no new connections, ends the streams and answers what was accepted.

        What is not answered after `grace` seconds is cut off. Returns when that is done; a second call does
        nothing.
        """
        if not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(self._begin_stop, grace)
        self._thread.join()
        self._pool.stop(patience=1.0)

    @property
    def open_streams(self) -> int:
        return len(self._hub)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        finally:
            self._ready.set()  # whatever happened: `start` must not wait for ever

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._hub = StreamHub(self._loop, self._keep_alive_seconds)
        dispatcher = Dispatcher(
            self._wsgi_app, self._routes, pool=self._pool, hub=self._hub, max_body=self._limits.body
        )
        self._listener = Listener(dispatcher, self._limits)
        watch = self._loop.create_task(self._listener.watch())
        self._ready.set()
        await self._listener.serve(sockets=[self._socket])
        watch.cancel()

    def _begin_stop(self, grace: float) -> None:
        self._listener.end(grace)
        self._hub.end()
