"""Whatever is wrong with a request, the answer is a problem document, and nothing has changed."""

import json
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import OperationalError

from rm_service.ledger.errors import LedgerClosedError, LedgerUnavailableError, OutcomeUnknownError
from rm_service.ledger.ledger import Ledger
from rm_service.services.nodes import Nodes
from tests.facades.conftest import MAX_BODY, Api, Json, make_api

JSON = "application/json"


def refused(api: Api, path: str = "/applications", method: str = "POST", *, status: int, **more: Any) -> Json:
    answer = api.send(method, path, **more)
    assert answer.status_code == status, answer.get_data(as_text=True)
    assert answer.content_type == "application/problem+json"
    document: Json = answer.get_json()
    assert {"status", "title", "detail", "code"} <= document.keys()
    return document


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"", "input"),
        (b"{", "unexpected end"),
        (b"[]", "object"),
        (b"5", "object"),
        (b'"x"', "object"),
        (b"null", "object"),
        (b"{'a': 1}", "column 2"),
        (b'{"a": 1,}', "trailing comma"),
        (b'{"a": NaN}', "line 1"),
        (b'{"a": Infinity}', "line 1"),
        (b'{"a": 01}', "line 1"),
        (b'{"tags": {}, "tags": {}}', "'tags' stands twice"),
        (b'{"tags": {"user": "a", "user": "b"}}', "'user' stands twice"),
        (b'{"a": "\xff"}', "utf-8"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b"[" * 100_000, "depth limit"),
        (b'{"a":' * 2000 + b"1" + b"}" * 2000, "depth limit"),
        (b'{"a": ' + b"9" * 5000 + b"}", "infinity"),
    ],
)
def test_what_is_no_json_object_is_malformed(refusing: Api, body: bytes, word: str) -> None:
    problem = refused(refusing, status=400, data=body, content_type=JSON)
    assert problem["code"] == "malformed_json"
    assert word.lower() in problem["detail"].lower()


@pytest.mark.parametrize(
    "content_type", [None, "text/plain", "application/x-www-form-urlencoded", "application/xml"]
)
def test_a_body_that_is_not_said_to_be_json_is_not_read(refusing: Api, content_type: str | None) -> None:
    problem = refused(refusing, status=415, data=b"{}", content_type=content_type)
    assert problem["code"] == "unsupported_media_type"


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "application/merge-patch+json"])
def test_json_by_another_name_is_read(refusing: Api, content_type: str) -> None:
    assert refused(refusing, status=422, data=b"{}", content_type=content_type)["code"] == "invalid_fields"


def test_a_charset_that_json_does_not_have_is_refused(refusing: Api) -> None:
    refused(refusing, status=415, data=b"{}", content_type="application/json; charset=utf-16")


def test_a_body_beyond_the_bound_is_not_read(refusing: Api) -> None:
    body = b'{"a": "' + b"x" * MAX_BODY + b'"}'
    assert refused(refusing, status=413, data=body, content_type=JSON)["code"] == "body_too_large"


@pytest.mark.parametrize("accept", ["text/html", "image/png", "text/event-stream"])
def test_a_client_that_takes_no_json_is_told_so(refusing: Api, accept: str) -> None:
    problem = refused(refusing, "/nodes", "GET", status=406, headers={"Accept": accept})
    assert problem["code"] == "not_acceptable"


@pytest.mark.parametrize("path", ["/nowhere", "/nodes/", "/nodes/a/b/c", "//nodes", "/applications/x/steal"])
def test_an_unknown_path_is_404(refusing: Api, path: str) -> None:
    assert refused(refusing, path, "GET", status=404)["code"] == "not_found"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/nodes", {"GET", "HEAD"}),
        ("PATCH", "/nodes/a", {"GET", "HEAD", "PUT", "DELETE"}),
        ("GET", "/batch", {"POST"}),
        ("OPTIONS", "/batch", {"POST"}),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(
    refusing: Api, method: str, path: str, allowed: set[str]
) -> None:
    assert refused(refusing, path, method, status=405)["code"] == "method_not_allowed"
    assert set(refusing.send(method, path).headers["Allow"].split(", ")) == allowed


@pytest.mark.parametrize("key", ["", "x" * 257, "a\x7fb"])
def test_an_idempotency_key_that_cannot_be_is_refused(refusing: Api, key: str) -> None:
    body = {"tags": {"node": "h0"}, "resource": {"memory": 1}}
    problem = refused(refusing, status=422, json=body, headers={"Idempotency-Key": key})
    assert list(problem["errors"]) == ["Idempotency-Key"]


class TestWhenTheLedgerCannotAnswer:
    @pytest.mark.parametrize(
        ("error", "code", "status"),
        [
            (LedgerUnavailableError("gone", retry_after=7), "unavailable", 503),
            (OutcomeUnknownError(), "outcome_unknown", 503),
            (LedgerClosedError(), "closing", 503),
            (OperationalError("", {}, Exception("gone")), "unavailable", 503),
            (RuntimeError("a secret of the inside"), "internal", 500),
        ],
    )
    def test_it_is_our_fault_and_says_when_to_come_back(
        self, monkeypatch: pytest.MonkeyPatch, refusing: Api, error: Exception, code: str, status: int
    ) -> None:
        monkeypatch.setattr(Nodes, "heartbeat", Mock(side_effect=error))
        answer = refusing.send("POST", "/nodes/h0/heartbeat")
        problem = answer.get_json()
        assert (answer.status_code, problem["code"]) == (status, code)
        assert "secret" not in answer.get_data(as_text=True)
        assert ("Retry-After" in answer.headers) == (status == 503)


def test_every_answer_carries_the_id_of_its_request(refusing: Api) -> None:
    assert (
        refusing.send("GET", "/nodes", headers={"X-Request-Id": "abc-1"}).headers["X-Request-Id"] == "abc-1"
    )
    made = [refusing.send("GET", "/nowhere", headers={"X-Request-Id": "a b"}) for _ in range(2)]
    assert len({answer.headers["X-Request-Id"] for answer in made}) == 2


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=10), below, max_size=4),
    max_leaves=12,
)
_names = st.sampled_from(
    [
        "tags",
        "resource",
        "id",
        "placement",
        "total",
        "application",
        "op",
        "operations",
        "atomic",
        "reason",
        "devices",
    ]
)
_paths = st.sampled_from(
    [
        ("POST", "/applications"),
        ("POST", "/applications/explain"),
        ("POST", "/batch"),
        ("PUT", "/nodes/fuzz"),
        ("PUT", "/engines/fuzz"),
        ("PUT", "/limits"),
        ("POST", "/nodes/fuzz/drain"),
        ("POST", "/applications/5ab3f2a0-1c2d-4e5f-8a9b-0c1d2e3f4a5b/use"),
    ]
)


@given(asked=_paths, body=st.dictionaries(_names, _json, max_size=5))
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_body_makes_the_service_fail(shared_ledger: Ledger, asked: tuple[str, str], body: Json) -> None:
    api = make_api(shared_ledger)
    text = json.dumps(body, allow_nan=True).encode()
    answer = api.send(*asked, data=text, content_type=JSON)
    assert answer.status_code < 500, (asked, body, answer.get_data(as_text=True))
    if answer.status_code >= 400:
        assert answer.content_type == "application/problem+json"
