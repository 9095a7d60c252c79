"""Numbers and refusals in words: one unit for a value and its interval, singular and plural."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.units import DAY, HOUR, MINUTE, format_seconds

if TYPE_CHECKING:
    from chipwise.compare import Refused
    from chipwise.predict.estimate import Estimate

_UNITS = {"µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": MINUTE, "h": HOUR, "days": DAY}


def plural(count: int, word: str) -> str:
    """A count with its word.

    >>> plural(1, "step"), plural(1788140, "step")
    ('1 step', '1,788,140 steps')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def interval(e: Estimate) -> str:
    """The ends of an interval of seconds in the unit of its value.

    >>> from chipwise.predict.estimate import Estimate
    >>> interval(Estimate(109 * 60, 88.9 * 60, 128.4 * 60, "modelled"))
    '88.9 to 128 min'
    """
    unit = format_seconds(e.value).rpartition(" ")[2]
    low, high = (_three(end / _UNITS[unit]) for end in (e.low, e.high))
    return f"{low} to {high} {unit}"


def price(usd: float) -> str:
    """A price: cents from a dollar on, two or three digits below.

    >>> price(10.6), price(0.46), price(0.0421)
    ('10.60', '0.46', '0.042')
    """
    return f"{usd:.2f}" if usd >= 0.1 else f"{usd:.2g}"


def _three(value: float) -> str:
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def refusals(refused: tuple[Refused, ...]) -> list[str]:
    """One line a reason; chips that miss the same thing share it."""
    groups: dict[str, list[str]] = {}
    for r in refused:
        name = str(r.accelerators or r.chip.id)
        missing = r.kind == "precision" or r.reason.endswith("has no public price")
        reason = r.reason.replace(f"{r.chip.id} has", "has") if missing else r.reason
        if r.kind == "slo":  # the name is said already
            reason = reason.removeprefix(f"on {r.chip.id} ").removeprefix(f"{name} ")
        unlock = f"; {r.unlock}" if r.unlock else ""
        groups.setdefault(reason + unlock, []).append(r.chip.id if missing else name)
    return [f"{', '.join(names)}: {why}" for why, names in groups.items()]
