"""Numbers for people: an estimate with its interval in one unit, money, shares, counts with their word."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from math import inf, isfinite
from typing import Protocol

from chipwise.units import DAY, HOUR, MINUTE, format_money, format_seconds

_UNITS = {"µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": MINUTE, "h": HOUR, "days": DAY}


class Interval(Protocol):
    """A value with a low and a high end."""

    @property
    def value(self) -> float:
        """The middle."""

    @property
    def low(self) -> float:
        """The low end."""

    @property
    def high(self) -> float:
        """The high end."""


def plural(count: int, word: str) -> str:
    """A count with its word.

    >>> plural(1, "step"), plural(1788140, "step")
    ('1 step', '1,788,140 steps')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def time_interval(e: Interval) -> str:
    """The ends of an interval of seconds in the unit of its value.

    >>> from types import SimpleNamespace
    >>> time_interval(SimpleNamespace(value=109 * 60, low=88.9 * 60, high=128.4 * 60))
    '88.9 to 128 min'
    """
    unit = format_seconds(e.value).rpartition(" ")[2]
    low, high = (end / _UNITS[unit] for end in (e.low, e.high))
    return f"{three_digits(low)} to {three_digits(high) if high < inf else 'no end'} {unit}"


def moment(seconds: float) -> str:
    """A moment in UTC, of seconds since 1970; a dash where there is none.

    >>> moment(0.0), moment(inf)
    ('1970-01-01 00:00:00 UTC', '-')
    """
    if not isfinite(seconds) or abs(seconds) > 1e11:  # past the year 5000
        return "-"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def duration(seconds: float) -> str:
    """A duration that may be negative by clocks that differ, or endless.

    >>> duration(-0.2), duration(inf)
    ('0 s', '-')
    """
    return format_seconds(max(seconds, 0.0)) if isfinite(seconds) else "-"


def interval(e: Interval, show: Callable[[float], str]) -> str:
    """The ends of an interval.

    >>> from types import SimpleNamespace
    >>> interval(SimpleNamespace(value=2.0, low=1.0, high=inf), format_money)
    '$1.00 to no end'
    """
    return f"{show(e.low)} to {'no end' if e.high == inf else show(e.high)}"


def spread(e: Interval) -> str:
    """How far below and above the value the ends lie.

    >>> from types import SimpleNamespace
    >>> spread(SimpleNamespace(value=10.0, low=8.0, high=13.0))
    '-20/+30%'
    """
    if not e.value:
        return "+0/+0%"
    high = "no end" if e.high == inf else f"{(e.high / e.value - 1) * 100:+.0f}%"
    return f"{(e.low / e.value - 1) * 100:+.0f}/{high}"


def percent(share: float, digits: int = 0) -> str:
    """A share in percent.

    >>> percent(0.125), percent(0.9034, 1)
    ('12 %', '90.3 %')
    """
    return f"{share * 100:.{digits}f} %"


def price(usd: float) -> str:
    """A price: cents from a dollar on, two or three digits below.

    >>> price(10.6), price(0.46), price(0.0421)
    ('10.60', '0.46', '0.042')
    """
    return f"{usd:.2f}" if usd >= 0.1 else f"{usd:.2g}"


def rate(value: float) -> str:
    """A number of things a second.

    >>> rate(12_345.6), rate(12.34)
    ('12,346', '12.3')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def energy(kwh: float) -> str:
    """Energy for people.

    >>> energy(253_116), energy(512)
    ('253 MWh', '512 kWh')
    """
    return f"{kwh / 1e3:,.0f} MWh" if kwh >= 1e5 else f"{kwh:,.0f} kWh" if kwh >= 100 else f"{kwh:.3g} kWh"


def time_unit(largest: float) -> tuple[str, float]:
    """The unit of an axis of times, and its seconds.

    >>> time_unit(30 * DAY)
    ('days', 86400.0)
    """
    unit = format_seconds(largest).rpartition(" ")[2]
    return unit, _UNITS[unit]


def number(value: float) -> str:
    """A number on an axis or beside a bar.

    >>> number(12_345.6), number(12.34), number(0.5)
    ('12,346', '12.3', '0.5')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def dollars(usd: float) -> str:
    """US dollars that may be less than none.

    >>> dollars(1500.0), dollars(-1500.0)
    ('$1,500', '−$1,500')
    """
    return f"−{format_money(-usd)}" if usd < 0 else format_money(usd)


def times(ratio: float) -> str:
    """How many times as much, as far as an estimate knows: two significant digits, a ratio near 1 to a percent.

    >>> times(176.7), times(1.23), times(12.34), times(0.043), times(2149.0)
    ('180', '1.23', '12', '0.043', '2,100')
    """
    if 0.1 <= ratio < 9.995:
        return f"{ratio:.2f}"
    return f"{float(f'{ratio:.2g}'):,.10g}"


def three_digits(value: float) -> str:
    """A number with three digits.

    >>> three_digits(123.4), three_digits(12.34), three_digits(1.234)
    ('123', '12.3', '1.23')
    """
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
