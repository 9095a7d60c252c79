"""Units: round trips, and refusals for what is not a number."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise import units
from chipwise.errors import InputError
from chipwise.units import GiB, parse_count, parse_duration, parse_money

PARSERS = (parse_count, parse_duration, parse_money)
FORMATTERS = (
    units.format_seconds,
    units.format_bytes,
    units.format_count,
    units.format_money,
    lambda value: units.format_rate(value, "B/s"),
)
GARBAGE = [
    "",
    " ",
    "nan",
    "inf",
    "-1",
    "-5k",
    "1e999",
    "abc",
    "1 2",
    "1..2",
    "$",
    "5 apples",
    "0x10",
    "١٢",
    "--3",
]


@pytest.mark.parametrize(
    ("text", "value"),
    [("15T", 15_000_000_000_000), ("2.5M", 2_500_000), ("2.3M", 2_300_000), ("70b", 70_000_000_000), ("1,000", 1000),
     ("1e3", 1000), (7, 7), (0, 0), (" 8k ", 8000), ("1_000", 1000), ("0.5", 0.5)],
)  # fmt: skip
def test_counts(text, value):
    found = parse_count(text)
    assert found == value and isinstance(found, type(value))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30d", 2_592_000),
        ("12h", 43_200),
        ("90s", 90),
        ("2w", 1_209_600),
        ("5 min", 300),
        ("250ms", 0.25),
        (3, 3),
        ("1.5 days", 129_600),
    ],
)
def test_durations(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "usd"),
    [
        ("$1,000", 1000),
        ("1000 usd", 1000),
        ("2.5k", 2500),
        ("US$3M", 3e6),
        (12.5, 12.5),
        ("10 dollars", 10),
        ("0", 0),
    ],
)
def test_money(text, usd):
    assert parse_money(text) == usd


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("value", [*GARBAGE, math.nan, math.inf, -1, -0.5, None, True, [], {}, 10**400])
def test_bad_input_names_the_field_the_value_and_what_is_accepted(parser, value):
    with pytest.raises(InputError) as caught:
        parser(value, field="train.tokens")
    assert caught.value.field == "train.tokens"
    assert caught.value.value is value or caught.value.value == value
    assert "such as" in str(caught.value)


@pytest.mark.parametrize("formatter", FORMATTERS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, "12", None])
def test_formatters_refuse_what_is_not_a_quantity(formatter, value):
    with pytest.raises(InputError):
        formatter(value)


@pytest.mark.parametrize("parser", PARSERS)
@given(text=st.text(max_size=20))
def test_any_text_parses_or_is_refused(parser, text):
    try:
        value = parser(text)
    except InputError:
        return
    assert math.isfinite(value) and value >= 0


@given(st.floats(min_value=0, max_value=1e18))
def test_counts_survive_a_round_trip_to_three_digits(value):
    assert float(parse_count(units.format_count(value))) == pytest.approx(value, rel=0.006, abs=0.01)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (units.format_seconds(0), "0 s"),
        (units.format_seconds(2.5e-6), "2.50 µs"),
        (units.format_seconds(300), "5.00 min"),
        (units.format_bytes(1.5 * GiB), "1.50 GiB"),
        (units.format_bytes(0), "0 B"),
        (units.format_count(999), "999"),
        (units.format_money(999.99), "$999.99"),
        (units.format_money(0.05), "$0.05"),
        (units.format_rate(2307e12, "FLOP/s"), "2,307 TFLOP/s"),
        (units.format_rate(11.5e15, "FLOP/s"), "11.5 PFLOP/s"),
        (units.format_rate(0, "B/s"), "0.00 B/s"),
    ],
)
def test_formats(text, shown):
    assert text == shown
