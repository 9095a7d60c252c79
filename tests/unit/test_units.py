"""Units: round trips, and refusals for what is not a number."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise import units
from chipwise.catalog.money import parse_usd
from chipwise.errors import AmbiguousNumber, InputError
from chipwise.units import (
    GiB,
    parse_count,
    parse_duration,
    parse_duration_with_unit,
    parse_quantity,
    parse_rate,
    parse_share,
)

PARSERS = (parse_count, parse_duration, parse_usd)
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
    assert parse_usd(text) == usd


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


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("1,5T", ("1.5T", "15T")),
        ("0,5", ("0.5", "5")),
        ("8,64", ("8.64", "864")),
        ("0,500", ("0.500", "500")),
        ("1500,000", ("1500.000", "1500000")),
        ("2,5e3", ("2.5e3", "25e3")),
    ],
)
def test_a_comma_that_separates_no_thousands_is_asked_about_with_both_readings(text, readings):
    with pytest.raises(AmbiguousNumber, match=r"\? A comma stands only between groups of three digits") as caught:
        parse_count(text, "tokens")
    assert caught.value.readings == readings


@pytest.mark.parametrize("parse", [parse_duration, parse_duration_with_unit])
def test_a_decimal_comma_of_a_duration_is_asked_about(parse):
    with pytest.raises(AmbiguousNumber, match=r"deadline: 2,5d: 2.5d or 25d\?"):
        parse("2,5d", "deadline")


def test_a_decimal_comma_of_an_amount_is_asked_about():
    with pytest.raises(AmbiguousNumber, match=r"budget: \$1,5M: \$1.5M or \$15M\?"):
        parse_usd("$1,5M", "budget")


@pytest.mark.parametrize("text", ["1,50,000", "1.500,5", ",5", "5,", "1,,5", "1__0", "_1", "1_"])
def test_other_misplaced_separators_are_refused(text):
    with pytest.raises(InputError, match="is not accepted"):
        parse_count(text)


SUFFIX = st.sampled_from(["", "k", "K", "M", "B", "G", "T", " T"])


@given(number=st.integers(0, 10**12), suffix=SUFFIX)
def test_every_accepted_spelling_is_read_as_what_str_prints(number, suffix):
    plain = parse_count(f"{number}{suffix}")
    for spelling in (f"{number:,}{suffix}", f"{number:_}{suffix}", f"{number}.0{suffix}", f" {number}{suffix} "):
        assert parse_count(spelling) == plain
    assert parse_count(str(plain)) == plain and parse_duration(f"{number:,}s") == number
    assert parse_usd(f"${number:,}{suffix}") == plain


@given(value=st.floats(0, 1, allow_nan=False))
def test_a_share_may_be_a_percentage(value):
    assert parse_share(f"{value * 100}%") == pytest.approx(value, abs=1e-15)
    assert parse_share(repr(value) if "e" not in repr(value) else value) == value


@pytest.mark.parametrize("text", ["101%", "1.5", "-5%", "40 percent", "", "%"])
def test_what_is_no_share_is_refused(text):
    with pytest.raises(InputError, match=r"0\.4 or 40%"):
        parse_share(text, "utilization")


@pytest.mark.parametrize("text", ["10/s", "10 /s", "10 req/s", "10 requests/s", "10qps", "10 per second", "10"])
def test_a_rate_may_say_its_unit(text):
    assert parse_rate(text) == 10


@pytest.mark.parametrize("filler", [" ", "1", "1,", "9 ", "a", "/", ".", "\u00a0"])
@pytest.mark.parametrize("parser", [*PARSERS, parse_rate, parse_share, lambda t: parse_quantity(t, "n", "bytes/s", "")])
def test_what_is_longer_than_any_quantity_is_refused_at_once(parser, filler, monkeypatch):
    def limited(match):
        return lambda *given: (
            match(*given) if len(given[1]) <= units.MAX_TEXT else pytest.fail("a long text was matched")
        )

    monkeypatch.setattr(units.re, "fullmatch", limited(units.re.fullmatch))
    for text in (filler * 20_000, f"5{filler * 20_000}x", f"x{filler * 20_000}5"):
        with pytest.raises(InputError):
            parser(text)
