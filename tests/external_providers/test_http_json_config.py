"""What an http-json provider can be configured to, told when it is stored."""

from collections.abc import Mapping
from typing import Any

import pytest

from external_providers.base import ProviderConfigError, ProviderRecord
from external_providers.http_json import HttpJsonProvider

GOOD: Mapping[str, Any] = {
    "url": "http://h",
    "places": "@",
    "name": "name",
    "total": {"x": "total"},
    "used": {"x": "used"},
}


def faults_of(**changes: object) -> Mapping[str, str]:
    with pytest.raises(ProviderConfigError) as caught:
        HttpJsonProvider.parser.parse(ProviderRecord("http-json", "c1", {**GOOD, **changes}))
    return caught.value.faults


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h/",
        "h",
        "//h/",
        "http://",
        "http://h:0/",
        "http://h:x/",
        "http://h/ä",
        "http://h/a b",
        "http://[::1",
    ],
)
def test_an_address_has_to_be_one_of_http(url: str) -> None:
    assert list(faults_of(url=url)) == ["url"]


def test_credentials_belong_into_headers() -> None:
    faults = faults_of(url="http://alice:s3cret@h/")
    assert faults == {"url": "Must not hold credentials: put them into headers."}


@pytest.mark.parametrize(
    "headers",
    [
        {"A": "b\r\nC: d"},
        {"A b": "c"},
        {"": "c"},
        {"Host": "other"},
        {"A": "\u20ac"},
        {"transfer-Encoding": "c"},
    ],
)
def test_headers_have_to_be_such_that_can_be_sent(headers: dict[str, str]) -> None:
    assert list(faults_of(headers=headers)) == ["headers"]


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("a[", "No JMESPath expression: Invalid jmespath expression: Incomplete expression"),
        ("", "No JMESPath expression: Invalid JMESPath expression: cannot be empty."),
        ("nope(a)", "There is no function nope."),
        ("a[*].{x: nope(@)}", "There is no function nope."),
        ("a" * 513, "Longer than 512 characters."),
        (7, "Not a valid string."),
    ],
)
def test_an_expression_is_compiled_when_it_is_stored(expression: object, reason: str) -> None:
    assert faults_of(name=expression) == {"name": reason}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"total": {}}, "total"),
        ({"used": {"y": "used"}}, "used.y"),
        ({"total": {"x": "total", "y": "y"}}, "used.y"),
        ({"pending": {"y": "y"}}, "pending.y"),
        ({"unit": {"x": "pounds"}}, "unit.x.value"),
        ({"unit": {"x": "cores"}}, "unit.x"),
        ({"unit": {"y": "MiB"}}, "unit.y"),
        ({"ca_file": "ca.pem"}, "ca_file"),
        ({"connect_timeout_seconds": 0}, "connect_timeout_seconds"),
        (
            {"applications": {"items": "a", "id": "b", "place": "c", "allocated": {"y": "d"}}},
            "applications.allocated.y",
        ),
        ({"applications": {"items": "a", "id": "b", "place": "c"}}, "applications.allocated"),
        (
            {"applications": {"items": "a[", "id": "b", "place": "c", "allocated": {"x": "d"}}},
            "applications.items",
        ),
    ],
)
def test_a_configuration_that_cannot_be_right_is_refused(changes: dict[str, Any], field: str) -> None:
    assert field in faults_of(**changes)


def test_the_cluster_is_the_configured_one_else_the_name() -> None:
    parse = HttpJsonProvider.parser.parse
    assert parse(ProviderRecord("http-json", "c1", GOOD)).labels == {"httpCluster": "c1"}
    named = parse(ProviderRecord("http-json", "c1", {**GOOD, "cluster": "lab"}))
    assert named.labels == {"httpCluster": "lab"}
