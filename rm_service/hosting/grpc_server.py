"""The gRPC server inside the service's one process: an event loop in a thread of its own.

Import it only where gRPC is served: grpcio is large, and must not be in use when a process forks.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

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
        self._ready = threading.Event()
        self._stopping = asyncio.Event()
        self._grace = 0.0
        self._fault: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="grpc-loop", daemon=True)
        self._loop: asyncio.AbstractEventLoop

    def start(self) -> None:
        """Returns when calls are accepted. Raises `OSError` if the address cannot be had."""
        self._thread.start()
        self._ready.wait()
        if self._fault is not None:
            self._thread.join()
            raise OSError(f"cannot serve gRPC on {self._bind}: {self._fault}") from self._fault

    def stop(self, grace: float) -> None:
        """Takes no new calls, gives the open ones `grace` seconds to end, and returns when all have.

        More than once does nothing more.
        """
        self._grace = grace
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(self._serve())
        except Exception as error:  # noqa: BLE001 - `start` raises it
            self._fault = error
        finally:
            self._ready.set()  # whatever happened: `start` must not wait for ever

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = grpc.aio.server(options=self._options)
        server.add_generic_rpc_handlers(self._handlers)
        self.address = (self._host, server.add_insecure_port(self._bind))
        await server.start()
        self._ready.set()
        await self._stopping.wait()
        self._on_stop()
        await server.stop(self._grace)
