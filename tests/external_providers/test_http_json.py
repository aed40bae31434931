"""The provider of any JSON endpoint: expressions, units, faults, redirects, and what may not be shown."""

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from external_providers.base import (
    DeniedError,
    ExternalApplication,
    ExternalResourceRequest,
    MalformedError,
    Place,
    ProviderError,
    ProviderRecord,
    UnreachableError,
)
from external_providers.http_json import HttpJsonProvider
from external_providers.http_json.fetching import MAX_BODY
from external_providers.http_json.reading import read_json, read_places
from external_providers.testkit import Config, ProviderContract, Subject, http_hangs, http_troubles
from external_providers.testkit.servers import Answer, answering
from tests.external_providers.json_server import JsonServer, Tls

AUTHORIZATION = "Bearer s3cret-value"
DOCUMENT = {
    "data": {
        "queues": [
            {"path": ["lab", "train"], "memMb": 2048, "cores": 1.5, "usedMb": 100, "usedCores": 0.0005},
            {"path": ["lab", "test"], "memMb": "512", "cores": 2, "usedMb": 0, "usedCores": 0, "open": False},
        ],
        "jobs": [{"id": 7, "queue": "lab.train", "mb": 100, "user": "alice", "labels": "rm-7, nightly"}],
    }
}
CONFIG: Mapping[str, Any] = {
    "headers": {"Authorization": AUTHORIZATION},
    "cluster": "lab",
    "places": "data.queues[*]",
    "name": "join('.', path)",
    "total": {"lab.memory": "memMb", "lab.vcore": "cores"},
    "used": {"lab.memory": "usedMb", "lab.vcore": "usedCores"},
    "open": "open != `false`",
    "unit": {"lab.memory": "MiB", "lab.vcore": "cores"},
    "applications": {
        "items": "data.jobs",
        "id": "id",
        "place": "queue",
        "allocated": {"lab.memory": "mb"},
        "user": "user",
        "tags": "labels",
    },
}
MINIMAL: Mapping[str, Any] = {"places": "@", "name": "name", "total": {"x": "total"}, "used": {"x": "used"}}
PROVIDER = HttpJsonProvider()


@pytest.fixture
def server() -> Iterator[JsonServer]:
    with JsonServer() as server:
        server.answers["/"] = DOCUMENT
        yield server


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return Tls(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def tls(certificate: Tls) -> Iterator[JsonServer]:
    with JsonServer(certificate) as server:
        server.answers["/"] = DOCUMENT
        yield server


@pytest.fixture
def endless() -> Iterator[Callable[[Answer], str]]:
    """Servers that answer everything with the same, for as long as the test runs."""
    with ExitStack() as stack:
        yield lambda answer: stack.enter_context(answering(answer))


def at(url: str) -> Config:
    return {**CONFIG, "url": url}


def request_for(config: Config) -> ExternalResourceRequest:
    return ExternalResourceRequest(PROVIDER.parser.parse(ProviderRecord("http-json", "c1", config)), 10)


def params(**changes: object) -> Mapping[str, Any]:
    return request_for({"url": "http://h", **MINIMAL, **changes}).provider.params


class TestItsContract(ProviderContract):
    @pytest.fixture
    def subject(self, server: JsonServer) -> Subject:
        return Subject(PROVIDER, at(server.url), troubles=http_troubles(at), hangs=http_hangs(at))


class TestItsContractOverTls(ProviderContract):
    @pytest.fixture
    def subject(self, tls: JsonServer, certificate: Tls) -> Subject:
        def trusting(url: str) -> Config:
            return {**at(url), "ca_file": certificate.ca_file}

        context = certificate.context()
        return Subject(
            PROVIDER,
            trusting(tls.url),
            troubles=http_troubles(trusting, context),
            hangs=http_hangs(trusting, context),
        )


# ---- what is read ------------------------------------------------------------------------------------------


def test_places_stand_where_the_expressions_say_with_exact_amounts(server: JsonServer) -> None:
    assert PROVIDER.places(request_for(at(server.url))) == [
        Place(
            "lab.train", {"lab.memory": 2 << 30, "lab.vcore": 1500}, {"lab.memory": 100 << 20, "lab.vcore": 1}
        ),
        Place(
            "lab.test",
            {"lab.memory": 512 << 20, "lab.vcore": 2000},
            {"lab.memory": 0, "lab.vcore": 0},
            open=False,
        ),
    ]


def test_applications_may_have_an_address_of_their_own(server: JsonServer) -> None:
    server.answers["/jobs"] = [{"id": 8, "queue": "lab.test", "mb": 1}]
    expected = ExternalApplication(
        "7", "lab.train", {"lab.memory": 100 << 20}, user="alice", tags=frozenset({"rm-7", "nightly"})
    )
    assert PROVIDER.applications(request_for(at(server.url))) == [expected]
    apart = {**CONFIG["applications"], "items": "@", "url": f"{server.url}/jobs?all=1"}
    (found,) = PROVIDER.applications(request_for({**at(server.url), "applications": apart}))
    assert (found.id, found.place) == ("8", "lab.test")
    assert server.asked == ["/", "/jobs?all=1"]


def test_without_a_list_of_applications_there_are_none_and_nothing_is_asked(server: JsonServer) -> None:
    assert PROVIDER.applications(request_for({**MINIMAL, "url": server.url})) == []
    assert server.asked == []


def test_headers_are_sent(server: JsonServer) -> None:
    PROVIDER.places(request_for(at(server.url)))
    assert server.headers["Authorization"] == AUTHORIZATION


@pytest.mark.parametrize(
    ("unit", "found", "total", "used"),
    [
        (None, 7, 7, 7),
        (None, "8Ki", 8192, 8192),
        (None, 1.5, 1, 2),
        (None, 1e3, 1000, 1000),
        ("KiB", 1.5, 1536, 1536),
        ("kB", "2", 2000, 2000),
        ("MiB", "0.0000001", 0, 1),
        ("B", 2**60, 2**60, 2**60),
    ],
)
def test_what_is_there_is_rounded_down_and_what_is_used_up(
    unit: str | None, found: object, total: int, used: int
) -> None:
    body = json.dumps([{"name": "a", "total": found, "used": found}]).encode()
    (place,) = read_places(read_json(body), params(unit={"x": unit} if unit else {}))
    assert (place.total, place.used) == ({"x": total}, {"x": used})


@given(st.integers(0, 2**63 - 1))
def test_no_whole_number_loses_a_digit(amount: int) -> None:
    body = json.dumps([{"name": "a", "total": amount, "used": amount}]).encode()
    (place,) = read_places(read_json(body), params())
    assert place.total == place.used == {"x": amount}


# ---- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "refusal"),
    [
        ({}, "places: @ finds no list"),
        ([7], "places[0].name: the value is not a text"),
        ([{"name": ""}], "places[0].name: is empty"),
        ([{"name": "a\nb"}], "places[0].name: the value holds a control character"),
        ([{"name": "a"}], "a.total.x: total finds nothing"),
        ([{"name": "a", "total": 1}], "a.used.x: used finds nothing"),
        ([{"name": "a", "total": [1], "used": 0}], "a.total.x: is no number but a list"),
        ([{"name": "a", "total": True, "used": 0}], "a.total.x: is no number but true or false"),
        ([{"name": "a", "total": "5s3cret", "used": 0}], "a.total.x: unknown suffix"),
        ([{"name": "a", "total": 1, "used": 0}] * 2, "places[1].name: a is there twice"),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_field(document: object, refusal: str) -> None:
    with pytest.raises(MalformedError) as caught:
        read_places(document, params())
    assert str(caught.value) == refusal


@pytest.mark.parametrize("amount", [-1, 2**63])
def test_an_amount_that_cannot_be_is_told_as_it_is_so_that_its_place_alone_is_quarantined(
    amount: int,
) -> None:
    bad, good = read_places(
        [{"name": "a", "total": amount, "used": 0}, {"name": "b", "total": 1, "used": 0}], params()
    )
    assert (bad.total, good.total) == ({"x": amount}, {"x": 1})


def test_a_number_that_no_counting_reaches_is_refused() -> None:
    with pytest.raises(MalformedError, match="is no number that can be counted with"):
        read_places([{"name": "a", "total": "1e999", "used": 0}], params(total={"x": "to_number(total)"}))


def test_an_expression_that_does_not_fit_is_named() -> None:
    with pytest.raises(MalformedError, match=r"places: join\('.', @\) does not fit what is there"):
        read_places({"a": 1}, params(places="join('.', @)"))


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"<html>", b"NaN", b"[Infinity]", b"\xff", b"9" * 5000, b"1e999999999", b"1." + b"1" * 99],
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedError, match="the answer is no JSON"):
        read_json(body)


def test_a_key_that_is_there_twice_is_refused_and_not_repeated() -> None:
    with pytest.raises(MalformedError) as caught:
        read_json(b'{"a": [{"used": 1, "used": 2}]}')
    assert str(caught.value) == "the answer has a key twice in one object"


def test_json_that_is_nested_without_end_is_refused() -> None:
    with pytest.raises(MalformedError, match="nested too deeply"):
        read_json(b"[" * 100_000)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
KEYS = st.sampled_from(["name", "total", "used"])


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20))
def test_whatever_comes_there_are_places_or_a_refusal(document: object) -> None:
    with suppress(MalformedError):
        places = read_places(read_json(json.dumps(document).encode()), params())
        assert all(amount >= 0 for place in places for amount in place.total.values())


# ---- the way there -----------------------------------------------------------------------------------------


def failure_of(url: str, expected: type[ProviderError]) -> str:
    with pytest.raises(expected) as caught:
        PROVIDER.places(request_for(at(url)))
    assert type(caught.value) is expected
    return str(caught.value)


@pytest.mark.parametrize(
    ("status", "expected", "said"),
    [
        (401, DeniedError, "answered 401 Unauthorized"),
        (403, DeniedError, "answered 403 Forbidden"),
        (404, MalformedError, "answered 404 Not Found"),
        (429, UnreachableError, "answered 429 Too Many Requests"),
        (503, UnreachableError, "answered 503 Service Unavailable"),
    ],
)
def test_a_status_is_told_with_the_address_without_its_query(
    endless: Callable[[Answer], str], status: int, expected: type[ProviderError], said: str
) -> None:
    url = endless(Answer(status, b"s3cret"))
    assert failure_of(f"{url}/a?key=s3cret", expected) == f"{url}/a {said}"


def test_an_answer_that_is_too_long_is_not_read_to_its_end(endless: Callable[[Answer], str]) -> None:
    said = failure_of(endless(Answer(200, b" " * (MAX_BODY + 1))), MalformedError)
    assert said.endswith(f"answers more than {MAX_BODY} bytes")


def test_an_answer_that_is_cut_off_is_no_answer(endless: Callable[[Answer], str]) -> None:
    said = failure_of(endless(Answer(200, b"[]", length=1000)), UnreachableError)
    assert said.endswith("the connection was cut off")


def test_a_redirect_on_the_same_server_is_followed(server: JsonServer) -> None:
    server.redirects["/old"] = "/new?a=1"
    server.answers["/new"] = DOCUMENT
    assert len(PROVIDER.places(request_for(at(f"{server.url}/old")))) == 2
    assert server.asked == ["/old", "/new?a=1"]
    assert server.headers["Authorization"] == AUTHORIZATION


def test_a_redirect_to_another_server_is_not_followed(server: JsonServer) -> None:
    with JsonServer() as other:
        server.redirects["/old"] = f"{other.url}/new"
        assert failure_of(f"{server.url}/old", MalformedError).endswith(
            "redirects to another server, which is not followed"
        )
        assert other.asked == []


def test_a_redirect_to_itself_ends(server: JsonServer) -> None:
    server.redirects["/old"] = "/old"
    assert failure_of(f"{server.url}/old", MalformedError).endswith("redirects more than 3 times")
    assert len(server.asked) == 4


def test_a_server_that_speaks_no_http_is_malformed(server: JsonServer) -> None:
    server.raw["/"] = b"220 mail.example ESMTP\r\n"
    assert "does not answer as HTTP" in failure_of(server.url, MalformedError)


def test_a_head_that_drips_is_given_up_in_time(server: JsonServer) -> None:
    server.drip["/"] = b"HTTP/1.1 200 OK\r\n"
    request = request_for(at(server.url))
    with pytest.raises(UnreachableError, match=r"no whole answer within 0.3 s"):
        PROVIDER.places(ExternalResourceRequest(request.provider, 0.3))


def test_a_body_without_a_length_that_drips_is_not_taken_for_whole(server: JsonServer) -> None:
    server.drip["/"] = b"HTTP/1.1 200 OK\r\n\r\n[]"
    request = request_for(at(server.url))
    with pytest.raises(UnreachableError, match=r"no whole answer within 0.3 s"):
        PROVIDER.places(ExternalResourceRequest(request.provider, 0.3))


def test_a_server_that_never_shakes_hands_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        request = request_for(at(f"https://127.0.0.1:{listener.getsockname()[1]}"))
        with pytest.raises(UnreachableError, match=r"no whole answer within 0.3 s"):
            PROVIDER.places(ExternalResourceRequest(request.provider, 0.3))


def test_a_server_whose_certificate_nobody_signed_is_not_trusted_unless_told_so(
    tls: JsonServer, certificate: Tls
) -> None:
    assert "its certificate is not trusted" in failure_of(tls.url, UnreachableError)
    assert len(PROVIDER.places(request_for({**at(tls.url), "ca_file": certificate.ca_file}))) == 2
    assert len(PROVIDER.places(request_for({**at(tls.url), "verify": False}))) == 2
