"""The HTTP server, an application behind it that a test steers, and a client that says every byte itself."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from flask import Flask, Response, jsonify, request

from rm_service.hosting.server import HttpServer

PATIENCE = 10.0  # seconds that a test waits for what must happen; nothing waits this long when all is well


class Desk:
    """The application behind the server: what the tests see of it and how they steer it."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.entered = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.app = Flask(__name__)
        self.app.add_url_rule("/echo", view_func=self._echo, methods=["POST"])
        self.app.add_url_rule("/environ/<path:rest>", view_func=self._environ, methods=["GET", "POST"])
        self.app.add_url_rule("/slow", view_func=self._slow, methods=["POST"])
        self.app.add_url_rule("/broken", view_func=self._broken)
        self.app.add_url_rule("/nothing", view_func=lambda: Response(status=204))

    def _echo(self) -> tuple[Response, int]:
        body = request.get_data(as_text=True)
        self.calls.append(body)
        return jsonify(body=body), 201

    def _environ(self, rest: str) -> Response:
        return jsonify({key: value for key, value in request.environ.items() if isinstance(value, str)})

    def _slow(self) -> Response:
        self.entered.release()
        assert self.go_on.wait(PATIENCE)
        return jsonify(done=True)

    def _broken(self) -> Response:
        raise SystemExit(3)


class Wire:
    """One client connection; bytes go out as they are given."""

    def __init__(self, server: HttpServer) -> None:
        self.socket = socket.create_connection(server.address, timeout=PATIENCE)
        self.lines = self.socket.makefile("rb")

    def send(self, data: str | bytes) -> None:
        self.socket.sendall(data.encode("latin-1") if isinstance(data, str) else data)

    def send_forever(self, data: str) -> NoReturn:
        while True:
            self.send(data)

    def request(self, target: str, *headers: str, body: str = "", method: str = "POST") -> None:
        head = [f"{method} {target} HTTP/1.1", "Host: rm", f"Content-Length: {len(body)}", *headers]
        self.send("\r\n".join(head) + "\r\n\r\n" + body)

    def head(self) -> tuple[int, dict[str, str]]:
        status = int(self.lines.readline().split()[1])
        headers = {}
        while line := self.lines.readline().decode("latin-1").strip():
            name, value = line.split(": ", 1)
            headers[name.lower()] = value
        return status, headers

    def answer(self) -> tuple[int, Any, dict[str, str]]:
        """Status, the JSON body (None if empty) and headers of an answer with a length."""
        status, headers = self.head()
        body = self.lines.read(int(headers.get("content-length", "0")))
        return status, json.loads(body) if body else None, headers

    def chunk(self) -> bytes:
        """The next chunk of a stream; empty at its clean end."""
        chunk = self.lines.read(int(self.lines.readline(), 16))
        assert self.lines.readline() == b"\r\n"
        return chunk

    def ended(self) -> bool:
        """Waits for the server to close; True if nothing more came before that."""
        try:
            return self.lines.read() == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.lines.close()
        self.socket.close()


Connect = Callable[[HttpServer], Wire]


@contextmanager
def serving(desk: Desk, **settings: Any) -> Iterator[HttpServer]:
    server = HttpServer(desk.app, bind="127.0.0.1:0", **settings)
    server.start()
    try:
        yield server
    finally:
        desk.go_on.set()
        server.stop(grace=PATIENCE)
