"""What servers of tests have in common: a port on loopback, threads that end with them, and no words."""

import ssl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

DRIP_SECONDS = 0.02


class LoopbackServer:
    """Answers while it is entered. Its handlers find it as their `desk`."""

    def __init__(self, handler: type["LoopbackHandler"], tls: ssl.SSLContext | None = None) -> None:
        self.closing = Event()
        """Set when it closes: whoever drips or waits has to end."""
        self._server = _Server(("127.0.0.1", 0), type("Handler", (handler,), {"desk": self}))
        if tls is not None:
            # The handshake is the handler's: whoever does not trust us must not hold up the others.
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self._server.server_address[1]}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class LoopbackHandler(BaseHTTPRequestHandler):
    desk: Any

    def answer(self) -> None:
        """What it does when it is asked."""
        raise NotImplementedError

    def do_GET(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def drip(self) -> None:
        """Send a blank now and then, until the server closes or nobody listens any more."""
        while not self.desk.closing.wait(DRIP_SECONDS):
            self.wfile.write(b" ")
            self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # closing it waits for the handlers

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: whoever asked has gone, or did not trust us."""
