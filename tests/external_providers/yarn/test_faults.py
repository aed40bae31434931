"""Whatever comes back over the wire: the right kind of error, in time, without secrets."""

import base64
import socket
import threading
from collections.abc import Iterator

import pytest

from external_providers.base import DeniedError, MalformedError, ProviderError, UnreachableError
from external_providers.yarn import YarnProvider, fetching
from tests.external_providers.yarn.documents import capacity, share
from tests.external_providers.yarn.fake_rm import METRICS, SCHEDULER, FakeRm, Reply, metrics, reply, request

WORD = "hunter2-hünter"


@pytest.fixture
def provider() -> Iterator[YarnProvider]:
    provider = YarnProvider()
    yield provider
    provider.close()


@pytest.fixture
def manager() -> Iterator[FakeRm]:
    with FakeRm(
        {SCHEDULER: reply(capacity(share("etl", 50.0, 100.0))), METRICS: metrics(1000, 10)}
    ) as manager:
        yield manager


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (Reply(status=401), DeniedError, "HTTP 401"),
        (Reply(status=403), DeniedError, "HTTP 403"),
        (Reply(status=500), UnreachableError, "HTTP 500"),
        (Reply(status=503), UnreachableError, "HTTP 503"),
        (Reply(status=404), MalformedError, "HTTP 404"),
        (Reply(status=204), MalformedError, "HTTP 204"),
        (Reply(status=302, headers={"Location": "/login"}), MalformedError, "redirects to another page"),
        (
            Reply(b"<html>Sign\n in</html>"),
            MalformedError,
            "not JSON: it cannot be read from line 1, column 1",
        ),
        (Reply(b""), MalformedError, "not JSON"),
        (Reply(b"[]"), MalformedError, "JSON, and no object"),
        (Reply(b"{}"), MalformedError, "the scheduler's type is neither"),
        (Reply(b'{"scheduler": ', length=100), UnreachableError, "the answer was cut off"),
        (
            reply(capacity(share("a", 1, "x"))),
            MalformedError,
            "queue root.a: absoluteMaxCapacity is no number",
        ),
    ],
)
def test_a_bad_answer_is_told_by_its_kind(
    provider: YarnProvider, manager: FakeRm, answer: Reply, error: type[ProviderError], words: str
) -> None:
    manager.replies[SCHEDULER] = answer
    with pytest.raises(error) as caught:
        provider.places(request(manager.url))
    assert words in str(caught.value)


def test_after_a_bad_answer_a_good_one_is_read(provider: YarnProvider, manager: FakeRm) -> None:
    good = manager.replies[SCHEDULER]
    manager.replies[SCHEDULER] = Reply(b"{", length=100)
    with pytest.raises(UnreachableError):
        provider.places(request(manager.url))
    manager.replies[SCHEDULER] = good
    assert len(provider.places(request(manager.url))) == 2


def test_an_answer_that_is_too_long_is_cut_off(
    provider: YarnProvider, manager: FakeRm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "MOST_BYTES", 2**20)
    manager.replies[SCHEDULER] = Reply(b" " * (2**20 + 1))
    with pytest.raises(MalformedError, match="the answer is longer than 1 MiB"):
        provider.places(request(manager.url))


@pytest.mark.parametrize(
    "answer",
    [Reply(silent=True), Reply(b"{", length=10**6, drips=True)],
    ids=["silent", "dripping"],
)
def test_what_does_not_end_is_given_up(provider: YarnProvider, manager: FakeRm, answer: Reply) -> None:
    manager.replies[SCHEDULER] = answer
    with pytest.raises(UnreachableError, match="did not answer in time"):
        provider.places(request(manager.url, seconds=0.3))


def test_headers_that_drip_are_given_up_too(provider: YarnProvider) -> None:
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while not done.wait(0.02):
                    try:
                        connection.sendall(b"x")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            with pytest.raises(UnreachableError, match="did not answer in time"):
                provider.places(request(f"http://127.0.0.1:{listener.getsockname()[1]}", seconds=0.3))
        finally:
            done.set()
            thread.join()


def test_nobody_there_is_told_as_such(provider: YarnProvider) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        with pytest.raises(UnreachableError, match=f"^{address}: Connection refused$"):
            provider.places(request(address))


def test_a_missing_file_of_certificates_is_told(provider: YarnProvider, manager: FakeRm) -> None:
    address = manager.url.replace("http:", "https:")
    with pytest.raises(UnreachableError, match="no/such/ca"):
        provider.places(request(address, ca_file="/no/such/ca.pem"))


def test_https_needs_a_certificate_that_is_trusted(provider: YarnProvider, manager: FakeRm) -> None:
    with pytest.raises(UnreachableError):
        provider.places(request(manager.url.replace("http:", "https:")))


def test_user_and_password_are_sent(provider: YarnProvider, manager: FakeRm) -> None:
    provider.places(request(manager.url, user="älice", password=WORD))
    scheme, _, token = manager.asked[0].headers["Authorization"].partition(" ")
    assert scheme == "Basic"
    assert base64.b64decode(token).decode() == f"älice:{WORD}"


@pytest.mark.parametrize(
    "answer",
    [
        Reply(f"<p>{WORD} is wrong".encode()),
        Reply(f'{{"scheduler": "{WORD}'.encode()),
        Reply(status=302, headers={"Location": f"/{WORD.encode('ascii', 'ignore').decode()}"}),
        reply({"scheduler": {"schedulerInfo": {"type": WORD}}}),
        reply(capacity(share("a", 1, WORD))),
        reply(capacity(share("a", 1, 1, numApplications=WORD))),
    ],
)
def test_nothing_of_an_answer_is_repeated(provider: YarnProvider, manager: FakeRm, answer: Reply) -> None:
    manager.replies[SCHEDULER] = answer
    with pytest.raises(MalformedError) as caught:
        provider.places(request(manager.url, user="alice", password=WORD))
    assert "hunter2" not in f"{caught.value} {caught.value.__cause__} {caught.value.__cause__!r}"


def test_nothing_but_the_record_says_how_to_ask(
    provider: YarnProvider, manager: FakeRm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    assert len(provider.places(request(manager.url))) == 2


def test_connections_are_kept_from_call_to_call(provider: YarnProvider, manager: FakeRm) -> None:
    for _ in range(3):
        provider.places(request(manager.url))
    assert {asked.headers["Accept"] for asked in manager.asked} == {"application/json"}
    assert len(manager.asked) == 6


def test_health_says_what_is_wrong_instead_of_raising(provider: YarnProvider, manager: FakeRm) -> None:
    manager.close()
    health = provider.health(request(manager.url))
    assert (health.ok, health.detail) == (False, f"{manager.url}: Connection refused")
