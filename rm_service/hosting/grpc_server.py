"""The gRPC server inside the service's one process, on an event loop in a thread of its own.

Import it only where gRPC is served: grpcio is large, and must not be in use when a process forks.
The loop is never closed, and every server of the process shares it: grpcio has one queue of completed
operations for all loops, and trips over those that come late for a loop that is closed.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import cache

import grpc
import grpc.aio

from rm_service.hosting.bind import host_and_port

KEEP_ALIVE_TIMEOUT_SECONDS = 10
"""A client that answers no ping for so long is gone."""
LEAST_PING_SECONDS = 5
"""A client may ping so often without being taken for an attacker."""


class GrpcServer:
    """Serves handlers on one address.

    `bind` is `host:port`, IPv6 in brackets, port 0 for any free one. Messages above `max_message` bytes are
    answered RESOURCE_EXHAUSTED. A client that is silent is pinged every `keep_alive_seconds`. With
    `reuse_port` other processes may serve the same port (SO_REUSEPORT). When it stops, `on_stop` is called on
    the event loop first: it has to end the streams that would go on for ever.
    """

    address: tuple[str, int]
    """Host and port, from `start` on."""

    def __init__(
        self,
        handlers: "Sequence[grpc.GenericRpcHandler[bytes, bytes]]",
        *,
        bind: str,
        max_message: int = 64 * 2**20,
        keep_alive_seconds: float = 30.0,
        reuse_port: bool = False,
        on_stop: Callable[[], object] = lambda: None,
    ) -> None:
        self._host = host_and_port(bind)[0]
        self._bind = bind
        self._handlers = handlers
        self._options = (
            ("grpc.max_receive_message_length", max_message),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", int(reuse_port)),
            ("grpc.keepalive_time_ms", int(keep_alive_seconds * 1000)),
            ("grpc.keepalive_timeout_ms", KEEP_ALIVE_TIMEOUT_SECONDS * 1000),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_ping_interval_without_data_ms", LEAST_PING_SECONDS * 1000),
        )
        self._on_stop = on_stop
        self._server: grpc.aio.Server

    def start(self) -> None:
        """Returns when calls are accepted. Raises `OSError` if the address cannot be had."""
        asyncio.run_coroutine_threadsafe(self._start(), _loop()).result()

    def stop(self, grace: float) -> None:
        """Takes no new calls, gives the open ones `grace` seconds to end, and returns when all have.

        More than once does nothing more.
        """
        asyncio.run_coroutine_threadsafe(self._stop(grace), _loop()).result()

    async def _start(self) -> None:
        self._server = grpc.aio.server(options=self._options)
        self._server.add_generic_rpc_handlers(self._handlers)
        try:
            self.address = (self._host, self._server.add_insecure_port(self._bind))
        except RuntimeError as error:
            reason = "the address is in use, or not this machine's"
            raise OSError(f"cannot serve gRPC on {self._bind}: {reason}") from error
        await self._server.start()

    async def _stop(self, grace: float) -> None:
        self._on_stop()
        await self._server.stop(grace)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of all gRPC in this process."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="grpc-loop", daemon=True).start()
    return loop
