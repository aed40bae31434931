"""Measures: numbers with units, and which spellings are clear enough."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.measures import _SPELLINGS, Dimension, Measure, MeasureError, _spellings, read_measure

INFORMATION, RATE, FREQUENCY, POWER = Dimension

numbers = st.from_regex(r"[0-9]{1,9}(\.[0-9]{0,3})?|\.[0-9]{1,3}", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "dimension", "amount"),
    [
        ("1b", INFORMATION, 1),
        ("5 bits", INFORMATION, 5),
        ("1B", INFORMATION, 8),
        ("1byte", INFORMATION, 8),
        ("30GB", INFORMATION, 240 * 10**9),
        ("30 GB", INFORMATION, 240 * 10**9),
        ("30gB", INFORMATION, 240 * 10**9),
        ("1KB", INFORMATION, 8000),
        ("1kB", INFORMATION, 8000),
        ("1KiB", INFORMATION, 8192),
        ("1.5GiB", INFORMATION, 12 * 2**30),
        ("1Gb", INFORMATION, 10**9),
        ("1kb", INFORMATION, 1000),
        ("40GBPS", RATE, 40 * 10**9),
        ("40gbps", RATE, 40 * 10**9),
        ("40Gbps", RATE, 40 * 10**9),
        ("40 Gbit/s", RATE, 40 * 10**9),
        ("40Gb/s", RATE, 40 * 10**9),
        ("40GBps", RATE, 320 * 10**9),
        ("40GB/s", RATE, 320 * 10**9),
        ("40gBps", RATE, 320 * 10**9),
        ("1MiB/s", RATE, 2**23),
        ("2.5Gbps", RATE, 2_500_000_000),
        ("100Mbps", RATE, 10**8),
        ("100MBPS", RATE, 10**8),
        ("50Hz", FREQUENCY, 50),
        ("1.41GHz", FREQUENCY, 1_410_000_000),
        ("1GHZ", FREQUENCY, 10**9),
        ("1ghz", FREQUENCY, 10**9),
        ("5MHz", FREQUENCY, 5_000_000),
        ("5mHz", FREQUENCY, Fraction(5, 1000)),
        ("300W", POWER, 300),
        ("300w", POWER, 300),
        ("1.2kW", POWER, 1200),
        ("1.2KW", POWER, 1200),
        ("7mW", POWER, Fraction(7, 1000)),
        ("7MW", POWER, 7_000_000),
        ("7nW", POWER, Fraction(7, 10**9)),
        (".5W", POWER, Fraction(1, 2)),
        ("0B", INFORMATION, 0),
    ],
)
def test_a_measure_is_a_number_of_base_units(text: str, dimension: Dimension, amount: Fraction) -> None:
    assert read_measure(text) == Measure(dimension, Fraction(amount))


@pytest.mark.parametrize("text", ["40gb", "40Kb", "1mbps", "1mb", "1mhz", "1mw", "1gib", "1GbPS", "1MBYTES"])
def test_a_spelling_that_could_mean_two_things_is_refused(text: str) -> None:
    with pytest.raises(MeasureError, match="leaves open what is meant"):
        read_measure(text)


def test_no_spelling_of_a_unit_means_two_things() -> None:
    spellings = list(_spellings())
    assert len(dict(spellings)) == len(spellings)
    for spelling, meaning in spellings:
        measure = read_measure(f"1{spelling}")
        assert (measure.dimension, measure.amount) == meaning


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        ("GB", 0),
        ("T4", 0),
        (".B", 1),
        ("-5W", 0),
        ("+5W", 0),
        ("5", 1),
        ("5 ", 2),
        ("5  GB", 2),
        ("5\tGB", 1),
        (" 5GB", 0),
        ("5GB ", 1),
        ("5G", 1),
        ("5e3B", 1),
        ("5.5.5B", 3),
        ("5 apples", 2),
        ("1nB", 1),
        ("٣GB", 0),
        ("3٣GB", 1),
        ("1e1000000W", 1),
        ("," * 1_000_000, 64),
        ("9" * 1_000_000 + "W", 64),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_text_that_is_no_measure_is_refused_with_the_position(text: str, position: int) -> None:
    with pytest.raises(MeasureError) as refusal:
        read_measure(text)
    assert refusal.value.position == position
    assert refusal.value.reason
    assert len(str(refusal.value)) < 250


@pytest.mark.parametrize("text", ["0.1nW", "0.0000000001b", "1" + "0" * 30 + "W", "1" + "0" * 12 + "EW"])
def test_amounts_have_bounds(text: str) -> None:
    with pytest.raises(MeasureError, match=r"finer than a billionth|not less than"):
        read_measure(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("40GBPS", "40Gbps"),
        ("40GBps", "320Gbps"),
        ("30 GB", "30GB"),
        ("1500W", "1500W"),
        ("2000W", "2kW"),
        ("0.5W", "0.5W"),
        ("8b", "1B"),
        ("9b", "9b"),
        ("0GB", "0B"),
        ("1KiB", "1024B"),
    ],
)
def test_the_canonical_text_has_the_largest_prefix_that_keeps_it_whole(text: str, canonical: str) -> None:
    assert str(read_measure(text)) == canonical


@given(numbers, st.sampled_from(sorted(_SPELLINGS)), st.sampled_from(["", " "]))
def test_a_measure_reads_back(number: str, spelling: str, blank: str) -> None:
    try:
        measure = read_measure(number + blank + spelling)
    except MeasureError as error:
        assert "finer" in error.reason or "not less than" in error.reason  # noqa: PT017
        return
    assert read_measure(str(measure)) == measure
    assert (measure.amount * 10**9).denominator == 1


@given(st.sampled_from(Dimension), st.integers(0, 10**39 - 1))
def test_every_amount_reads_back(dimension: Dimension, nanos: int) -> None:
    measure = Measure(dimension, Fraction(nanos, 10**9))
    assert read_measure(str(measure)) == measure


@given(st.text(max_size=70) | st.text("0123456789. kKMGiBbps/HzW", max_size=10))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        measure = read_measure(text)
    except MeasureError as error:
        assert 0 <= error.position <= len(text)  # noqa: PT017 - either way is fine
    else:
        assert measure.amount >= 0
