"""Streams of the HTTP server, seen from the other end of a socket."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rm_service.hosting.answer import Answer
from rm_service.hosting.server import HttpServer
from rm_service.hosting.streams import Stream, StreamRequest, StreamRoute
from tests.hosting.wire import PATIENCE, Connect, Desk, Wire, serving


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
