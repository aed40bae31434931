"""Managers that fail, on a port of their own: they refuse, answer nonsense, or never finish answering."""

import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

from external_providers.base import DeniedError
from external_providers.testkit.subject import Config, Trouble, Way

DRIP_SECONDS = 0.02
At = Callable[[str], Config]
"""Makes a configuration that leads to an address like `http://127.0.0.1:4711`."""

Tls = ssl.SSLContext | None
"""With one the servers speak TLS, for a provider that asks nobody else."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server says to whatever it is asked."""

    status: int = 200
    body: bytes = b""
    kind: str = "application/json"
    length: int | None = None
    """What it says to be its length, if that is not true."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answer: Answer
    closing: Event

    def do_GET(self) -> None:
        self.close_connection = True
        try:
            self.reply()
        except OSError:
            return  # whoever asked has gone, as it should

    def do_POST(self) -> None:
        self.do_GET()

    def reply(self) -> None:
        self.begin(self.answer.status, self.answer.kind, self.answer.length or len(self.answer.body))
        self.wfile.write(self.answer.body)

    def begin(self, status: int, kind: str, length: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


class _Silent(_Handler):
    def reply(self) -> None:
        self.closing.wait()


class _Dripping(_Handler):
    def reply(self) -> None:
        self.begin(200, "application/json", 1_000_000)
        while not self.closing.wait(DRIP_SECONDS):
            self.wfile.write(b" ")
            self.wfile.flush()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # closing it waits for the handlers
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: whoever asked has gone, or did not trust us."""


@contextmanager
def _serving(handler: type[_Handler], tls: Tls) -> Iterator[str]:
    closing = Event()
    server = _Server(("127.0.0.1", 0), type("Handler", (handler,), {"closing": closing}))
    if tls is not None:
        # The handshake is the handler's: whoever does not trust us must not hold up the others.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    scheme = "http" if tls is None else "https"
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"{scheme}://127.0.0.1:{server.server_address[1]}"
    finally:
        closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def answering(answer: Answer, tls: Tls = None) -> Iterator[str]:
    """The address of a server that answers everything with the same."""
    with _serving(type("Answering", (_Handler,), {"answer": answer}), tls) as url:
        yield url


@contextmanager
def silent(tls: Tls = None) -> Iterator[str]:
    """The address of a server that takes a question and never answers: a black hole."""
    with _serving(_Silent, tls) as url:
        yield url


@contextmanager
def dripping(tls: Tls = None) -> Iterator[str]:
    """The address of a server whose body comes byte by byte, and never ends."""
    with _serving(_Dripping, tls) as url:
        yield url


@contextmanager
def refusing(tls: Tls = None) -> Iterator[str]:
    """The address of a port that nobody listens on, and nobody else can take meanwhile."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{reserved.getsockname()[1]}"


ANSWERS: Mapping[str, Answer] = {
    "answers 500": Answer(500, b'{"error": "no"}'),
    "answers 404": Answer(404, b"", "text/plain"),
    "answers a page": Answer(200, b"<html><body>Please sign in</body></html>", "text/html"),
    "answers nothing": Answer(),
    "answers half a document": Answer(200, b'{"items": [{"name": "a', length=1000),
    "answers another document": Answer(200, b"[[[]]]"),
}


def http_troubles(at: At, tls: Tls = None) -> dict[str, Trouble]:
    """The usual troubles of a manager that is asked by HTTP; `at` makes a configuration for an address."""
    troubles = {name: Trouble(_way(partial(answering, answer, tls), at)) for name, answer in ANSWERS.items()}
    for status in (401, 403):
        denied = partial(answering, Answer(status, b"{}"), tls)
        troubles[f"answers {status}"] = Trouble(_way(denied, at), DeniedError)
    return {"refuses": Trouble(_way(partial(refusing, tls), at)), **troubles}


def http_hangs(at: At, tls: Tls = None) -> dict[str, Way]:
    """The ways in which a manager that is asked by HTTP never finishes."""
    return {"is silent": _way(partial(silent, tls), at), "drips": _way(partial(dripping, tls), at)}


def _way(server: Callable[[], AbstractContextManager[str]], at: At) -> Way:
    @contextmanager
    def way() -> Iterator[Config]:
        with server() as url:
            yield at(url)

    return way
