"""HTTP within bounds: an answer is whole, short enough and in time, or it is an error."""

import gzip
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from threading import Event

import pytest
import requests
from requests.exceptions import ChunkedEncodingError, ContentDecodingError

from external_providers.base import DeniedError, MalformedError, ProviderError, UnreachableError
from external_providers.bounded_http import (
    Answer,
    BoundedSession,
    Deadline,
    LateError,
    NoHttpError,
    Question,
    TooLongError,
    ask,
    check_status,
    origin,
)
from external_providers.testkit.servers import dripping, silent
from tests.external_providers.json_server import JsonServer
from tests.external_providers.loopback import LoopbackHandler, LoopbackServer

WAIT = 20.0
"""Longer than anything here takes; a test that waits so long has failed."""
MOST = 1000


@pytest.fixture
def server() -> Iterator[JsonServer]:
    with JsonServer() as server:
        yield server


def alone(url: str, seconds: float = WAIT) -> Answer:
    return ask(Question(url), Deadline(seconds), MOST)


def in_a_session(url: str, seconds: float = WAIT) -> Answer:
    with closing(BoundedSession()) as session:
        return session.get(url, Deadline(seconds), most_bytes=MOST, connect_seconds=WAIT)


Asking = Callable[[str, float], Answer]
both_ways = pytest.mark.parametrize("asked", [alone, in_a_session])


# ---- the deadline ------------------------------------------------------------------------------------------


def test_a_deadline_is_for_all_that_is_done_within_it() -> None:
    times = iter([0.0, 4.0, 7.0, 11.0, 12.0])
    deadline = Deadline(10, clock=lambda: next(times))
    assert [deadline.seconds_left for _ in range(3)] == [6.0, 3.0, 0.0]
    assert deadline.passed


def test_a_share_is_a_fair_part_of_what_is_left() -> None:
    now = [0.0]
    deadline = Deadline(10, clock=lambda: now[0])
    now[0] = 4.0
    assert deadline.share(3).seconds_left == 2.0
    assert deadline.seconds_left == 6.0


def test_what_lasts_longer_is_ended() -> None:
    ended = Event()
    with Deadline(0.01).ending(ended.set):
        assert ended.wait(WAIT)


def test_what_is_over_in_time_is_not_ended() -> None:
    ended = Event()
    with Deadline(WAIT).ending(ended.set):
        pass
    assert not ended.is_set()


# ---- both ways of asking -----------------------------------------------------------------------------------


@both_ways
def test_an_answer_has_its_status_its_headers_and_its_body(server: JsonServer, asked: Asking) -> None:
    server.raw["/"] = b"HTTP/1.1 200 OK\r\nX-Word: Hello\r\nContent-Length: 2\r\n\r\n{}"
    answer = asked(f"{server.url}/", WAIT)
    assert (answer.status, answer.body, answer.headers["x-word"]) == (200, b"{}", "Hello")


@both_ways
def test_a_redirect_is_an_answer_and_is_not_followed(server: JsonServer, asked: Asking) -> None:
    server.redirects["/old"] = "/new"
    answer = asked(f"{server.url}/old", WAIT)
    assert (answer.status, answer.headers["location"]) == (302, "/new")
    assert server.asked == ["/old"]


@both_ways
@pytest.mark.parametrize(
    "head",
    [b"Content-Length: %d\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n%x\r\n", b"\r\n"],
    ids=["with its length", "in chunks", "without its length"],
)
def test_an_answer_may_be_so_long_and_no_longer(server: JsonServer, asked: Asking, head: bytes) -> None:
    for length in (MOST, MOST + 1):
        said = head % length if b"%" in head else head
        tail = b"\r\n0\r\n\r\n" if b"chunked" in head else b""
        server.raw[f"/{length}"] = b"HTTP/1.1 200 OK\r\n" + said + b" " * length + tail
    assert len(asked(f"{server.url}/{MOST}", WAIT).body) == MOST
    with pytest.raises(TooLongError, match=f"longer than {MOST} bytes"):
        asked(f"{server.url}/{MOST + 1}", WAIT)


@both_ways
def test_a_server_that_is_silent_is_given_up_in_time(asked: Asking) -> None:
    with silent() as url, pytest.raises(LateError, match="no whole answer in time"):
        asked(url, 0.2)


@both_ways
def test_a_body_that_drips_is_given_up_in_time(asked: Asking) -> None:
    with dripping() as url, pytest.raises(LateError):
        asked(url, 0.2)


@both_ways
def test_a_head_that_drips_is_given_up_in_time(server: JsonServer, asked: Asking) -> None:
    server.drip["/"] = b"HTTP/1.1 200 OK\r\n"
    with pytest.raises(LateError):
        asked(f"{server.url}/", 0.2)


@both_ways
def test_a_body_without_a_length_that_drips_is_not_taken_for_whole(server: JsonServer, asked: Asking) -> None:
    server.drip["/"] = b"HTTP/1.1 200 OK\r\n\r\n{}"
    with pytest.raises(LateError):
        asked(f"{server.url}/", 0.2)


@both_ways
def test_when_the_time_is_over_nobody_is_asked(server: JsonServer, asked: Asking) -> None:
    with pytest.raises(LateError):
        asked(server.url, 0.0)
    assert server.asked == []


# ---- a question of its own ---------------------------------------------------------------------------------


class _Echo(LoopbackHandler):
    """Answers with what was posted."""

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("X-Word", self.headers["X-Word"])
        self.end_headers()
        self.wfile.write(body)


def test_a_question_may_have_a_body_and_headers() -> None:
    with LoopbackServer(_Echo) as echo:
        answer = ask(Question(echo.url, {"X-Word": "Hello"}, "POST", b"{}"), Deadline(WAIT), MOST)
    assert (answer.body, answer.headers["x-word"]) == (b"{}", "Hello")


def test_only_the_body_of_a_good_answer_is_read(server: JsonServer) -> None:
    server.raw["/"] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\ns3cret"
    assert (alone(f"{server.url}/").status, alone(f"{server.url}/").body) == (404, b"")


def test_an_answer_that_is_cut_off_is_no_answer(server: JsonServer) -> None:
    length = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}"
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{}"
    for server.raw["/"] in (length, chunks):
        with pytest.raises(UnreachableError, match=r"^the connection was cut off$"):
            alone(f"{server.url}/")


def test_a_server_that_speaks_no_http_is_malformed(server: JsonServer) -> None:
    server.raw["/"] = b"220 mail.example ESMTP\r\n"
    with pytest.raises(NoHttpError, match=r"^it does not answer as HTTP: BadStatusLine$"):
        alone(f"{server.url}/")


def test_nobody_who_listens_is_told_as_such() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        with pytest.raises(UnreachableError, match=r"^the connection is refused$"):
            alone(f"http://127.0.0.1:{reserved.getsockname()[1]}")


def test_a_server_that_never_shakes_hands_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(LateError):
        alone(f"https://127.0.0.1:{listener.getsockname()[1]}", 0.2)


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (401, DeniedError, "it answered 401 Unauthorized"),
        (403, DeniedError, "it answered 403 Forbidden"),
        (404, MalformedError, "it answered 404 Not Found"),
        (204, MalformedError, "it answered 204 No Content"),
        (429, UnreachableError, "it answered 429 Too Many Requests"),
        (599, UnreachableError, "it answered 599"),
    ],
)
def test_a_status_tells_whether_asking_again_may_help(
    status: int, error: type[ProviderError], said: str
) -> None:
    with pytest.raises(error) as caught:
        check_status(status)
    assert str(caught.value) == said
    check_status(200)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://RM1/a?b#c", "http://rm1:80"),
        ("https://rm1", "https://rm1:443"),
        ("https://rm1:8443/", "https://rm1:8443"),
        ("http://[::1]:80/", "http://::1:80"),
        ("/old", ""),
        ("ftp://rm1", ""),
        ("http://rm1:none", ""),
        ("http://[", ""),
    ],
)
def test_two_addresses_of_one_server_have_the_same_origin(url: str, place: str) -> None:
    assert origin(url) == place


# ---- a session ---------------------------------------------------------------------------------------------


def packed(body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


def test_a_packed_answer_is_unpacked_and_its_bound_is_that_of_what_was_packed(server: JsonServer) -> None:
    server.raw["/most"] = packed(gzip.compress(b" " * MOST))
    server.raw["/more"] = packed(gzip.compress(b" " * 10_000_000))
    assert in_a_session(f"{server.url}/most").body == b" " * MOST
    with pytest.raises(TooLongError):
        in_a_session(f"{server.url}/more")


def test_a_long_answer_that_was_packed_loses_nothing(server: JsonServer) -> None:
    body = b"0123456789" * 100_000
    server.raw["/"] = packed(gzip.compress(body))
    with closing(BoundedSession()) as session:
        answer = session.get(f"{server.url}/", Deadline(WAIT), most_bytes=len(body), connect_seconds=WAIT)
    assert answer.body == body


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (packed(gzip.compress(b"{}")[:-4]), ChunkedEncodingError),
        (packed(b"not packed"), ContentDecodingError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}", ChunkedEncodingError),
        (b"220 mail.example ESMTP\r\n", requests.ConnectionError),
    ],
    ids=["packed and cut off", "not packed", "cut off", "no HTTP"],
)
def test_an_answer_that_is_none_is_an_error_of_requests(
    server: JsonServer, raw: bytes, error: type[requests.RequestException]
) -> None:
    server.raw["/"] = raw
    with pytest.raises(error):
        in_a_session(f"{server.url}/")


class _Counting(LoopbackHandler):
    """Keeps the line, and says how many questions have come on it."""

    protocol_version = "HTTP/1.1"
    count = 0

    def answer(self) -> None:
        self.count += 1
        self.send_response(200)
        self.send_header("Content-Length", "1")
        self.end_headers()
        self.wfile.write(b"%d" % self.count)


class _Unpackable(LoopbackHandler):
    """Keeps the line, and says of its answers that they are packed."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        self.wfile.write(packed(b"not packed"))


def test_a_session_keeps_its_line() -> None:
    with LoopbackServer(_Counting) as server, closing(BoundedSession()) as session:
        answers = [
            session.get(server.url, Deadline(WAIT), most_bytes=MOST, connect_seconds=WAIT) for _ in range(3)
        ]
    assert [answer.body for answer in answers] == [b"1", b"2", b"3"]


def test_a_session_that_is_closed_leaves_no_line_open_whatever_refers_to_it() -> None:
    with LoopbackServer(_Unpackable) as server:  # it would wait for its line to end
        with pytest.raises(ContentDecodingError) as caught:
            in_a_session(server.url)
        assert caught.value.__traceback__ is not None


def test_after_a_line_was_cut_a_session_takes_another(server: JsonServer) -> None:
    server.drip["/slow"] = b"HTTP/1.1 200 OK\r\n"
    server.answers["/"] = {}
    with closing(BoundedSession()) as session:
        with pytest.raises(LateError):
            session.get(f"{server.url}/slow", Deadline(0.2), most_bytes=MOST, connect_seconds=WAIT)
        assert (
            session.get(f"{server.url}/", Deadline(WAIT), most_bytes=MOST, connect_seconds=WAIT).body == b"{}"
        )


def test_the_environment_does_not_say_how_to_ask(server: JsonServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    server.answers["/"] = {}
    assert in_a_session(f"{server.url}/").status == 200
