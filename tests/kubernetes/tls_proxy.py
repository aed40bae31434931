"""A proxy that terminates TLS in front of a server on loopback, as operators put one there."""

import socket
import ssl
from contextlib import suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Self

from tests.kubernetes.certificates import Certificate

CHUNK = 64 * 2**10


class TlsProxy:
    """Entered, it hands on to `port` of 127.0.0.1 what comes to `url`, byte by byte."""

    def __init__(self, certificate: Certificate, port: int, folder: Path) -> None:
        pem = folder / "proxy.pem"
        pem.write_text(certificate.key + certificate.certificate)
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(pem)
        proxy = self

        class Handler(BaseRequestHandler):
            def handle(self) -> None:
                proxy.serve(self.request)

        self._port = port
        self._server = ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def serve(self, connection: socket.socket) -> None:
        """One connection, until either side closes it."""
        with (
            suppress(OSError),
            self._context.wrap_socket(connection, server_side=True) as client,
            socket.create_connection(("127.0.0.1", self._port)) as server,
        ):
            back = Thread(target=_hand_on, args=(server, client), daemon=True)
            back.start()
            _hand_on(client, server)
            back.join()


def _hand_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(CHUNK):
            target.sendall(chunk)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
