"""Attributes of devices: of which kind a value is, what is refused, and the name of a set of them."""

import json
import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.device_attributes import (
    Attributes,
    AttributeValueError,
    Kind,
    read_attributes,
    signature_of,
    write_attributes,
)
from rm_service.domain.measures import Dimension, Measure
from rm_service.domain.versions import Version

PATH = "devices[0].attributes"

keys = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_./-]{0,9}", fullmatch=True)
texts = (
    st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=20)
    | st.from_regex(r"[0-9]{1,6}(\.[0-9]{1,3}){0,3}(G|Mi|e3|GB|Gbps|m|-rc1)?", fullmatch=True)
    | st.sampled_from(["T4", "A100", "true", "40GBPS", "535.104.05", ""])
)
quantities = st.from_regex(r"-?[0-9]{1,6}(\.[0-9]{1,3})?(G|Mi|e3|m)?", fullmatch=True)
measures = st.from_regex(r"[0-9]{1,6}(GB|Gbps| W|MiB/s)", fullmatch=True)
versions = st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){0,3}(-[a-z]{1,3})?(\+[a-z]{1,3})?", fullmatch=True)
values = (
    texts
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | quantities.map(lambda text: {"quantity": text})
    | measures.map(lambda text: {"measure": text})
    | versions.map(lambda text: {"version": text})
    | texts.map(lambda text: {"string": text})
    | st.integers(0, 9).map(lambda number: {"int": number})
    | st.booleans().map(lambda truth: {"bool": truth})
)
documents = st.dictionaries(keys, values, max_size=8)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=70),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=70), inner, max_size=3),
    max_leaves=10,
)


def read(document: object) -> Attributes:
    return read_attributes(document, PATH)


@pytest.mark.parametrize(
    ("document", "kind", "exact", "text"),
    [
        (True, Kind.BOOL, True, "true"),
        (False, Kind.BOOL, False, "false"),
        (0, Kind.INT, 0, "0"),
        (-5, Kind.INT, -5, "-5"),
        (2**63 - 1, Kind.INT, 2**63 - 1, "9223372036854775807"),
        ("30G", Kind.QUANTITY, Fraction(30 * 10**9), "30G"),
        ("1000M", Kind.QUANTITY, Fraction(10**9), "1G"),
        ("5", Kind.QUANTITY, Fraction(5), "5"),
        ("1.5", Kind.QUANTITY, Fraction(3, 2), "1500m"),
        ("535.104", Kind.QUANTITY, Fraction(535104, 1000), "535104m"),
        ("535.104.05", Kind.VERSION, Version((535, 104, 5)), "535.104.05"),
        ("1.2.0-rc1", Kind.VERSION, Version((1, 2), ("rc1",)), "1.2.0-rc1"),
        ("1-rc1", Kind.STRING, "1-rc1", "1-rc1"),
        ("40GBPS", Kind.MEASURE, Measure(Dimension.RATE, Fraction(40 * 10**9)), "40GBPS"),
        ("30 GB", Kind.MEASURE, Measure(Dimension.INFORMATION, Fraction(240 * 10**9)), "30 GB"),
        ("T4", Kind.STRING, "T4", "T4"),
        ("nvidia-gpu", Kind.STRING, "nvidia-gpu", "nvidia-gpu"),
        ("true", Kind.STRING, "true", "true"),
        ("", Kind.STRING, "", ""),
        ("1K", Kind.STRING, "1K", "1K"),
        ("80gb", Kind.STRING, "80gb", "80gb"),
        ({"quantity": "30G"}, Kind.QUANTITY, Fraction(30 * 10**9), "30G"),
        ({"measure": "40GBPS"}, Kind.MEASURE, Measure(Dimension.RATE, Fraction(40 * 10**9)), "40GBPS"),
        ({"version": "1.2"}, Kind.VERSION, Version((1, 2)), "1.2"),
        ({"string": "30G"}, Kind.STRING, "30G", "30G"),
        ({"int": 5}, Kind.INT, 5, "5"),
        ({"bool": True}, Kind.BOOL, True, "true"),
    ],
)
def test_a_value_is_what_it_says_or_looks_like(
    document: object, kind: Kind, exact: object, text: str
) -> None:
    value = read({"key": document})["key"]
    assert (value.kind, value.exact, value.text) == (kind, exact, text)


@pytest.mark.parametrize(
    ("document", "field", "position", "reason"),
    [
        (None, PATH, 0, "must be an object"),
        ([], PATH, 0, "must be an object"),
        ({f"k{number}": 1 for number in range(33)}, PATH, 0, "at most 32"),
        ({"": 1}, f"{PATH}.", 0, "the key needs"),
        ({"_a": 1}, f"{PATH}._a", 0, "the key needs"),
        ({"ä": 1}, f"{PATH}.ä", 0, "the key needs"),
        ({"a b": 1}, f"{PATH}.a b", 0, "the key needs"),
        ({"\ud800": 1}, f"{PATH}.\\ud800", 0, "the key needs"),
        ({"k" * 64: 1}, f"{PATH}.{'k' * 63}", 0, "longer than 63"),
        ({7: 1}, f"{PATH}.int", 0, "not a text"),
        ({"k": None}, f"{PATH}.k", 0, "must be a text, an integer"),
        ({"k": 1.5}, f"{PATH}.k", 0, "as a text"),
        ({"k": ["a"]}, f"{PATH}.k", 0, "must be a text, an integer"),
        ({"k": 2**63}, f"{PATH}.k", 0, "64 bits"),
        ({"k": -(10**4000)}, f"{PATH}.k", 0, "64 bits"),
        ({"k": "a" * 65}, f"{PATH}.k", 0, "longer than 64"),
        ({"k": "9" * 1_000_000}, f"{PATH}.k", 0, "longer than 64"),
        ({"k": "a\nb"}, f"{PATH}.k", 0, "control character"),
        ({"k": "\ud800"}, f"{PATH}.k", 0, "control character"),
        ({"k": {}}, f"{PATH}.k", 0, "names one kind"),
        ({"k": {"int": 1, "bool": True}}, f"{PATH}.k", 0, "names one kind"),
        ({"k": {"float": 1}}, f"{PATH}.k", 0, "unknown kind"),
        ({"k": {7: 1}}, f"{PATH}.k", 0, "unknown kind"),
        ({"k": {"quantity": "1K"}}, f"{PATH}.k.quantity", 1, "kilo is k"),
        ({"k": {"quantity": "1e1000000"}}, f"{PATH}.k.quantity", 2, "exponent is beyond"),
        ({"k": {"quantity": 5}}, f"{PATH}.k.quantity", 0, "must be a text"),
        ({"k": {"measure": "30gb"}}, f"{PATH}.k.measure", 2, "leaves open"),
        ({"k": {"version": "1.2.x"}}, f"{PATH}.k.version", 3, "a number is expected"),
        ({"k": {"string": 5}}, f"{PATH}.k.string", 0, "must be a text"),
        ({"k": {"int": "5"}}, f"{PATH}.k.int", 0, "must be an integer"),
        ({"k": {"int": True}}, f"{PATH}.k.int", 0, "must be an integer"),
        ({"k": {"bool": 1}}, f"{PATH}.k.bool", 0, "must be true or false"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_is_no_attribute_is_refused_with_field_and_reason(
    document: object, field: str, position: int, reason: str
) -> None:
    with pytest.raises(AttributeValueError, match=reason) as refusal:
        read(document)
    assert (refusal.value.field, refusal.value.position) == (field, position)
    str(refusal.value).encode()


def test_a_device_has_up_to_32_attributes_with_keys_of_63_and_texts_of_64_characters() -> None:
    document = {f"{number:02}{'k' * 61}": "v" * 64 for number in range(32)}
    assert write_attributes(read(document)) == document


def test_keys_compare_exactly() -> None:
    assert set(read({"Kind": "a", "kind": "b"})) == {"Kind", "kind"}


@pytest.mark.parametrize(
    ("document", "written"),
    [
        ({"string": "30G"}, {"string": "30G"}),
        ({"string": "T4"}, "T4"),
        ({"version": "1.2"}, {"version": "1.2"}),
        ({"version": "1.2.3"}, "1.2.3"),
        ({"quantity": "1000M"}, "1G"),
        ({"measure": "40GBPS"}, "40GBPS"),
        ({"int": 5}, 5),
        ({"bool": False}, False),
        ("5", "5"),
        ("true", "true"),
    ],
)
def test_a_value_is_written_with_its_kind_only_where_it_would_be_taken_for_another(
    document: object, written: object
) -> None:
    assert write_attributes(read({"k": document})) == {"k": written}


@given(documents)
def test_written_attributes_read_back_equal(document: dict[str, Any]) -> None:
    attributes = read(document)
    written = json.loads(json.dumps(write_attributes(attributes)))
    assert read(written) == attributes
    assert write_attributes(read(written)) == written
    assert signature_of(read(written)) == signature_of(attributes)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"m": "1G"}, {"m": "1000M"}),
        ({"m": "1G"}, {"m": 10**9}),
        ({"m": "40GBPS"}, {"m": "5 GB/s"}),
        ({"m": "1.2.0"}, {"m": {"version": "1.2"}}),
        ({"m": "x"}, {"m": {"string": "x"}}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ],
)
def test_attributes_of_one_meaning_have_one_signature(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert signature_of(read(one)) == signature_of(read(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"m": "1G"}, {"m": "1Gi"}),
        ({"m": "1G"}, {"m": {"string": "1G"}}),
        ({"m": "1G"}, {"M": "1G"}),
        ({"m": "8b"}, {"m": "8bps"}),
        ({"m": 1}, {"m": True}),
        ({"m": True}, {"m": "true"}),
        ({"m": "1.2.3"}, {"m": "1.2.3-rc1"}),
        ({"m": "a"}, {"m": "A"}),
        ({}, {"m": ""}),
        ({"a": "b,c"}, {"a": "b", "c": ""}),
    ],
)
def test_attributes_of_other_meaning_have_other_signatures(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert signature_of(read(one)) != signature_of(read(other))


@pytest.mark.parametrize(
    ("kind", "slug"),
    [
        ("nvidia-gpu", "nvidia-gpu"),
        ("NVIDIA Tesla_T4", "nvidia-tesla-t4"),
        ("--", "device"),
        ("", "device"),
        ("x" * 40, "x" * 24),
        ("abcdefghijklmnopqrstuvw-xyz", "abcdefghijklmnopqrstuvw"),
        ("Gerät", "ger-t"),
        (7, "7"),
    ],
)
def test_a_signature_begins_with_the_kind_of_the_device(kind: object, slug: str) -> None:
    assert re.fullmatch(f"{slug}-[0-9a-f]{{12}}", signature_of(read({"Kind": kind})))


def test_a_signature_never_changes() -> None:
    attributes = read({"Kind": "nvidia-gpu", "memory": "30G", "speed": "40GBPS", "driver": "535.104.05"})
    assert signature_of(attributes) == "nvidia-gpu-8f1128e3a296"
    assert signature_of({}) == "device-44136fa355b3"


@given(documents)
def test_a_signature_is_a_short_name(document: dict[str, Any]) -> None:
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?-[0-9a-f]{12}", signature_of(read(document)))


@given(anything | st.dictionaries(keys, anything, max_size=3))
def test_any_document_is_read_or_refused(document: object) -> None:
    try:
        attributes = read(document)
    except AttributeValueError as error:
        assert error.field.startswith(PATH)  # noqa: PT017 - either way is fine
    else:
        assert read(write_attributes(attributes)) == attributes
