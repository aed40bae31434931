"""The HTTP server, seen from the other end of a socket: how it starts, answers and stops."""

import threading
from typing import NoReturn
from urllib.parse import parse_qs

import pytest

from rm_service.hosting.bind import BadBindError
from rm_service.hosting.server import HttpServer
from tests.hosting.wire import PATIENCE, Connect, Desk, Wire


class TestStart:
    def test_says_when_the_address_is_taken(self, server: HttpServer, desk: Desk) -> None:
        with pytest.raises(OSError, match="in use"):
            HttpServer(desk.app, bind=f"127.0.0.1:{server.address[1]}").start()

    @pytest.mark.parametrize("bind", ["", "8310", "host", "host:", "host:http"])
    def test_refuses_an_address_that_is_none(self, desk: Desk, bind: str) -> None:
        with pytest.raises(BadBindError):
            HttpServer(desk.app, bind=bind)


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
