"""Numbers of a report in words: a value with its range, money, times, shares."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from chipwise.predict.estimate import Estimate
from chipwise.units import DAY, HOUR, MINUTE, format_money, format_seconds

_UNITS = {"µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": MINUTE, "h": HOUR, "days": DAY}
EVIDENCE = {
    "measured": "this workload was measured on this chip",
    "compiled": "the vendor's compiler compiled the program for that chip",
    "modelled": "the calibrated model; the interval comes from its errors on published results of the same kind",
    "bounded": "nothing published to learn from: physics and the chip's figures alone",
}


def ends(e: Estimate, show: Callable[[float], str]) -> str:
    """The interval of an estimate.

    >>> ends(Estimate(2.0, 1.0, 3.0, "modelled"), format_money)
    '$1.00 to $3.00'
    """
    return f"{show(e.low)} to {'no end' if e.high == inf else show(e.high)}"


def time_ends(e: Estimate) -> str:
    """The interval of seconds in the unit of the value.

    >>> time_ends(Estimate(10 * DAY, 2 * DAY, 20 * DAY, "modelled"))
    '2.00 to 20.0 days'
    """
    unit = format_seconds(e.value).rpartition(" ")[2]
    low, high = (end / _UNITS[unit] for end in (e.low, e.high))
    return f"{_three(low)} to {_three(high) if high < inf else 'no end'} {unit}"


def spread(e: Estimate) -> str:
    """How far below and above the value the ends lie.

    >>> spread(Estimate(10.0, 8.0, 13.0, "modelled"))
    '−20/+30 %'
    """
    high = "no end" if e.high == inf else f"{(e.high / e.value - 1) * 100:+.0f} %"
    return f"{(e.low / e.value - 1) * 100:+.0f}/{high}".replace("-", "−")


def percent(share: float, digits: int = 0) -> str:
    """A share in per cent.

    >>> percent(0.125), percent(0.9034, 1)
    ('12 %', '90.3 %')
    """
    return f"{share * 100:.{digits}f} %"


def plural(count: int, word: str) -> str:
    """A count with its word.

    >>> plural(1, "run"), plural(2_000, "run")
    ('1 run', '2,000 runs')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def kwh(value: float) -> str:
    """Energy for people.

    >>> kwh(253_116), kwh(512)
    ('253 MWh', '512 kWh')
    """
    return f"{value / 1e3:,.0f} MWh" if value >= 1e5 else f"{value:,.0f} kWh" if value >= 100 else f"{value:.3g} kWh"


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


def _three(value: float) -> str:
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
