"""A commitment is paid for used or not: the use from which it is cheaper than chips on demand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chipwise.catalog import Chip, Commitment
from chipwise.errors import InputError
from chipwise.knowledge import Knowledge
from chipwise.prices import STALE_DAYS, age_in_days, price_of, price_record, quote_record
from chipwise.prices.commitments import commitments_that_count

TERMS = (1, 3)  # years


@dataclass(frozen=True, slots=True)
class BreakEven:
    """A commitment against a price on demand."""

    commitment: Commitment
    ondemand_usd_per_chip_hour: float  # per chip-hour
    against: str  # whose price that is
    utilization: float  # from which the commitment is cheaper; above 1: never
    age_days: int = 0

    @property
    def stale(self) -> bool:
        """Whether the commitment's price is older than STALE_DAYS."""
        return self.age_days > STALE_DAYS

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        c = self.commitment
        price = price_record(c.usd_per_chip_hour, c.date, self.age_days, own=c.own, source=c.source, note=c.note)
        return {
            "years": c.years,
            **quote_record(c.cloud, c.region, c.instance, price),
            "ondemand_usd_per_chip_hour": self.ondemand_usd_per_chip_hour,
            "against": self.against,
            "break_even_utilization": self.utilization,
        }


def break_evens(chip: Chip, chips: int, known: Knowledge) -> tuple[BreakEven, ...]:
    """Every commitment that counts against the price on demand of its source, else the cheapest that fits."""
    now = price_of(chip, chips, False, known.today, known.prices)
    out = []
    for years in TERMS:
        for c in commitments_that_count(known.prices, chip, years, known.today).counted:
            if c.ondemand_usd_per_chip_hour is not None:
                usd, against = c.ondemand_usd_per_chip_hour, f"{c.cloud} on {c.date}"
            elif now is not None:
                usd, against = now.usd_per_chip_hour, f"{now.offer.cloud} {now.offer.region} on {now.offer.date}"
            else:
                continue
            share = break_even(c.usd_per_chip_hour, usd)
            out.append(BreakEven(c, usd, against, share, age_in_days(c.date, known.today)))
    return tuple(out)


def left_out(chip: Chip, wanted: Mapping[str, int], known: Knowledge) -> list[str]:
    """Commitments that don't count, in words; `wanted` are years by pricing model."""
    out = []
    for pricing, years in wanted.items():
        words = commitments_that_count(known.prices, chip, years, known.today).left_out
        out += [f"{pricing}: left out: {'; '.join(words)}"] if words else []
    return out


def useful_usd_per_chip_hour(usd_per_chip_hour: float, utilization: float) -> float:
    """US dollars for a chip-hour that is used, where all hours are paid for.

    >>> useful_usd_per_chip_hour(1.5, 0.6)
    2.5
    """
    return usd_per_chip_hour / checked(utilization)


def break_even(usd_per_chip_hour: float, ondemand_usd_per_chip_hour: float) -> float:
    """The share of paid hours that must be used for a commitment to cost what chips on demand cost.

    >>> round(break_even(1.45, 4.10), 4)
    0.3537
    """
    if not usd_per_chip_hour > 0 or not ondemand_usd_per_chip_hour > 0:
        raise InputError("price", min(usd_per_chip_hour, ondemand_usd_per_chip_hour), "more than $0 a chip-hour")
    return usd_per_chip_hour / ondemand_usd_per_chip_hour


def checked(utilization: float, field: str = "utilization") -> float:
    """A share of hours that can be divided by.

    >>> checked(0.6)
    0.6
    """
    if not 0 < utilization <= 1:
        raise InputError(field, utilization, "a share of more than 0 and at most 1")
    return utilization
