"""What cannot be read or cannot be: each refusal is a Status that says why, and nothing is created by it."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.facades.kubernetes.answers import refusal
from rm_service.facades.kubernetes.body_text import MAX_YAML_BYTES, Text, read_text
from rm_service.facades.kubernetes.parameters import Parameters, read_parameters
from rm_service.facades.kubernetes.reading import check_class, read_deletion
from rm_service.facades.kubernetes.statuses import StatusError
from tests.facades.kubernetes.served import CLASSES, MAX_BODY, Served, class_document

YAML = "application/yaml"


@pytest.fixture
def refusing(served: Served) -> Iterator[Served]:
    """At the end nothing has changed."""
    before = served.version()
    yield served
    assert served.version() == before


def causes(status: Any) -> dict[str, tuple[str, str]]:
    return {each["field"]: (each["reason"], each["message"]) for each in status["details"]["causes"]}


class TestFaults:
    def test_every_fault_of_a_class_is_a_cause(self, refusing: Served) -> None:
        document = class_document(
            "Bad_Name",
            ("memory", "Bigger", ["30G"]),
            ("memory", "GtEq", ["30G", "1"]),
            ("", "Exists", []),
            labels={"a b": "c"},
            finalizers=["x/y"],
        )
        status = refusing.refused("POST", CLASSES, document)
        assert (status["code"], status["reason"]) == (422, "Invalid")
        assert status["details"]["kind"] == "ResourceClass"
        assert status["message"].startswith('ResourceClass.resourceclass.rm "Bad_Name" is invalid: [')
        found = causes(status)
        path = "spec.resourceSelector[0].matchExpressions"
        assert {field: reason for field, (reason, _) in found.items()} == {
            "metadata.name": "FieldValueInvalid",
            "metadata.finalizers": "FieldValueForbidden",
            "metadata.labels": "FieldValueInvalid",
            f"{path}[0].operator": "FieldValueInvalid",
            f"{path}[1].values": "FieldValueInvalid",
            f"{path}[2].key": "FieldValueRequired",
        }
        assert found[f"{path}[0].operator"][1].startswith(
            'Invalid value: "Bigger": is unknown, must be one of: In'
        )

    def test_one_fault_is_told_without_brackets(self, refusing: Served) -> None:
        status = refusing.refused("POST", CLASSES, {"metadata": {}})
        assert (
            status["message"] == 'ResourceClass.resourceclass.rm "" is invalid: metadata.name: Required value'
        )

    def test_the_name_of_an_amount_is_no_name_of_a_class(self, refusing: Served) -> None:
        status = refusing.refused("POST", CLASSES, class_document("memory"))
        assert status["code"] == 422
        [(reason, message)] = [causes(status)["metadata.name"]]
        assert reason == "FieldValueInvalid"
        assert message.startswith('Invalid value: "memory": is the name of an amount')

    @pytest.mark.parametrize(
        ("metadata", "field"),
        [
            ({"labels": {"team": "-a"}}, "metadata.labels"),
            ({"labels": {"team": "a" * 64}}, "metadata.labels"),
            ({"labels": {"/team": "a"}}, "metadata.labels"),
            ({"labels": {"A_b/team": "a"}}, "metadata.labels"),
            ({"labels": {f"k{number}": "" for number in range(257)}}, "metadata.labels"),
            ({"annotations": {"": "a"}}, "metadata.annotations"),
            ({"annotations": {"a": "\0"}}, "metadata.annotations"),
            ({"annotations": {"a": "\ud800"}}, "metadata.annotations"),
            ({"annotations": {"a": "x" * 2**18}}, "metadata.annotations"),
            ({"ownerReferences": [{}]}, "metadata.ownerReferences"),
            ({"name": "", "generateName": "No_"}, "metadata.name"),
            ({"name": "a" * 254}, "metadata.name"),
        ],
    )
    def test_metadata_keeps_to_the_rules_of_kubernetes(
        self, refusing: Served, metadata: Any, field: str
    ) -> None:
        document = class_document("a")
        document["metadata"] |= metadata
        assert list(causes(refusing.refused("POST", CLASSES, document))) == [field]


class TestUnknownFields:
    @pytest.fixture
    def document(self) -> Any:
        document = class_document("a")
        document["spec"]["resourceSelector"][0]["matchExpressions"][0]["value"] = "x"
        return document | {"extra": {"deep": 1}}

    def test_strictly_they_are_refused(self, refusing: Served, document: Any) -> None:
        status = refusing.refused("POST", f"{CLASSES}?fieldValidation=Strict", document)
        assert (status["code"], status["reason"]) == (400, "BadRequest")
        assert status["message"] == (
            'ResourceClass in version "v1alpha1" cannot be handled as a ResourceClass: strict decoding error:'
            ' unknown field "spec.resourceSelector[0].matchExpressions[0].value", unknown field "extra"'
        )

    @pytest.mark.parametrize("query", ["", "?fieldValidation=Warn"])
    def test_else_they_are_warned_of_and_left_out(self, served: Served, document: Any, query: str) -> None:
        reply = served.ask("POST", CLASSES + query, document, status=201)
        assert reply.warnings == (
            '299 - "unknown field \\"spec.resourceSelector[0].matchExpressions[0].value\\""',
            '299 - "unknown field \\"extra\\""',
        )
        assert reply.document["spec"] == class_document("a")["spec"]
        assert "extra" not in reply.document

    def test_or_nothing_is_said_of_them(self, served: Served, document: Any) -> None:
        assert not served.ask("POST", f"{CLASSES}?fieldValidation=Ignore", document, status=201).warnings

    @pytest.mark.parametrize(
        ("text", "headers"),
        [
            ('{"metadata": {"name": "b", "name": "a"}}', {}),
            ("metadata:\n  name: b\n  name: a\n", {"Content-Type": YAML}),
        ],
    )
    def test_fields_that_stand_twice_are_treated_alike(
        self, served: Served, text: str, headers: dict[str, str]
    ) -> None:
        strict = served.ask("POST", f"{CLASSES}?fieldValidation=Strict", text, headers=headers, status=400)
        assert 'strict decoding error: duplicate field "name"' in strict.document["message"]
        reply = served.ask("POST", CLASSES, text, headers=headers, status=201)
        assert reply.warnings == ('299 - "duplicate field \\"name\\""',)
        assert reply.document["metadata"]["name"] == "a", "the last one counts"

    def test_a_name_of_a_field_cannot_break_the_header(self, served: Served) -> None:
        reply = served.ask("POST", CLASSES, class_document("a") | {'x"\r\nSet-Cookie: ü': 1}, status=201)
        (warning,) = reply.warnings
        assert warning.isascii()
        assert "set-cookie" not in reply.headers


class TestBodies:
    @pytest.mark.parametrize(
        ("body", "content_type", "said"),
        [
            ("{", "", "cannot be read"),
            (r'{"apiVersion": "\ud800"}', "", r"the API version in the data (\ud800) does not match"),
            (r'{"kind": "\ud800"}', "", r"the kind in the data (\ud800) does not match"),
            (r'{"metadata": {"name": "a", "resourceVersion": "\ud800"}}', "", "resourceVersion"),
            ('{"metadata": {"name": NaN}}', "", "NaN is no number of JSON"),
            (b"\xff", "", "cannot be read"),
            ("[" * 100_000, "", "nested too deeply"),
            ("[]", "", "must be an object"),
            ("", "", "cannot be read"),
            ('{"metadata": []}', "", "metadata: must be an object"),
            ('{"metadata": {"name": 1}}', "", "metadata.name: must be a text"),
            ('{"metadata": {"name": "a", "labels": {"a": 1}}}', "", "must be a text"),
            ('{"apiVersion": "v1"}', "", "the API version in the data (v1) does not match"),
            ('{"kind": "Pod"}', "", "the kind in the data (Pod) does not match"),
            ("a: &x [1]\nb: *x\n", YAML, "line 2: aliases and tags are not read"),
            ("a: !!python/none x\n", YAML, "aliases and tags are not read"),
            ("--- {}\n--- {}\n", YAML, "more than one document"),
            ("[" * 65 + "]" * 65, YAML, "nested too deeply"),
            ("a: [", YAML, "cannot be read"),
            ("#" * (MAX_YAML_BYTES + 1), YAML, "YAML of more than"),
        ],
    )
    def test_what_cannot_be_read_is_a_bad_request(
        self, refusing: Served, body: str | bytes, content_type: str, said: str
    ) -> None:
        status = refusing.refused("POST", CLASSES, body, Content_Type=content_type)
        assert (status["code"], status["reason"]) == (400, "BadRequest")
        assert said in status["message"]

    def test_half_a_character_in_a_name_is_told_in_ascii(self, refusing: Served) -> None:
        status = refusing.refused("POST", CLASSES, r'{"metadata": {"name": "\ud800"}}')
        assert (status["code"], status["details"]["name"]) == (422, r"\ud800")
        assert causes(status)["metadata.name"][1].startswith(r'Invalid value: "\ud800"')

    def test_other_media_types_are_not_read(self, refusing: Served) -> None:
        for media_type in ("application/vnd.kubernetes.protobuf", "text/plain", "application/cbor"):
            status = refusing.refused("POST", CLASSES, "{}", Content_Type=media_type)
            assert (status["code"], status["reason"]) == (415, "UnsupportedMediaType")

    def test_a_body_that_is_too_long_is_a_status_too(self, refusing: Served) -> None:
        status = refusing.refused("POST", CLASSES, b"x" * (MAX_BODY + 1))
        assert (status["code"], status["reason"]) == (413, "RequestEntityTooLarge")

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            ({"kind": "Pod"}, 400),
            ([], 400),
            ({"preconditions": [1]}, 400),
            ({"preconditions": {"uid": 1}}, 400),
            ({"preconditions": {"resourceVersion": "x"}}, 400),
            ({"propagationPolicy": "Forward"}, 422),
            ({"kind": "\ud800"}, 400),
            ({"propagationPolicy": "\ud800"}, 422),
            ({"dryRun": ["\ud800"]}, 422),
            ({"preconditions": {"uid": "\ud800"}}, 409),
            ({"dryRun": ["Some"]}, 422),
        ],
    )
    def test_options_of_a_deletion_that_cannot_be(self, served: Served, body: Any, code: int) -> None:
        served.create("a")
        assert served.refused("DELETE", f"{CLASSES}/a", body)["code"] == code
        served.get(f"{CLASSES}/a")


def go_on(text: str) -> str:
    """A parameter that says where a list goes on."""
    return f"continue={base64.urlsafe_b64encode(text.encode()).decode()}"


@pytest.mark.parametrize(
    ("query", "code", "said"),
    [
        ("limit=-1", 400, "limit"),
        ("limit=1.5", 400, "limit"),
        ("continue=x", 400, "continue key is not valid"),
        ("continue=WzEsIDJd", 400, "continue key is not valid"),
        (go_on('[-5, "a"]'), 400, "continue key is not valid"),
        (go_on('[true, "a"]'), 400, "continue key is not valid"),
        (go_on("[" * 4000), 400, "continue key is not valid"),
        ("continue=%ED%A0%80", 400, "continue key is not valid"),
        ("resourceVersion=x", 400, "resourceVersion"),
        ("resourceVersion=9999999999999999999", 400, "resourceVersion"),
        ("labelSelector=a+in+(", 400, "unable to parse the label selector"),
        ("fieldSelector=spec.x%3D1", 400, 'field label not supported: "spec.x"'),
        ("fieldSelector=x", 400, "invalid field selector"),
        ("includeObject=All", 422, "includeObject"),
        ("watch=1&timeoutSeconds=soon", 400, "timeoutSeconds"),
    ],
)
def test_parameters_that_cannot_be_are_named(refusing: Served, query: str, code: int, said: str) -> None:
    status = refusing.refused("GET", f"{CLASSES}?{query}")
    assert status["code"] == code
    assert said in status["message"]


@pytest.mark.parametrize("query", ["dryRun=Some", "fieldValidation=Some"])
def test_words_that_are_none_of_those_there_are(refusing: Served, query: str) -> None:
    status = refusing.refused("POST", f"{CLASSES}?{query}", class_document("a"))
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert 'Unsupported value: "Some"' in status["message"]


TEXTS = st.text() | st.text(st.sampled_from("a\ud800\udfff"), max_size=4)
"""Also with halves of characters, which JSON can say and UTF-8 cannot."""
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(TEXTS, below, max_size=4),
    max_leaves=20,
)
FIELDS = st.sampled_from(
    [
        "apiVersion",
        "kind",
        "metadata",
        "spec",
        "name",
        "labels",
        "resourceSelector",
        "matchExpressions",
        "key",
    ]
)
CLASS_LIKE = st.recursive(
    JSON_VALUES,
    lambda below: st.dictionaries(FIELDS, below, max_size=5) | st.lists(below, max_size=3),
    max_leaves=20,
) | st.dictionaries(FIELDS, TEXTS | st.dictionaries(FIELDS, TEXTS, max_size=2), max_size=2)


def refusal_of(read: Callable[[], object]) -> StatusError | None:
    """How it refuses what it reads, which can be written; any other error fails the test."""
    error = None
    try:
        read()
    except StatusError as raised:
        error = raised
    if error is not None:
        written = json.loads(refusal(error).body)
        assert (written["status"], written["code"]) == ("Failure", error.code)
    return error


@given(CLASS_LIKE, st.sampled_from(["", "fieldValidation=Strict", "fieldValidation=Ignore"]))
def test_whatever_is_sent_is_a_class_or_a_status(document: object, query: str) -> None:
    refused = refusal_of(lambda: check_class(Text(document), read_parameters(query)))
    assert refused is None or 400 <= refused.code < 500


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode(errors="replace")))
def test_whatever_bytes_are_sent_are_a_document_or_a_status(body: bytes) -> None:
    for media_type in ("application/json", YAML):
        refused = refusal_of(partial(read_text, media_type, body))
        assert refused is None or refused.code == 400


@given(JSON_VALUES)
def test_whatever_a_deletion_says_is_read_or_refused(document: object) -> None:
    body = json.dumps(document).encode()
    refused = refusal_of(lambda: read_deletion("", body, Parameters({})))
    assert refused is None or 400 <= refused.code < 500


DELETION_LIKE = st.dictionaries(
    st.sampled_from(["kind", "propagationPolicy", "dryRun", "preconditions", "uid", "resourceVersion"]),
    TEXTS | JSON_VALUES,
    max_size=2,
)


@given(DELETION_LIKE | st.fixed_dictionaries({"preconditions": DELETION_LIKE}))
def test_whatever_the_options_of_a_deletion_hold_is_read_or_refused(document: object) -> None:
    body = json.dumps(document).encode()
    refused = refusal_of(lambda: read_deletion("", body, Parameters({})))
    assert refused is None or 400 <= refused.code < 500


READERS: Mapping[str, Callable[[Parameters], object]] = {
    "continue": lambda given: given.go_on,
    "labelSelector": lambda given: given.chosen,
    "fieldSelector": lambda given: given.chosen,
    "includeObject": lambda given: given.include,
    "dryRun": lambda given: given.dry_run,
    "limit": lambda given: given.limit,
    "resourceVersion": lambda given: given.resource_version,
}
CONTINUES = JSON_VALUES.map(lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).decode())


@given(st.sampled_from(sorted(READERS)), TEXTS | CONTINUES)
def test_whatever_a_parameter_holds_is_read_or_refused(name: str, text: str) -> None:
    refused = refusal_of(lambda: READERS[name](Parameters({name: text})))
    assert refused is None or refused.code in {400, 422}
