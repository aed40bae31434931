"""The accepting side of the server: uvicorn's `Server` with a stop that resets as few clients as can be."""

import asyncio
import logging
import socket
import time
from collections.abc import Iterator

import uvicorn

from rm_service.hosting.connection import Connection, Limits, limited
from rm_service.hosting.dispatch import Dispatcher

BACKLOG = 2048
IDLE_SECONDS = 75  # a kept-alive connection without a request; longer than a proxy's usual 60
LOOK_SECONDS = 0.25  # how often late requests are looked for


class Listener(uvicorn.Server):
    """Serves one listening socket with `Connection`s on the running loop: `await serve(sockets=[...])`."""

    def __init__(self, dispatcher: Dispatcher, limits: Limits) -> None:
        config = uvicorn.Config(
            dispatcher,
            interface="asgi3",
            http=limited(limits),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level=logging.WARNING,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=IDLE_SECONDS,
        )
        super().__init__(config)

    def end(self, grace: float) -> None:
        """Makes `serve` return when all is answered, at the latest in `grace` seconds. Called on the loop."""
        # Declared as whole seconds, but handed to asyncio.wait_for.
        self.config.timeout_graceful_shutdown = grace  # type: ignore[assignment]
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Called by `serve`. Accepts who waits to be accepted; closing the socket would reset them."""
        loop = asyncio.get_running_loop()
        accepted = [
            loop.create_task(loop.connect_accepted_socket(self._connection, waiting))
            for listening in sockets or []
            for waiting in _accept_all(listening)
        ]
        await super().shutdown(sockets)
        await asyncio.gather(*accepted, return_exceptions=True)
        for connection in self._connections():  # only what outlived the grace
            connection.cut()

    async def watch(self) -> None:
        """Ends what is late, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = time.monotonic()
            for connection in self._connections():
                if self.should_exit:
                    connection.shutdown()  # it may have been made after `shutdown` told the others
                connection.expire(now)

    def _connections(self) -> list[Connection]:
        return [each for each in self.server_state.connections if isinstance(each, Connection)]

    def _connection(self) -> asyncio.Protocol:
        make = self.config.http_protocol_class
        loop = asyncio.get_running_loop()
        return make(config=self.config, server_state=self.server_state, app_state={}, _loop=loop)  # type: ignore[call-arg]


def listen(host: str, port: int, *, reuse_port: bool = False) -> socket.socket:
    """A listening socket, whose port other processes may share. Raises `OSError` if it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG, reuse_port=reuse_port)


def _accept_all(listening: socket.socket) -> Iterator[socket.socket]:
    listening.setblocking(False)
    while True:
        try:
            yield listening.accept()[0]
        except OSError:  # nobody waits any more, or no file descriptor is left
            return
