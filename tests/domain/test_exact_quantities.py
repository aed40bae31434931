"""Quantities as Kubernetes reads, compares and writes them, but for what it reads by accident."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.exact_quantities import (
    ExactQuantity,
    Family,
    format_milli,
    read_exact_quantity,
    write_exact_quantity,
)
from rm_service.domain.quantities import QuantityError

SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"]
BINARY_SUFFIXES = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
EXPONENTS = ["e3", "E5", "e-2", "e+7", "e0", "e12", "e-9"]

numbers = st.from_regex(r"[0-9]{1,12}(\.[0-9]{0,8})?|\.[0-9]{1,8}", fullmatch=True)
quantities = st.tuples(
    st.sampled_from(["", "+", "-"]), numbers, st.sampled_from(SUFFIXES + BINARY_SUFFIXES + EXPONENTS)
).map("".join)

# What the package k8s.io/apimachinery/pkg/api/resource, v0.34, writes for what it has read.
WRITTEN_BY_KUBERNETES = [
    ("0", "0"),
    ("0Ki", "0"),
    ("-0", "0"),
    ("0e3", "0"),
    ("+1", "1"),
    ("1.", "1"),
    (".5", "500m"),
    ("1.5", "1500m"),
    ("1500m", "1500m"),
    ("0.0015", "1500u"),
    ("007Ki", "7Ki"),
    ("1.G", "1G"),
    ("100.035k", "100035"),
    ("1000", "1k"),
    ("1000M", "1G"),
    ("1024", "1024"),
    ("1024Mi", "1Gi"),
    ("1.5Gi", "1536Mi"),
    ("-9.5Gi", "-9728Mi"),
    ("-1.5", "-1500m"),
    ("0.5Ki", "512"),
    ("1023Ki", "1023Ki"),
    ("1024Ki", "1Mi"),
    ("0.50048828125Ki", "512500m"),
    ("1.00048828125Ki", "1024500m"),
    ("12e5", "1200e3"),
    ("12E5", "1200e3"),
    ("1e0", "1"),
    ("1e3", "1e3"),
    ("1E3", "1e3"),
    ("1e-2", "10e-3"),
    ("1.5e0", "1500e-3"),
    ("1e30", "1e30"),
    ("30G", "30G"),
    ("12E", "12E"),
    ("1e-10", "1e-9"),
    ("0.1n", "1n"),
    ("-0.1n", "-1n"),
    ("1.1n", "2n"),
    ("0.0000000001", "1n"),
    (".000000000001Ki", "2n"),
    ("7Ei", "7Ei"),
    ("9Ei", "9223372036854775807"),
    ("-9Ei", "-9223372036854775807"),
    ("123456789.123456789", "123456789123456789n"),
    ("1000n", "1u"),
    ("999999n", "999999n"),
]


@pytest.mark.parametrize(("text", "canonical"), WRITTEN_BY_KUBERNETES)
def test_a_quantity_is_written_as_kubernetes_writes_it(text: str, canonical: str) -> None:
    assert str(read_exact_quantity(text)) == canonical


@pytest.mark.parametrize(("text", "canonical"), [("1000E", "1000E"), ("31000E", "31000E"), ("1e21", "1e21")])
def test_beyond_exa_the_suffix_stays_where_kubernetes_loses_it(text: str, canonical: str) -> None:
    assert str(read_exact_quantity(text)) == canonical


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ("30G", "30Gi"),
        ("100Gi", "10000T"),
        ("999M", "1G"),
        ("-1", "0"),
        ("-2", "-1"),
        ("1n", "1u"),
        ("1E", "1Ei"),
        ("9223372036854775806", "9223372036854775807"),
        ("9007199254740992", "9007199254740993"),
    ],
)
def test_comparison_is_exact_across_families(less: str, more: str) -> None:
    assert read_exact_quantity(less).value < read_exact_quantity(more).value


@pytest.mark.parametrize(
    "texts", [("1G", "1000M", "1e9", "1000000000"), ("1Ki", "1024", "1.024k"), ("0", "-0", "0Gi", "0e5")]
)
def test_texts_of_one_value_are_equal_quantities(texts: tuple[str, ...]) -> None:
    assert len({read_exact_quantity(text) for text in texts}) == 1


@pytest.mark.parametrize(
    ("text", "family"),
    [("1", Family.DECIMAL), ("1E", Family.DECIMAL), ("1Ki", Family.BINARY), ("1E1", Family.EXPONENT)],
)
def test_the_family_is_that_of_the_suffix(text: str, family: Family) -> None:
    assert read_exact_quantity(text).family is family


# The first block is read by Kubernetes, as something that nobody meant.
@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("+", 1),
        ("-", 1),
        (".", 1),
        ("-.", 2),
        ("k", 0),
        ("Ki", 0),
        ("e3", 0),
        ("+Mi", 1),
        ("1e4294967296", 2),
        ("1e1000000", 2),
        ("1e-1000000", 2),
        ("", 0),
        ("40GBPS", 2),
        ("80GB", 2),
        ("1GiB", 1),
        ("1K", 1),
        ("-1K", 2),
        ("--1", 1),
        ("+-1", 1),
        ("1 G", 1),
        (" 1", 0),
        ("1\n", 1),
        ("1e", 1),
        ("1e+", 1),
        ("1_0", 1),
        ("1.2.3", 3),
        ("٣", 0),
        ("1٣", 1),
        ("\uff11", 0),
        ("1e³", 1),
        ("," * 1_000_000, 64),
        ("9" * 1_000_000, 64),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_text_that_is_no_quantity_is_refused_with_the_position(text: str, position: int) -> None:
    with pytest.raises(QuantityError) as refusal:
        read_exact_quantity(text)
    assert refusal.value.position == position
    assert refusal.value.text == text[:64]


@pytest.mark.parametrize("text", ["1e48", "-1e48", "1000000000000000000000000000000E", "9" * 63 + "E"])
def test_a_value_of_more_than_48_digits_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match=r"not less than 10\^48"):
        read_exact_quantity(text)


@pytest.mark.parametrize("text", ["9" * 48, "-" + "9" * 48 + ".999999999", "9" * 48 + "e0", "9" * 41 + "e7"])
def test_the_largest_values_can_be_written_and_read_again(text: str) -> None:
    quantity = read_exact_quantity(text)
    assert read_exact_quantity(str(quantity)) == quantity


@given(quantities)
def test_the_canonical_text_reads_back_and_is_canonical(text: str) -> None:
    quantity = read_exact_quantity(text)
    canonical = str(quantity)
    assert read_exact_quantity(canonical) == quantity
    assert str(read_exact_quantity(canonical)) == canonical
    assert "." not in canonical


@given(st.integers(-(10**60), 10**60), st.sampled_from(Family))
def test_every_whole_number_of_billionths_reads_back(nanos: int, family: Family) -> None:
    quantity = ExactQuantity(Fraction(nanos, 10**9), family)
    if abs(quantity.value) < 10**48:
        assert read_exact_quantity(write_exact_quantity(quantity)) == quantity


@given(st.integers(0, 10**9), st.integers(0, 10**12))
def test_what_is_finer_than_a_billionth_is_rounded_away_from_zero(whole: int, trillionths: int) -> None:
    exact = whole + Fraction(trillionths, 10**12)
    read = read_exact_quantity(f"{whole + trillionths // 10**12}.{trillionths % 10**12:012}").value
    assert exact <= read < exact + Fraction(1, 10**9)
    assert (read * 10**9).denominator == 1


@given(st.integers(-(10**12), 10**12), st.sampled_from(SUFFIXES[3:]))
def test_the_value_is_the_number_times_the_suffix(number: int, suffix: str) -> None:
    factor = 1000 ** (SUFFIXES.index(suffix) - 3)
    assert read_exact_quantity(f"{number}{suffix}").value == number * factor


@given(st.text(max_size=80) | st.text("0123456789.eE+-kKMGi", max_size=8))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        quantity = read_exact_quantity(text)
    except QuantityError as error:
        assert 0 <= error.position <= len(text)  # noqa: PT017 - either way is fine
    else:
        assert read_exact_quantity(str(quantity)) == quantity


@pytest.mark.parametrize(
    ("milli", "text"),
    [(0, "0"), (3000, "3"), (2500, "2500m"), (1, "1m"), (10_000, "10"), (3_000_000, "3k"), (-500, "-500m")],
)
def test_thousandths_are_written_as_a_canonical_quantity(milli: int, text: str) -> None:
    assert format_milli(milli) == text


@given(st.integers(-(2**63), 2**63))
def test_thousandths_read_back(milli: int) -> None:
    assert read_exact_quantity(format_milli(milli)).value == Fraction(milli, 1000)
