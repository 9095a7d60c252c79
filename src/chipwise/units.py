"""People's units at the edges, SI inside: counts, durations and money, read and written.

Everything here is pure. Bad input raises `InputError` naming the field, the value and what is accepted.
"""

from __future__ import annotations

import math
import re

from chipwise.errors import AmbiguousNumber, InputError, UnitMissing

KILO, MEGA, GIGA, TERA, PETA, EXA = 1e3, 1e6, 1e9, 1e12, 1e15, 1e18
KiB, MiB, GiB, TiB = 2**10, 2**20, 2**30, 2**40
MINUTE, HOUR, DAY, WEEK = 60.0, 3_600.0, 86_400.0, 604_800.0

_COUNT_SUFFIX = {"": 1.0, "k": KILO, "m": MEGA, "g": GIGA, "b": GIGA, "t": TERA, "p": PETA, "e": EXA}
_SECONDS = {
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
    "ms": 1e-3,
    **dict.fromkeys(("m", "min", "minute", "minutes"), MINUTE),
    **dict.fromkeys(("h", "hr", "hour", "hours"), HOUR),
    **dict.fromkeys(("d", "day", "days"), DAY),
    **dict.fromkeys(("w", "week", "weeks"), WEEK),
}
# (below this many seconds, divide by, write)
_STEPS = ((1e-3, 1e-6, "µs"), (1.0, 1e-3, "ms"), (120.0, 1.0, "s"), (2 * HOUR, MINUTE, "min"))
_WHOLE = r"[1-9]\d{0,2}(?:,\d{3})+|\d+(?:_\d+)*"  # 1,500,000 or 1_500_000
_NUMBER = rf"((?:{_WHOLE})(?:\.\d+)?|\.\d+)(e[+-]?\d{{1,3}})?"
_COMMA = re.compile(r"(\d+),(\d+)((?:e[+-]?\d{1,3})?\s*[a-z]*)", re.ASCII | re.IGNORECASE)  # 1,5T
_BINARY = re.compile(r"\s*([1-9]\d{0,3})\s*([kKmM])\s*")  # 8k
MAX_TEXT = 100  # characters of a quantity without its blanks; more is no quantity, and is read no further
_ACCEPTED_COUNT = "a number such as 300, 2.5M, 70B or 15T"
_ACCEPTED_DURATION = "a duration such as 90s, 12h, 30d or 2w"
_ACCEPTED_SHARE = "a share from 0 to 1, such as 0.4 or 40%"
_ACCEPTED_RATE = "requests a second, such as 0.5, 20, 10/s or 600/min"
_PER_SECOND = re.compile(r"\s*(/\s*s(ec(ond)?)?|per second|req(uests)?/s|[qr]ps)$", re.IGNORECASE)
_PER_TIME = re.compile(r"\s*(?:req(?:uests)?)?\s*(?:/|per)\s*(min(?:ute)?|h(?:r|our)?|d(?:ay)?)$", re.IGNORECASE)
_UNITS: dict[str, dict[str, float]] = {
    "FLOP/s": {f"{p}{u}": f for u in ("FLOP/s", "FLOPS", "OPS") for p, f in (("G", GIGA), ("T", TERA), ("P", PETA))},
    "bytes": {"MB": MEGA, "GB": GIGA, "TB": TERA, "MiB": MiB, "GiB": GiB, "TiB": TiB},
    "bytes/s": {"MB/s": MEGA, "GB/s": GIGA, "TB/s": TERA, "Gb/s": GIGA / 8, "Gbit/s": GIGA / 8, "Tb/s": TERA / 8},
    "Hz": {"MHz": MEGA, "GHz": GIGA},
    "W": {"W": 1.0, "kW": KILO},
}


def compact(text: str, field: str, accepted: str) -> str:
    """A quantity's text with single blanks, in time that grows as the text does: what follows sees a short one.

    >>> compact("  1.5   TB/s ", "bandwidth", "a number")
    '1.5 TB/s'
    """
    short = " ".join(text.split())
    if len(short) > MAX_TEXT:
        raise InputError(field, text, accepted)
    return short


def parse_count(value: object, field: str = "count", accepted: str = _ACCEPTED_COUNT) -> float:
    """A count such as tokens or parameters; whole numbers stay `int`.

    >>> parse_count("15T"), parse_count("2.5M"), parse_count(4096)
    (15000000000000, 2500000, 4096)
    """
    number = _number(value, field, accepted, _COUNT_SUFFIX)
    return int(number) if number.is_integer() else number


def parse_tokens(value: object, field: str = "tokens") -> float:
    """Tokens of a sequence: k and M are binary where a power of two stands before them, as people name contexts.

    >>> parse_tokens("8k"), parse_tokens("128K"), parse_tokens("1M"), parse_tokens("10k"), parse_tokens("4096")
    (8192, 131072, 1048576, 10000, 4096)
    """
    named = _BINARY.fullmatch(value) if isinstance(value, str) else None
    if named is not None and (many := int(named[1])) & (many - 1) == 0:
        return many * (KiB if named[2] in "kK" else MiB)
    return parse_count(value, field)


def parse_duration(value: object, field: str = "duration") -> float:
    """Seconds from a duration; a bare number is seconds.

    >>> parse_duration("30d"), parse_duration("12h"), parse_duration("90s"), parse_duration("2w")
    (2592000.0, 43200.0, 90.0, 1209600.0)
    """
    return _number(value, field, _ACCEPTED_DURATION, _SECONDS)


def parse_duration_with_unit(value: object, field: str = "duration") -> float:
    """Seconds from a duration that people type: text must say its unit, a number of a program's is seconds.

    >>> parse_duration_with_unit("3d"), parse_duration_with_unit(3.0)
    (259200.0, 3.0)
    >>> parse_duration_with_unit("3", "deadline")
    Traceback (most recent call last):
    ...
    chipwise.errors.UnitMissing: deadline: 3 what? Give a unit, such as 3h or 3d
    """
    seconds = parse_duration(value, field)
    if isinstance(value, str) and not re.search(r"[a-z]\s*$", value, re.IGNORECASE):
        raise UnitMissing(field, value)
    return seconds


def parse_scaled(value: object, field: str, accepted: str, shown: object = None) -> float:
    """A number of at least 0 that may end in k, M, B or T.

    >>> parse_scaled("2.5k", "budget", "an amount"), parse_scaled(12, "budget", "an amount")
    (2500.0, 12.0)
    """
    return _number(value, field, accepted, _COUNT_SUFFIX, shown)


def parse_share(value: object, field: str = "share") -> float:
    """A share from 0 to 1, also as a percentage.

    >>> parse_share("40%"), parse_share(0.4), parse_share("12.5 %")
    (0.4, 0.4, 0.125)
    """
    percent = isinstance(value, str) and value.rstrip().endswith("%")
    text = value.rstrip().removesuffix("%") if isinstance(value, str) else value
    share = _number(text, field, _ACCEPTED_SHARE, {"": 1.0}, shown=value) / (100 if percent else 1)
    if share > 1:
        raise InputError(field, value, _ACCEPTED_SHARE)
    return share


def parse_rate(value: object, field: str = "rate") -> float:
    """Requests a second, with or without the unit; of a minute, an hour or a day where that is said.

    >>> parse_rate("10/s"), parse_rate("2.5 req/s"), parse_rate(20), parse_rate("1k"), parse_rate("600/min")
    (10.0, 2.5, 20.0, 1000.0, 10.0)
    """
    if not isinstance(value, str):
        return _number(value, field, _ACCEPTED_RATE, _COUNT_SUFFIX)
    text = compact(value, field, _ACCEPTED_RATE)
    longer = _PER_TIME.search(text)
    seconds = _SECONDS[longer[1].lower()] if longer else 1.0
    text = text[: longer.start()] if longer else _PER_SECOND.sub("", text)
    return _number(text, field, _ACCEPTED_RATE, _COUNT_SUFFIX, shown=value) / seconds


def parse_number(value: object, field: str, accepted: str, units: tuple[tuple[str, float], ...] = ()) -> float:
    """A number of at least 0 of a field of its own, with groups of three digits; `units` that may stand behind it.

    >>> parse_number("1,250.5", "pue", "a ratio"), parse_number("0.5 kW", "power", "watts", (("w", 1.0), ("kw", 1e3)))
    (1250.5, 500.0)
    """
    return _number(value, field, accepted, {"": 1.0, **dict(units)})


def parse_quantity(value: object, field: str, unit: str, such: str) -> float:
    """A physical quantity in SI, as text with its unit: capitals count, since Gb/s are bits and GB/s bytes.

    >>> parse_quantity("3.35 TB/s", "bandwidth", "bytes/s", "3 TB/s"), parse_quantity("400 Gb/s", "n", "bytes/s", "")
    (3350000000000.0, 50000000000.0)
    """
    factors = _UNITS[unit]
    accepted = f"a number with its unit, such as {such} ({', '.join(factors)})"
    text = compact(value, field, accepted) if isinstance(value, str) else ""
    written = re.fullmatch(r"([^a-zA-Z\s]\S*?) ?([a-zA-Z][a-zA-Z/]*)(?: one way)?", text)
    if written is None or written[2] not in factors:
        raise InputError(field, value, accepted)
    try:
        return _number(written[1] + "x", field, accepted, {"x": factors[written[2]]}, shown=value)
    except AmbiguousNumber as asked:
        first, second = (f"{reading.removesuffix('x')} {written[2]}" for reading in asked.readings)
        raise AmbiguousNumber(field, text, (first, second)) from None


def units_of(unit: str) -> tuple[str, ...]:
    """What may stand behind a quantity that is kept in this unit.

    >>> units_of("Hz")
    ('MHz', 'GHz')
    """
    return tuple(_UNITS[unit])


def rounded(value: float) -> float:
    """A value to ten significant digits, for ranking: the bits below differ between architectures, and decide nothing.

    >>> rounded(0.1 + 0.2) == rounded(0.3), rounded(math.inf)
    (True, inf)
    """
    return float(f"{value:.9e}")


def format_seconds(seconds: float) -> str:
    """A duration for people.

    >>> format_seconds(0.0123), format_seconds(75), format_seconds(90_000), format_seconds(20 * 86_400)
    ('12.3 ms', '75.0 s', '25.0 h', '20.0 days')
    """
    _finite(seconds, "seconds")
    if seconds == 0:
        return "0 s"
    for limit, unit, name in _STEPS:
        if seconds < limit:
            return f"{_three(seconds / unit)} {name}"
    if seconds < 3 * DAY:
        return f"{_three(seconds / HOUR)} h"
    return f"{_three(seconds / DAY)} days"


def format_bytes(size: float) -> str:
    """A size in binary units.

    >>> format_bytes(80 * GiB), format_bytes(512), format_bytes(3.5 * TiB)
    ('80.0 GiB', '512 B', '3.50 TiB')
    """
    _finite(size, "bytes")
    for unit, name in ((TiB, "TiB"), (GiB, "GiB"), (MiB, "MiB"), (KiB, "KiB")):
        if size >= unit:
            return f"{_three(size / unit)} {name}"
    return f"{size:.0f} B"


def format_count(count: float) -> str:
    """A count with a suffix.

    >>> format_count(8.03e9), format_count(15e12), format_count(4096), format_count(12)
    ('8.03B', '15.0T', '4.10K', '12')
    """
    return _prefixed(count, "count", (("T", TERA), ("B", GIGA), ("M", MEGA), ("K", KILO)))


def format_money(usd: float) -> str:
    """US dollars; cents below a thousand, more digits below a cent's worth of sense.

    >>> format_money(1234567.0), format_money(12.5), format_money(0.00123), format_money(0)
    ('$1,234,567', '$12.50', '$0.00123', '$0.00')
    """
    _finite(usd, "money")
    if usd >= 1_000:
        return f"${usd:,.0f}"
    if usd >= 0.1 or usd == 0:
        return f"${usd:.2f}"
    return f"${float(f'{usd:.3g}'):.12f}".rstrip("0")


def format_rate(rate: float, unit: str) -> str:
    """A rate with an SI prefix on its unit.

    >>> format_rate(989.4e12, "FLOP/s"), format_rate(3.35e12, "B/s"), format_rate(42.0, "tokens/s")
    ('989 TFLOP/s', '3.35 TB/s', '42.0 tokens/s')
    """
    _finite(rate, "rate")
    for name, factor in (("E", EXA), ("P", PETA), ("T", TERA), ("G", GIGA), ("M", MEGA), ("k", KILO)):
        # 1000 and more tera is how people write peaks of chips, so peta begins at ten of them
        if rate >= factor * (10 if name in "PE" else 1):
            return f"{_three(rate / factor)} {name}{unit}"
    return f"{_three(rate)} {unit}"


def _number(value: object, field: str, accepted: str, suffixes: dict[str, float], shown: object = None) -> float:
    shown = value if shown is None else shown
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise InputError(field, shown, accepted)
    if isinstance(value, str):
        text = compact(value, field, accepted)
        found = re.fullmatch(rf"{_NUMBER} ?([a-z]*)", text.lower(), re.ASCII)
        if not found or found[3] not in suffixes:
            _ask_about_comma(text, field, accepted, suffixes)
            raise InputError(field, shown, accepted)
        digits = found[1].replace(",", "").replace("_", "") + (found[2] or "")
        number = _exact(float(digits), suffixes[found[3]])
    else:
        try:
            number = float(value)
        except OverflowError:
            raise InputError(field, shown, accepted) from None
    if not math.isfinite(number) or number < 0:
        raise InputError(field, shown, accepted)
    return number


def _ask_about_comma(text: str, field: str, accepted: str, suffixes: dict[str, float]) -> None:
    """Raise with both readings of a number such as 1,5T: people who write a decimal comma mean another than others."""
    found = _COMMA.fullmatch(text)
    if found:
        readings = (f"{found[1]}.{found[2]}{found[3]}", f"{found[1]}{found[2]}{found[3]}".lstrip("0"))
        for reading in readings:
            _number(reading, field, accepted, suffixes)
        raise AmbiguousNumber(field, text, readings)


def _exact(number: float, factor: float) -> float:
    """The product, rounded where binary fractions would leave a whole count a hair off (2.3M)."""
    product = number * factor
    if factor > 1 and math.isfinite(product) and abs(product - round(product)) < 1e-9 * product:
        return float(round(product))
    return product


def _finite(value: float, field: str) -> None:
    if not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise InputError(field, value, "a finite number of at least 0")


def _three(value: float) -> str:
    """Three digits: 1.23, 12.3, 123, 1,234."""
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def _prefixed(value: float, field: str, steps: tuple[tuple[str, float], ...]) -> str:
    _finite(value, field)
    for suffix, factor in steps:
        if value >= factor:
            return f"{_three(value / factor)}{suffix}"
    return f"{value:.0f}" if float(value).is_integer() else _three(value)
