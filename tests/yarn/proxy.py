"""A proxy before a YARN's web address that may be told, while it runs, to treat who asks badly.

Its mood is one of the functions below, or made by one of them; any other that does something with an
`Exchange` will do as well.
"""

import http.client
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Self
from urllib.parse import urlsplit

YARN_SECONDS = 30.0
JSON = "application/json"
PAGE = b"<html><head><title>Gateway</title></head><body>Please log in.</body></html>"
NO_TEXT = b"\x80\xff\x00\xfe" * 64
DRIP_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Answer:
    """What YARN answered."""

    status: int
    kind: str
    body: bytes


class Exchange:
    """One question, and the ways to answer it."""

    def __init__(self, handler: "_Handler", mood: "Mood") -> None:
        self._handler = handler
        self._mood = mood

    def ask_yarn(self) -> Answer:
        """Ask on behalf of who asks. Raises OSError where YARN does not answer."""
        yarn = http.client.HTTPConnection(self._handler.proxy.yarn, timeout=YARN_SECONDS)
        try:
            yarn.request("GET", self._handler.path, headers={"Accept": JSON})
            response = yarn.getresponse()
            return Answer(response.status, response.getheader("Content-Type", JSON), response.read())
        except http.client.HTTPException as error:
            raise ConnectionError(*error.args) from error
        finally:
            yarn.close()

    def send(self, answer: Answer, *, length: int | None = None) -> None:
        """Send an answer; with a `length` that its body has not, the rest of it is never to come."""
        self.begin(answer, len(answer.body) if length is None else length)
        self._handler.wfile.write(answer.body)
        if length is not None:
            self.cut()

    def begin(self, answer: Answer, length: int) -> None:
        """Send the head of an answer of that length."""
        self._handler.send_response(answer.status)
        self._handler.send_header("Content-Type", answer.kind)
        self._handler.send_header("Content-Length", str(length))
        self._handler.end_headers()

    def more(self, part: bytes) -> None:
        """Send some more of a body at once."""
        self._handler.wfile.write(part)
        self._handler.wfile.flush()

    def cut(self) -> None:
        """End the connection after this."""
        self._handler.close_connection = True

    def goes_on(self, seconds: float) -> bool:
        """Wait; whether the mood is still the one in which this was asked. A change ends the wait."""
        return self._handler.proxy.stays(self._mood, seconds)


Mood = Callable[[Exchange], None]


def passes(exchange: Exchange) -> None:
    """YARN's answer, as it is."""
    exchange.send(exchange.ask_yarn())


def cuts(exchange: Exchange) -> None:
    """The connection ends without a word."""
    exchange.cut()


def halves(exchange: Exchange) -> None:
    """The connection ends in the middle of YARN's answer."""
    whole = exchange.ask_yarn()
    half = Answer(whole.status, whole.kind, whole.body[: len(whole.body) // 2])
    exchange.send(half, length=len(whole.body))


def delays(seconds: float) -> Mood:
    """YARN's answer after so long, or when the mood passes."""

    def delayed(exchange: Exchange) -> None:
        exchange.goes_on(seconds)
        exchange.send(exchange.ask_yarn())

    return delayed


def drips(exchange: Exchange) -> None:
    """A body that comes one byte at a time and never ends."""
    exchange.begin(Answer(200, JSON, b""), 2**30)
    while exchange.goes_on(DRIP_SECONDS):
        exchange.more(b" ")
    exchange.cut()


def fails(exchange: Exchange) -> None:
    """Status 500, with a page for people."""
    exchange.send(Answer(500, "text/html", PAGE))


def says(body: bytes, kind: str = JSON) -> Mood:
    """This body with status 200, whatever is asked."""
    return lambda exchange: exchange.send(Answer(200, kind, body))


def floods(megabytes: int) -> Mood:
    """A body of so many MB that is JSON to its end."""
    filling = b" " * 10**6

    def flooded(exchange: Exchange) -> None:
        exchange.begin(Answer(200, JSON, b""), megabytes * len(filling) + 2)
        for part in (b"{", *(filling for _ in range(megabytes)), b"}"):
            exchange.more(part)

    return flooded


class YarnProxy:
    """The proxy before `web`, on a port of its own of 127.0.0.1; a context manager."""

    def __init__(self, web: str) -> None:
        self.yarn = urlsplit(web).netloc
        self.asked: Counter[str] = Counter()
        """How often each path was asked, without its query."""
        self.mood: Mood = passes
        self._news = Condition()
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.web = f"http://127.0.0.1:{self._server.server_address[1]}"

    def be(self, mood: Mood) -> None:
        """Be in another mood from now on, also to connections that are open."""
        with self._news:
            self.mood = mood
            self._news.notify_all()

    def stays(self, mood: Mood, seconds: float) -> bool:
        """Wait for so long, or until the mood is another one; whether it is still that one."""
        with self._news:
            return not self._news.wait_for(lambda: self.mood is not mood, seconds)

    def count(self, path: str) -> None:
        """Note a question."""
        with self._news:
            self.asked[path.partition("?")[0]] += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.be(cuts)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


class _Handler(BaseHTTPRequestHandler):
    proxy: YarnProxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self.proxy.count(self.path)
        mood = self.proxy.mood
        mood(Exchange(self, mood))

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            self.close_connection = True  # one of the two sides has had enough

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing."""
