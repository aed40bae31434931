"""A question over HTTP: what is asked again, what is not, and that it ends in time whatever happens."""

import socket
from pathlib import Path
from threading import Thread

import pytest

from external_providers.base import DeniedError, MalformedError, UnreachableError
from rm_service.domain.limits import LimitTerms
from rm_service.services.limit_sources import http_call
from rm_service.services.limit_sources.http_source import HttpSource
from tests.services.external.scripted import FakeTime
from tests.services.limit_sources.configuration import ConfigurationService

ALICE = {"user": "alice"}


def source(service: ConfigurationService, token_file: Path | None = None, seconds: float = 10) -> HttpSource:
    file = None if token_file is None else str(token_file)
    return HttpSource(service.url, seconds, FakeTime().clocks, file)


def test_it_is_asked_for_combinations_and_says_their_limits(service: ConfigurationService) -> None:
    service.says(ALICE, {"memory": "1Ki"})
    said = source(service).limits_of([ALICE, {"user": "bob"}])
    assert said.limits == [LimitTerms(ALICE, {"memory": 1024}, {})]
    assert service.asked == [[ALICE, {"user": "bob"}]]


@pytest.mark.parametrize("status", [500, 503, 429])
def test_what_had_no_answer_is_asked_again(service: ConfigurationService, status: int) -> None:
    service.statuses = [status, status]
    source(service).limits_of([ALICE])
    assert service.questions == 3


def test_but_not_for_ever(service: ConfigurationService) -> None:
    service.statuses = [500] * 9
    with pytest.raises(UnreachableError, match="it answered 500 Internal Server Error"):
        source(service).limits_of([ALICE])
    assert service.questions == 3


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, DeniedError), (403, DeniedError), (404, MalformedError), (302, MalformedError)],
)
def test_what_would_be_answered_alike_is_not_asked_again(
    service: ConfigurationService, status: int, error: type[Exception]
) -> None:
    service.statuses = [status]
    with pytest.raises(error, match=f"it answered {status}"):
        source(service).limits_of([ALICE])
    assert service.questions == 1


def test_a_service_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(UnreachableError, match="the connection is refused"):
        HttpSource(url, 10, FakeTime().clocks).limits_of([ALICE])


def test_an_answer_that_never_ends_is_cut_off(service: ConfigurationService) -> None:
    service.drips = True
    with pytest.raises(UnreachableError, match="no whole answer in time"):
        source(service, seconds=0.3).limits_of([ALICE])


def test_an_answer_that_never_begins_is_cut_off(service: ConfigurationService) -> None:
    service.hold()
    with pytest.raises(UnreachableError, match="no whole answer in time"):
        source(service, seconds=0.3).limits_of([ALICE])
    service.let_go()


def test_an_answer_without_bounds_is_not_read(
    service: ConfigurationService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_call, "MAX_ANSWER", 1000)
    service.body = b" " * 1001
    with pytest.raises(MalformedError, match="longer than 1000 bytes"):
        source(service).limits_of([ALICE])


def test_an_answer_that_is_cut_short_is_asked_for_again(service: ConfigurationService) -> None:
    service.raw = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}"
    with pytest.raises(UnreachableError, match="cut off"):
        source(service).limits_of([ALICE])
    assert service.questions == 3


def test_what_is_no_http_is_malformed(service: ConfigurationService) -> None:
    service.raw = b"SSH-2.0\r\n\r\n"
    with pytest.raises(MalformedError, match="does not answer as HTTP"):
        source(service).limits_of([ALICE])


def test_the_token_is_read_before_each_question(service: ConfigurationService, tmp_path: Path) -> None:
    file = tmp_path / "token"
    asking = source(service, file)
    for token in ("one", "two"):
        file.write_text(f"{token}\n", encoding="ascii")
        asking.limits_of([ALICE])
    assert service.tokens == ["Bearer one", "Bearer two"]


@pytest.mark.parametrize("text", [None, "", "a\nb", "ü"])
def test_a_token_that_is_none_is_not_sent(
    service: ConfigurationService, tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "token"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(DeniedError, match="token"):
        source(service, file).limits_of([ALICE])
    assert service.questions == 0


def test_its_name_in_logs_holds_no_query() -> None:
    asked = HttpSource("http://conf/limits?key=s3cret", 1, FakeTime().clocks)
    assert str(asked) == "http://conf/limits"


def test_several_may_ask_at_a_time(service: ConfigurationService) -> None:
    asking = source(service)
    threads = [Thread(target=asking.limits_of, args=([ALICE],)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert service.questions == 8
