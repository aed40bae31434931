"""What the HTTP server refuses: malformed, too large, too slow, too much at once."""

import select
import socket

import pytest

from rm_service.hosting.server import HttpServer
from tests.hosting.wire import PATIENCE, Connect, Desk, serving


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

    def test_a_client_that_would_close_reads_the_413_too(
        self, server: HttpServer, connect: Connect, desk: Desk
    ) -> None:
        """The rest of its body is read away, so that nothing is reset before it has read the answer."""
        wire = connect(server)
        wire.send("POST /echo HTTP/1.1\r\nHost: rm\r\nConnection: close\r\nContent-Length: 5000\r\n\r\n")
        assert select.select([wire.socket], [], [], PATIENCE)[0], "the answer has come"
        for _ in range(2):
            wire.send("x" * 2500)
        status, body, headers = wire.answer()
        assert (status, body["code"], headers["connection"]) == (413, "body_too_large", "close")
        assert wire.ended()
        assert desk.calls == []

    def test_one_that_waits_for_the_end_first_is_not_kept_waiting(
        self, server: HttpServer, connect: Connect
    ) -> None:
        wire = connect(server)
        wire.send("POST /echo HTTP/1.1\r\nHost: rm\r\nConnection: close\r\nContent-Length: 5000\r\n\r\nhalf")
        assert wire.answer()[0] == 413
        assert wire.ended(), "though its body is not complete"

    def test_the_rest_of_a_refused_body_is_waited_for_no_longer_than_a_request(
        self, desk: Desk, connect: Connect
    ) -> None:
        head = "POST /echo HTTP/1.1\r\nHost: rm\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        with serving(desk, threads=1, max_body=1000, request_seconds=0.1) as server:
            wire = connect(server)
            wire.send(head + "7d0\r\n" + "x" * 2000)
            assert wire.answer()[0] == 413
            with pytest.raises(ConnectionError):
                wire.send_forever("x")

    def test_what_comes_after_an_answer_is_answered_although_it_is_the_last(
        self, server: HttpServer, connect: Connect, desk: Desk
    ) -> None:
        """An answer does not end the connection of the request behind it, whose body is not there yet."""
        wire = connect(server)
        wire.request("/slow")
        assert desk.entered.acquire(timeout=PATIENCE)
        wire.send("POST /echo HTTP/1.1\r\nHost: rm\r\nConnection: close\r\nContent-Length: 4\r\n\r\nha")
        desk.go_on.set()
        assert wire.answer()[1] == {"done": True}
        wire.send("lf")
        assert wire.answer()[1] == {"body": "half"}
        assert wire.ended()

    def test_nor_is_it_taken_for_anything_else(
        self, server: HttpServer, connect: Connect, desk: Desk
    ) -> None:
        head = "POST /echo HTTP/1.1\r\nHost: rm\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        wire = connect(server)
        wire.send(head + "7d0\r\n" + "x" * 2000)
        assert wire.answer()[0] == 413
        wire.send("nonsense")
        wire.request("/echo", body="next")
        assert wire.ended()
        assert desk.calls == []

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
