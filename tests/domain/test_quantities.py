"""Quantity texts and Linkis size texts: what they mean, and what is refused."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.amounts import INT64_MAX
from rm_service.domain.linkis_sizes import format_linkis_size, parse_linkis_size
from rm_service.domain.quantities import QuantityError, format_quantity, parse_quantity, read_quantity

KI, MI, GI, TI = 2**10, 2**20, 2**30, 2**40
amounts = st.integers(0, INT64_MAX)
dimensions = st.sampled_from(["memory", "yarn.memory", "vcore", "k8s.vcore", "instances", "gpu", "a.b"])


@pytest.mark.parametrize(
    ("value", "dimension", "expected"),
    [
        (0, "memory", 0),
        (INT64_MAX, "memory", INT64_MAX),
        (1500, "vcore", 1500),
        ("0", "memory", 0),
        ("8Gi", "memory", 8 * GI),
        ("1.5Gi", "memory", 1536 * MI),
        (".5Gi", "memory", 512 * MI),
        ("1.G", "memory", 10**9),
        ("10G", "memory", 10**10),
        ("10k", "memory", 10_000),
        ("007Ki", "memory", 7 * KI),
        ("1E", "memory", 10**18),
        ("1Ei", "memory", 2**60),
        ("12e5", "memory", 1_200_000),
        ("12E+5", "memory", 1_200_000),
        ("1200e-2", "memory", 12),
        ("2000m", "memory", 2),
        ("9223372036854775807", "memory", INT64_MAX),
        ("500m", "vcore", 500),
        ("2", "vcore", 2000),
        ("0.001", "vcore", 1),
        ("1.25", "yarn.vcore", 1250),
        ("2k", "vcore", 2_000_000),
        ("3", "instances", 3),
        ("2k", "gpu", 2000),
        ("1Ki", "apps", 1024),
    ],
)
def test_amount_in_base_units(value: object, dimension: str, expected: int) -> None:
    assert parse_quantity(value, dimension) == expected


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        (" 1", 0),
        ("1 ", 1),
        ("1 Gi", 1),
        ("1\n", 1),
        ("-1", 0),
        ("+1", 0),
        (".", 1),
        ("Gi", 0),
        ("1K", 1),
        ("1gi", 1),
        ("1GiB", 1),
        ("1.2.3", 3),
        ("1_000", 1),
        ("0x10", 1),
        ("١٢", 0),
        ("1٢", 1),
        ("1e", 1),
        ("1e+", 1),
        ("1e1.5", 1),
        ("1E3E", 1),
        ("NaN", 0),
        ("inf", 0),
        ("1e65", 2),
        ("1e1000000", 2),
        ("1e-1000000", 2),
        ("1" * 65, 64),
        ("9" * 10_000_000, 64),
        ("1e" + "9" * 10_000_000, 64),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_text_that_is_no_quantity_is_refused_with_the_position(text: str, position: int) -> None:
    with pytest.raises(QuantityError) as refusal:
        parse_quantity(text, "memory")
    assert refusal.value.position == position
    assert f"position {position}: {refusal.value.reason}" in str(refusal.value)
    assert len(str(refusal.value)) < 250


@pytest.mark.parametrize("value", [True, False, 1.0, float("nan"), None, [1], {"a": 1}, b"1"])
def test_only_integers_and_texts_are_amounts(value: object) -> None:
    with pytest.raises(QuantityError, match="must be an integer or a text"):
        parse_quantity(value, "memory")


@pytest.mark.parametrize("value", [-1, -(2**63), -(10**5000)], ids=["small", "64 bits", "giant"])
def test_negative_integer_is_refused(value: int) -> None:
    with pytest.raises(QuantityError, match="negative"):
        parse_quantity(value, "memory")


@pytest.mark.parametrize(
    ("value", "dimension"),
    [
        (2**63, "memory"),
        (10**5000, "memory"),
        ("9223372036854775808", "memory"),
        ("8Ei", "memory"),
        ("10E", "memory"),
        ("1e64", "memory"),
        ("9223372036854775.808", "vcore"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, str) else "integer",
)
def test_more_than_64_bits_is_refused(value: object, dimension: str) -> None:
    with pytest.raises(QuantityError, match="more than 2\\^63-1"):
        parse_quantity(value, dimension)


@pytest.mark.parametrize(
    ("text", "dimension", "unit"),
    [
        ("0.5", "memory", "bytes"),
        ("1m", "memory", "bytes"),
        ("0.0001Ki", "memory", "bytes"),
        ("1e-64", "memory", "bytes"),
        ("0.0005", "vcore", "milli-cores"),
        ("1u", "k8s.vcore", "milli-cores"),
        ("1.5", "instances", "instances"),
        ("500m", "gpu", "gpu"),
    ],
)
def test_nothing_is_rounded(text: str, dimension: str, unit: str) -> None:
    with pytest.raises(QuantityError, match=f"is not a whole number of {unit}"):
        parse_quantity(text, dimension)


@given(
    st.integers(0, 10**12), st.integers(0, 10**6 - 1), st.sampled_from(["n", "m", "", "k", "Ki", "e3", "e-3"])
)
def test_value_is_exact(whole: int, millionths: int, suffix: str) -> None:
    powers = {
        "n": Fraction(1, 10**9),
        "m": Fraction(1, 1000),
        "": Fraction(1),
        "k": Fraction(1000),
        "Ki": Fraction(1024),
        "e3": Fraction(1000),
        "e-3": Fraction(1, 1000),
    }
    expected = (whole + Fraction(millionths, 10**6)) * powers[suffix]
    assert read_quantity(f"{whole}.{millionths:06}{suffix}") == expected


@given(st.text(max_size=80) | st.text("0123456789.eE+-kKMGi", max_size=8))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        amount = parse_quantity(text, "memory")
    except QuantityError:
        return
    assert 0 <= amount <= INT64_MAX


@pytest.mark.parametrize(
    ("dimension", "amount", "text"),
    [
        ("memory", 2147483648, "2Gi"),
        ("memory", 0, "0"),
        ("memory", 1, "1"),
        ("memory", 1000, "1k"),
        ("memory", 1024, "1Ki"),
        ("memory", 10**10, "10G"),
        ("memory", 1536 * MI, "1536Mi"),
        ("memory", -2 * GI, "-2Gi"),
        ("yarn.memory", GI, "1Gi"),
        ("vcore", 500, "500m"),
        ("vcore", 2000, "2"),
        ("vcore", -500, "-500m"),
        ("vcore", 0, "0"),
        ("k8s.vcore", 1500, "1500m"),
        ("instances", 1024, "1024"),
    ],
)
def test_text_for_people(dimension: str, amount: int, text: str) -> None:
    assert format_quantity(dimension, amount) == text


@given(dimensions, amounts)
def test_formatted_amount_reads_back(dimension: str, amount: int) -> None:
    assert parse_quantity(format_quantity(dimension, amount), dimension) == amount


# The rows of the reference's own test of its size texts (reference: ByteTimeUtilsTest), by unit.
SIZE_UNITS = {
    1: ("", "b", "B"),
    KI: ("k", "K", "kb", "KB", "kB", "Kb"),
    MI: ("m", "M", "mb", "MB", "mB", "Mb"),
    GI: ("g", "G", "gb", "GB", "gB", "Gb"),
    TI: ("t", "T", "tb", "TB", "tB", "Tb"),
    1024 * TI: ("p", "P", "pb", "PB", "pB", "Pb"),
}


@pytest.mark.parametrize(("unit", "suffixes"), SIZE_UNITS.items())
def test_size_units_are_powers_of_1024_in_any_case(unit: int, suffixes: tuple[str, ...]) -> None:
    assert {parse_linkis_size(f"1{suffix}") for suffix in suffixes} == {unit}
    assert {parse_linkis_size(f"3 {suffix}") for suffix in suffixes if suffix} <= {3 * unit}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("10G", 10737418240),
        ("10 GB", 10737418240),
        ("1.5g", 1610612736),
        ("1.555g", 1664299827),
        ("1.15k", 1177),
        ("1.5", 1),
        ("1024.0 MB", GI),
        ("0", 0),
    ],
)
def test_size_in_bytes(text: str, size: int) -> None:
    assert parse_linkis_size(text) == size


@pytest.mark.parametrize(
    "text",
    [
        "-1g",
        "",
        "10gib",
        "10 ",
        " 10",
        "10  g",
        "1A",
        "1a",
        "1c",
        "1C",
        "1.g",
        ".5g",
        "1e3",
        "8192p",
        "9" * 100,
    ],
)
def test_text_that_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_linkis_size(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0.0 B"),
        (1024, "1024.0 B"),
        (2047, "2047.0 B"),
        (2048, "2.0 KB"),
        (GI, "1024.0 MB"),
        (2 * GI - 1, "2048.0 MB"),
        (2 * GI, "2.0 GB"),
        (20 * GI, "20.0 GB"),
        (450 * GI, "450.0 GB"),
        (-2 * GI, "-2.0 GB"),
        (5000 * TI, "5000.0 TB"),
        (2 * KI + KI // 4, "2.3 KB"),
    ],
)
def test_size_text_for_people(size: int, text: str) -> None:
    assert format_linkis_size(size) == text


@given(st.integers(0, 2**62))
def test_size_text_reads_back_within_a_twentieth_of_its_unit(size: int) -> None:
    text = format_linkis_size(size)
    unit = parse_linkis_size(f"1 {text.partition(' ')[2]}")
    assert abs(parse_linkis_size(text) - size) <= unit / 20 + 1
