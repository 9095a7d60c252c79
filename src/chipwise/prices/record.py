"""A price as JSON and CSV have it: one record wherever a price is shown, and its age."""

from __future__ import annotations

from datetime import date
from typing import Any

from chipwise.prices.book import STALE_DAYS


def age_in_days(dated: str, today: date) -> int:
    """Days from a date to `today`.

    >>> age_in_days("2026-01-01", date(2026, 4, 1))
    90
    """
    return (today - date.fromisoformat(dated)).days


def is_stale(dated: str, today: date, days: int = STALE_DAYS) -> bool:
    """Whether a price is dated more than `days` before `today`.

    >>> is_stale("2026-01-01", date(2026, 4, 1)), is_stale("2026-01-01", date(2026, 4, 2))
    (False, True)
    """
    return age_in_days(dated, today) > days


def price_record(
    usd_per_chip_hour: float, dated: str, age_days: int, *, own: bool, source: str, note: str
) -> dict[str, Any]:
    """The price of a chip-hour: its age, whether it is a company's own, and where it comes from.

    >>> price_record(2.5, "2026-01-01", 91, own=False, source="list", note="")["stale"]
    True
    """
    return {
        "usd_per_chip_hour": usd_per_chip_hour,
        "date": dated,
        "age_days": age_days,
        "stale": age_days > STALE_DAYS,
        "own": own,
        "source": source,
        "note": note,
    }


def quote_record(cloud: str, region: str, instance: str, price: dict[str, Any]) -> dict[str, Any]:
    """A price with who asks it and where; `cloud` is null for chips of one's own.

    >>> quote_record("", "on-premises", "dgx", {"usd_per_chip_hour": 2.5})
    {'cloud': None, 'region': 'on-premises', 'instance': 'dgx', 'usd_per_chip_hour': 2.5}
    """
    return {"cloud": cloud or None, "region": region, "instance": instance, **price}
