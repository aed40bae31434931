"""The client turns answers into documents, and everything else into one of three errors."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from rm_service import api_client
from rm_service.api_client import ApiClient, ProblemError, UnexpectedAnswerError, UnreachableError
from tests.commands.conftest import StubService


@pytest.fixture
def client(service: StubService) -> Iterator[ApiClient]:
    opened = ApiClient(service.url, "t0ken")
    yield opened
    opened.close()


def test_an_answer_is_its_document(client: ApiClient, service: StubService) -> None:
    service.answer("GET /nodes", {"items": [], "next_cursor": None})
    assert client.get("/nodes", {"selector": "a=b,c", "limit": 5, "cursor": None}) == {
        "items": [],
        "next_cursor": None,
    }
    assert service.asked[0].query == {"selector": ["a=b,c"], "limit": ["5"]}


def test_the_token_goes_with_each_request(client: ApiClient, service: StubService) -> None:
    service.answer("DELETE /limits/1", b"", 204)
    client.delete("/limits/1")
    assert service.asked[0].headers["Authorization"] == "Bearer t0ken"


def test_a_problem_is_raised_with_its_document(client: ApiClient, service: StubService) -> None:
    service.answer("POST /applications", {"code": "no_lock", "detail": "holds nothing", "state": "lost"}, 409)
    with pytest.raises(ProblemError, match="holds nothing") as caught:
        client.post("/applications", {})
    assert (caught.value.status, caught.value.code) == (409, "no_lock")
    assert caught.value.document["state"] == "lost"


@pytest.mark.parametrize(("status", "body"), [(200, b"<html>"), (502, b"<html>"), (200, b"[]"), (302, b"")])
def test_what_does_not_speak_the_api_is_not_taken_for_it(
    client: ApiClient, service: StubService, status: int, body: bytes
) -> None:
    service.answer("GET /nodes", body, status, {"Location": "/elsewhere", "Content-Type": "text/html"})
    with pytest.raises(UnexpectedAnswerError, match=str(status)):
        client.get("/nodes")


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://no-such-host.invalid"])
def test_where_nothing_answers_it_says_so(url: str) -> None:
    with pytest.raises(UnreachableError) as caught:
        ApiClient(url, timeout=5).get("/nodes")
    assert url in str(caught.value)


@pytest.mark.parametrize("url", ["nonsense", "ftp://host", "http://", "http://[::", "127.0.0.1:8310"])
def test_what_is_no_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match=r"URL|is not like http://127.0.0.1:8310"):
        ApiClient(url)


def test_a_request_that_may_be_repeated_outlasts_a_short_absence(service: StubService) -> None:
    service.answer("POST /a", {"code": "unavailable", "detail": "gone"}, 503, {"Retry-After": "0"})
    service.answer("POST /a", {"id": 1})
    client = ApiClient(service.url, attempts=2)
    assert client.post("/a", {}) == {"id": 1}
    client.close()


def test_other_requests_are_sent_once(client: ApiClient, service: StubService) -> None:
    service.answer("POST /a", {"code": "unavailable", "detail": "gone"}, 503, {"Retry-After": "0"})
    with pytest.raises(ProblemError, match="gone"):
        client.post("/a", {})
    assert len(service.asked) == 1


def test_a_page_is_not_taken_for_a_stream(client: ApiClient, service: StubService) -> None:
    service.answer("GET /events", {"items": []})
    with pytest.raises(UnexpectedAnswerError):
        next(client.events())


def test_a_stream_that_breaks_goes_on_behind_its_last_event(
    client: ApiClient, service: StubService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_client, "REOPEN_SECONDS", 0)
    headers = {"Content-Type": "text/event-stream"}
    service.answer("GET /events", b': hello\n\nid: 8\ndata: {"seq": 8}\n\ndata: {"se', 200, headers)
    service.answer("GET /events", b'data: {"seq":\ndata:  9}\n\n', 200, headers)
    events = list(itertools.islice(client.events(7), 2))
    assert [event["seq"] for event in events] == [8, 9]
    assert [one.query for one in service.asked] == [{"after": ["7"]}, {"after": ["8"]}]


def test_a_stream_outlives_a_restart_of_the_service(
    client: ApiClient, service: StubService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_client, "REOPEN_SECONDS", 0)
    headers = {"Content-Type": "text/event-stream"}
    service.answer("GET /events", b'data: {"seq": 8}\n\n', 200, headers)
    service.answer("GET /events", b'data: {"seq": 9}\n\n', 200, headers)
    send, away = client._send, iter([False, True, True, False])

    def sometimes(*args: Any, **more: Any) -> Any:
        if next(away):
            raise UnreachableError(service.url, "refused")
        return send(*args, **more)

    monkeypatch.setattr(client, "_send", sometimes)
    assert [event["seq"] for event in itertools.islice(client.events(7), 2)] == [8, 9]
    monkeypatch.setattr(api_client, "RESTART_SECONDS", -1.0)
    service.answer("GET /events", b'data: {"seq": 8}\n\n', 200, headers)
    away = iter([False, True])
    with pytest.raises(UnreachableError):
        list(client.events(7))
