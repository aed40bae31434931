"""The HTTP server, seen from the other end of a socket."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn
from urllib.parse import parse_qs

import pytest
from flask import Flask, Response, jsonify, request

from rm_service.hosting.answer import Answer
from rm_service.hosting.bind import BadBindError
from rm_service.hosting.server import HttpServer
from rm_service.hosting.streams import Stream, StreamRequest, StreamRoute

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


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.go_on.set()


Connect = Callable[[HttpServer], Wire]


@pytest.fixture
def connect() -> Iterator[Connect]:
    wires: list[Wire] = []

    def open_wire(server: HttpServer) -> Wire:
        wires.append(Wire(server))
        return wires[-1]

    yield open_wire
    for wire in wires:
        wire.close()


@contextmanager
def serving(desk: Desk, **settings: Any) -> Iterator[HttpServer]:
    server = HttpServer(desk.app, bind="127.0.0.1:0", **settings)
    server.start()
    try:
        yield server
    finally:
        desk.go_on.set()
        server.stop(grace=PATIENCE)


@pytest.fixture
def server(desk: Desk) -> Iterator[HttpServer]:
    with serving(desk, threads=4, max_body=1000) as server:
        yield server


class TestRequests:
    def test_are_answered_by_the_application(self, server: HttpServer, connect: Connect) -> None:
        wire = connect(server)
        wire.request("/echo", body="hello")
        status, body, headers = wire.answer()
        assert (status, body, headers["content-type"]) == (201, {"body": "hello"}, "application/json")

    def test_one_connection_carries_many(self, server: HttpServer, connect: Connect) -> None:
        wire = connect(server)
        for text in ("one", "two", "three"):
            wire.request("/echo", body=text)
            assert wire.answer()[1] == {"body": text}

    def test_sent_without_waiting_are_answered_in_order(self, server: HttpServer, connect: Connect) -> None:
        wire = connect(server)
        for n in range(20):
            wire.request("/echo", body=str(n))
        assert [wire.answer()[1]["body"] for _ in range(20)] == [str(n) for n in range(20)]

    def test_give_the_application_a_complete_environ(self, server: HttpServer, connect: Connect) -> None:
        wire = connect(server)
        wire.request(
            "/environ/caf%C3%A9%2Fx?q=%20a&q=b",
            "Accept: a",
            "ACCEPT: b",
            "Cookie: c=1",
            "Cookie: d=2",
            body="xyz",
        )
        environ = wire.answer()[1]
        assert environ["PATH_INFO"].encode("latin-1").decode() == "/environ/café/x"
        assert parse_qs(environ["QUERY_STRING"]) == {"q": [" a", "b"]}
        assert (environ["SERVER_NAME"], environ["SERVER_PORT"]) == ("127.0.0.1", str(server.address[1]))
        assert (environ["HTTP_ACCEPT"], environ["HTTP_COOKIE"]) == ("a,b", "c=1; d=2")
        expected = {
            "REQUEST_METHOD": "POST",
            "SCRIPT_NAME": "",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "127.0.0.1",
            "REMOTE_PORT": str(wire.socket.getsockname()[1]),
            "CONTENT_LENGTH": "3",
            "HTTP_HOST": "rm",
            "wsgi.url_scheme": "http",
        }
        assert environ.items() >= expected.items()
        assert "HTTP_CONTENT_LENGTH" not in environ

    def test_headers_that_pose_as_others_do_not_arrive(self, server: HttpServer, connect: Connect) -> None:
        wire = connect(server)
        head = "POST /environ/x HTTP/1.1\r\nHost: rm\r\nX_Token: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        wire.send(head + "1\r\nx\r\n0\r\nX-Token: b\r\n\r\n")
        assert "HTTP_X_TOKEN" not in wire.answer()[1]

    def test_a_chunked_body_arrives_whole(self, server: HttpServer, connect: Connect) -> None:
        wire = connect(server)
        wire.send("POST /echo HTTP/1.1\r\nHost: rm\r\nTransfer-Encoding: chunked\r\n\r\n")
        wire.send("3\r\nabc\r\n")
        wire.send("4\r\ndefg\r\n0\r\n\r\n")
        assert wire.answer()[1] == {"body": "abcdefg"}

    def test_head_has_the_length_and_no_body(self, server: HttpServer, connect: Connect) -> None:
        wire = connect(server)
        wire.request("/environ/x", method="HEAD")
        status, headers = wire.head()
        assert status == 200
        assert int(headers["content-length"]) > 100
        wire.request("/echo", body="next")
        assert wire.answer()[1] == {"body": "next"}

    def test_no_content_has_neither_length_nor_body(self, server: HttpServer, connect: Connect) -> None:
        wire = connect(server)
        wire.request("/nothing", method="GET")
        status, headers = wire.head()
        assert status == 204
        assert not headers.keys() & {"content-length", "transfer-encoding"}
        wire.request("/echo", body="next")
        assert wire.answer()[1] == {"body": "next"}

    def test_http_1_0_is_answered_and_closed(self, server: HttpServer, connect: Connect) -> None:
        wire = connect(server)
        wire.send("POST /echo HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi")
        assert wire.answer()[1] == {"body": "hi"}
        assert wire.ended()

    def test_an_offer_of_http_2_is_declined_silently(self, server: HttpServer, connect: Connect) -> None:
        wire = connect(server)
        offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAA")
        wire.request("/echo", *offer, body="first")
        assert wire.answer()[1] == {"body": "first"}
        wire.request("/echo", body="second")
        assert wire.answer()[1] == {"body": "second"}

    def test_expect_100_continue_is_honoured(self, server: HttpServer, connect: Connect) -> None:
        wire = connect(server)
        wire.send("POST /echo HTTP/1.1\r\nHost: rm\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert wire.head()[0] == 100
        wire.send("hi")
        assert wire.answer()[1] == {"body": "hi"}

    def test_a_handler_that_fails_costs_one_500(self, server: HttpServer, connect: Connect) -> None:
        wire = connect(server)
        for _ in range(5):  # more than there are threads
            wire.request("/broken", method="GET")
            status, body, _ = wire.answer()
            assert (status, body["code"]) == (500, "internal")


class TestBadRequests:
    @pytest.mark.parametrize(
        "head",
        [
            "nonsense\r\n\r\n",
            "GET / HTTP/9.9\r\n\r\n",
            "GET /\x00 HTTP/1.1\r\n\r\n",
            "POST /echo HTTP/1.1\r\nHost: rm\r\nContent-Length: -1\r\n\r\n",
            "POST /echo HTTP/1.1\r\nHost: rm\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "POST /echo HTTP/1.1\r\nHost: rm\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST /echo HTTP/1.1\r\nHost: rm\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "POST /echo HTTP/1.1\r\nHost : rm\r\n\r\n",
        ],
    )
    def test_malformed_http_is_a_400_problem(
        self, server: HttpServer, connect: Connect, desk: Desk, head: str
    ) -> None:
        wire = connect(server)
        wire.send(head)
        status, body, headers = wire.answer()
        assert (status, body["code"]) == (400, "malformed_request")
        assert headers["content-type"] == "application/problem+json"
        assert wire.ended()
        assert desk.calls == []

    def test_garbage_does_not_take_the_answer_of_the_request_before(
        self, server: HttpServer, connect: Connect, desk: Desk
    ) -> None:
        wire = connect(server)
        wire.request("/slow")
        assert desk.entered.acquire(timeout=PATIENCE)
        wire.send("nonsense\r\n\r\n")
        desk.go_on.set()
        assert wire.answer()[1] == {"done": True}
        assert wire.ended()

    @pytest.mark.parametrize("length", [1001, 5000])
    def test_a_body_over_the_limit_is_a_413_that_can_be_read(
        self, server: HttpServer, connect: Connect, desk: Desk, length: int
    ) -> None:
        wire = connect(server)
        wire.request("/echo", body="x" * length)
        status, body, _ = wire.answer()
        assert (status, body["code"]) == (413, "body_too_large")
        wire.request("/echo", body="next")
        assert wire.answer()[1] == {"body": "next"}
        assert desk.calls == ["next"]

    def test_a_body_at_the_limit_is_taken(self, server: HttpServer, connect: Connect) -> None:
        wire = connect(server)
        wire.request("/echo", body="x" * 1000)
        assert wire.answer()[0] == 201

    def test_a_chunked_body_over_the_limit_is_a_413(self, server: HttpServer, connect: Connect) -> None:
        wire = connect(server)
        wire.send("POST /echo HTTP/1.1\r\nHost: rm\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(3):
            wire.send("190\r\n" + "x" * 400 + "\r\n")
        assert wire.answer()[0] == 413

    def test_a_body_over_the_limit_is_not_asked_for(self, server: HttpServer, connect: Connect) -> None:
        wire = connect(server)
        wire.send("POST /echo HTTP/1.1\r\nHost: rm\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n")
        assert wire.answer()[0] == 413
        assert wire.ended()

    def test_a_refused_body_is_not_read_without_end(self, server: HttpServer, connect: Connect) -> None:
        wire = connect(server)
        wire.send("POST /echo HTTP/1.1\r\nHost: rm\r\nTransfer-Encoding: chunked\r\n\r\n")
        with pytest.raises(ConnectionError):
            wire.send_forever("1000\r\n" + "x" * 0x1000 + "\r\n")

    @pytest.mark.parametrize(
        "head",
        [
            "GET / HTTP/1.1\r\n" + f"X: {'y' * 70_000}\r\n\r\n",
            "GET / HTTP/1.1\r\n" + f"X: {'y' * 30_000}\r\n" * 3 + "\r\n",
            f"GET /{'y' * 70_000} HTTP/1.1\r\n\r\n",
            f"GET / HTTP/1.1\r\nX: {'y' * 70_000}",
        ],
        ids=["one header", "many headers", "the target", "unfinished"],
    )
    def test_a_head_over_the_limit_is_a_431(self, server: HttpServer, connect: Connect, head: str) -> None:
        wire = connect(server)
        wire.send(head)
        status, body, _ = wire.answer()
        assert (status, body["code"]) == (431, "head_too_large")

    @pytest.mark.parametrize("part", ["POST /echo", "POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf"])
    def test_what_does_not_arrive_in_time_is_a_408(self, desk: Desk, connect: Connect, part: str) -> None:
        with serving(desk, threads=1, request_seconds=0.1) as server:
            wire = connect(server)
            wire.send(part)
            status, body, _ = wire.answer()
            assert (status, body["code"]) == (408, "request_timeout")
            assert wire.ended()
        assert desk.calls == []

    def test_a_connection_that_says_nothing_is_closed(self, desk: Desk, connect: Connect) -> None:
        with serving(desk, threads=1, request_seconds=0.1) as server:
            assert connect(server).ended()

    def test_slow_senders_hold_no_thread(self, desk: Desk, connect: Connect) -> None:
        with serving(desk, threads=1) as server:
            for _ in range(10):
                connect(server).send("POST /echo HTTP/1.1\r\nHost: rm\r\nContent-Length: 9\r\n\r\nhalf")
            wire = connect(server)
            wire.request("/echo", body="quick")
            assert wire.answer()[1] == {"body": "quick"}

    def test_half_a_body_is_never_handled(self, server: HttpServer, connect: Connect, desk: Desk) -> None:
        wire = connect(server)
        wire.send("POST /echo HTTP/1.1\r\nHost: rm\r\nContent-Length: 9\r\n\r\nhalf")
        wire.socket.shutdown(socket.SHUT_WR)
        assert wire.ended()
        assert desk.calls == []

    def test_beyond_the_queue_is_a_503(self, desk: Desk, connect: Connect) -> None:
        with serving(desk, threads=1, waiting=1) as server:
            running, waiting = connect(server), connect(server)
            running.request("/slow")
            assert desk.entered.acquire(timeout=PATIENCE)
            waiting.request("/slow", "Expect: 100-continue")
            assert waiting.head()[0] == 100  # so it has been read before the next
            refused = connect(server)
            refused.request("/slow")
            status, body, headers = refused.answer()
            assert (status, body["code"], headers["retry-after"]) == (503, "overloaded", "1")
            desk.go_on.set()
            assert running.answer()[0] == waiting.answer()[0] == 200
            refused.request("/slow")
            assert refused.answer()[0] == 200


class TestStop:
    def stop(self, server: HttpServer) -> threading.Thread:
        """Stops the server in a thread; returns once it takes no more connections."""
        thread = threading.Thread(target=server.stop, args=(PATIENCE,))
        thread.start()
        with pytest.raises(ConnectionError):
            self.connect_forever(server)
        return thread

    def connect_forever(self, server: HttpServer) -> NoReturn:
        while True:
            Wire(server).close()

    def test_answers_what_was_accepted(self, desk: Desk, connect: Connect) -> None:
        server = HttpServer(desk.app, bind="127.0.0.1:0", threads=2)
        server.start()
        wires = [connect(server) for _ in range(4)]  # two are handled, two wait
        for wire in wires:
            wire.request("/slow")
        for _ in range(2):
            assert desk.entered.acquire(timeout=PATIENCE)
        stopping = self.stop(server)
        desk.go_on.set()
        for wire in wires:
            status, body, headers = wire.answer()
            assert (status, body, headers["connection"]) == (200, {"done": True}, "close")
        stopping.join(PATIENCE)
        assert not stopping.is_alive()

    def test_reads_a_last_request_from_every_connection(self, desk: Desk, connect: Connect) -> None:
        server = HttpServer(desk.app, bind="127.0.0.1:0", threads=1)
        server.start()
        begun, new, used = connect(server), connect(server), connect(server)
        begun.send("POST /echo HTTP/1.1\r\nHost: rm\r\nContent-")
        used.request("/nothing", method="GET")
        assert used.head()[0] == 204
        stopping = self.stop(server)
        begun.send("Length: 2\r\n\r\nhi")
        new.request("/echo", body="hi")
        used.request("/echo", body="hi")
        for wire in (begun, new, used):
            _, body, headers = wire.answer()
            assert (body, headers["connection"]) == ({"body": "hi"}, "close")
            assert wire.ended()
        stopping.join(PATIENCE)
        assert not stopping.is_alive()

    def test_closes_idle_connections(self, desk: Desk, connect: Connect) -> None:
        server = HttpServer(desk.app, bind="127.0.0.1:0", threads=1)
        server.start()
        new, used = connect(server), connect(server)
        used.request("/nothing", method="GET")
        assert used.head()[0] == 204
        server.stop(PATIENCE)
        assert new.ended()
        assert used.ended()

    def test_cuts_off_what_outlives_the_grace(self, desk: Desk, connect: Connect) -> None:
        server = HttpServer(desk.app, bind="127.0.0.1:0", threads=1)
        server.start()
        wire = connect(server)
        wire.request("/slow")
        assert desk.entered.acquire(timeout=PATIENCE)
        server.stop(grace=0.1)
        assert wire.ended()

    def test_leaves_no_thread_behind_and_may_be_called_again(self, desk: Desk) -> None:
        before = set(threading.enumerate())
        server = HttpServer(desk.app, bind="127.0.0.1:0", threads=3)
        server.start()
        server.stop(grace=1)
        server.stop(grace=1)
        assert set(threading.enumerate()) <= before


class TestStart:
    def test_says_when_the_address_is_taken(self, server: HttpServer, desk: Desk) -> None:
        with pytest.raises(OSError, match="in use"):
            HttpServer(desk.app, bind=f"127.0.0.1:{server.address[1]}").start()

    @pytest.mark.parametrize("bind", ["", "8310", "host", "host:", "host:http"])
    def test_refuses_an_address_that_is_none(self, desk: Desk, bind: str) -> None:
        with pytest.raises(BadBindError):
            HttpServer(desk.app, bind=bind)


class Feed:
    """A stream route on /feed whose streams the tests fill."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.requests: list[StreamRequest] = []
        self.streams: list[Stream] = []
        self.opened = threading.Semaphore(0)
        self.left = threading.Semaphore(0)
        self.drained = threading.Semaphore(0)
        self.route = StreamRoute(lambda request: request.path == "/feed", self._open)

    def _open(self, request: StreamRequest) -> Stream | Answer:
        self.requests.append(request)
        if "authorization" in request.headers:
            return Answer(401, [("Content-Type", "application/json"), ("Content-Length", "2")], b"{}")
        stream = Stream(
            [("Content-Type", "text/event-stream")],
            on_close=self.left.release,
            on_drain=self.drained.release,
            **self.settings,
        )
        stream.push(b"hello")
        self.streams.append(stream)
        self.opened.release()
        return stream


class TestStreams:
    @pytest.fixture
    def feed(self) -> Feed:
        return Feed()

    @pytest.fixture
    def server(self, desk: Desk, feed: Feed) -> Iterator[HttpServer]:
        with serving(desk, threads=2, streams=[feed.route]) as server:
            yield server

    def subscribe(self, wire: Wire, feed: Feed, *headers: str) -> Stream:
        wire.request("/feed", *headers, method="GET")
        status, head = wire.head()
        assert (status, head["content-type"]) == (200, "text/event-stream")
        assert wire.chunk() == b"hello"
        assert feed.opened.acquire(timeout=PATIENCE)
        return feed.streams[-1]

    def test_carry_what_any_thread_pushes_and_end_cleanly(
        self, server: HttpServer, connect: Connect, feed: Feed
    ) -> None:
        wire = connect(server)
        stream = self.subscribe(wire, feed)
        for n in range(3):
            assert stream.push(b"%d" % n)
            assert wire.chunk() == b"%d" % n
        stream.push(b"last")
        stream.close()
        assert wire.chunk() == b"last"
        assert wire.chunk() == b""
        assert feed.left.acquire(timeout=PATIENCE)
        assert not stream.push(b"too late")
        wire.request("/echo", body="same connection")
        assert wire.answer()[0] == 201

    def test_know_their_request(self, server: HttpServer, connect: Connect, feed: Feed) -> None:
        wire = connect(server)
        wire.request("/feed?after=1%202", "Last-Event-ID: 7", body='{"group": "a"}')
        wire.head()
        (seen,) = feed.requests
        assert (seen.method, seen.path, seen.query) == ("POST", "/feed", "after=1%202")
        assert (seen.headers["last-event-id"], seen.body) == ("7", b'{"group": "a"}')
        assert seen.remote_address == "127.0.0.1"

    def test_hold_no_request_thread(self, server: HttpServer, connect: Connect, feed: Feed) -> None:
        streams = [(wire, self.subscribe(wire, feed)) for wire in (connect(server) for _ in range(50))]
        assert server.open_streams == 50
        wire = connect(server)
        wire.request("/echo", body="ordinary")
        assert wire.answer()[0] == 201
        for n, (_, stream) in enumerate(streams):
            stream.push(b"%d" % n)
        assert [wire.chunk() for wire, _ in streams] == [b"%d" % n for n in range(50)]

    def test_notice_that_the_client_has_gone(self, server: HttpServer, connect: Connect, feed: Feed) -> None:
        wire = connect(server)
        stream = self.subscribe(wire, feed)
        wire.close()
        assert feed.left.acquire(timeout=PATIENCE)
        assert stream.closed
        assert not stream.overflowed
        assert not stream.push(b"nobody hears this")

    def test_notice_a_client_that_left_before_they_opened(
        self, server: HttpServer, connect: Connect, feed: Feed, desk: Desk
    ) -> None:
        busy = [connect(server), connect(server)]
        for wire in busy:  # so that the opening has to wait
            wire.request("/slow")
            assert desk.entered.acquire(timeout=PATIENCE)
        leaving = connect(server)
        leaving.request("/feed", "Expect: 100-continue", method="GET", body="x")
        assert leaving.head()[0] == 100
        leaving.close()
        later = connect(server)  # when the loop has taken this up, it knows of the leaving
        later.request("/echo", "Expect: 100-continue", body="x")
        assert later.head()[0] == 100
        desk.go_on.set()
        assert feed.left.acquire(timeout=PATIENCE)
        assert not feed.streams[0].push(b"nobody hears this")

    def test_may_be_refused(self, server: HttpServer, connect: Connect) -> None:
        wire = connect(server)
        wire.request("/feed", "Authorization: Bearer wrong", method="GET")
        assert wire.answer()[:2] == (401, {})

    def test_need_http_1_1(self, server: HttpServer, connect: Connect, feed: Feed) -> None:
        wire = connect(server)
        wire.send("GET /feed HTTP/1.0\r\n\r\n")
        assert wire.answer()[0] == 505
        assert feed.streams == []

    def test_tell_the_feeder_when_they_are_drained(
        self, server: HttpServer, connect: Connect, feed: Feed
    ) -> None:
        wire = connect(server)
        stream = self.subscribe(wire, feed)
        for n in range(5):
            assert feed.drained.acquire(timeout=PATIENCE)
            stream.push(b"page %d" % n)
            assert wire.chunk() == b"page %d" % n

    def test_a_slow_reader_is_cut_off_alone(self, desk: Desk, connect: Connect) -> None:
        feed = Feed(buffer_limit=100_000)
        with serving(desk, streams=[feed.route]) as server:
            slow, quick = connect(server), connect(server)
            unread, read = self.subscribe(slow, feed), self.subscribe(quick, feed)
            while unread.push(b"x" * 50_000):
                assert read.push(b"tick")
                assert quick.chunk() == b"tick"
            assert unread.overflowed
            assert feed.left.acquire(timeout=PATIENCE)
            assert read.push(b"still here")
            assert quick.chunk() == b"still here"

    def test_are_kept_alive_by_one_timer(self, desk: Desk, connect: Connect) -> None:
        feed = Feed(keep_alive=b": still here\n\n")
        with serving(desk, streams=[feed.route], keep_alive_seconds=0.02) as server:
            wires = [connect(server) for _ in range(3)]
            for wire in wires:
                wire.request("/feed", method="GET")
                wire.head()
            for wire in wires:
                assert b"".join(wire.chunk() for _ in range(3)).count(b": still here\n\n") >= 2

    def test_end_cleanly_when_the_server_stops(self, desk: Desk, connect: Connect) -> None:
        feed = Feed()
        with serving(desk, streams=[feed.route]) as server:
            wire = connect(server)
            stream = self.subscribe(wire, feed)
            stream.push(b"the last word")
            server.stop(grace=PATIENCE)
            assert wire.chunk() == b"the last word"
            assert wire.chunk() == b""
            assert wire.ended()
            assert stream.closed

    def test_whose_opening_fails_are_a_500(self, desk: Desk, connect: Connect) -> None:
        def fail(_: StreamRequest) -> Stream:
            raise LookupError

        with serving(desk, streams=[StreamRoute(lambda _: True, fail)]) as server:
            wire = connect(server)
            wire.request("/feed", method="GET")
            assert wire.answer()[0] == 500
