"""The cost of a run: chip-hours times the cheapest offer that fits it, with the offer's name and age."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal

from chipwise.catalog import Accelerators
from chipwise.errors import InputError
from chipwise.predict.estimate import Estimate
from chipwise.prices.book import STALE_DAYS, PriceBook
from chipwise.prices.fit import Price, cheapest_of
from chipwise.prices.record import price_record, quote_record
from chipwise.units import HOUR, format_money


@dataclass(frozen=True, slots=True)
class Quote:
    """What a run, or an hour of a service, costs at a price, with an interval."""

    usd: Estimate
    price: Price
    chips: int  # paid for
    per: Literal["run", "hour"] = "run"

    def at(self, usd_per_chip_hour: float) -> Quote:
        """The quote at another price."""
        price = replace(self.price, usd_per_chip_hour=usd_per_chip_hour)
        return replace(self, usd=self.usd.scaled(usd_per_chip_hour / self.price.usd_per_chip_hour), price=price)

    def __str__(self) -> str:
        return format_money(self.usd.value) + ("*" if self.price.stale else "")

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: the cost and the offer behind it."""
        price, o = self.price, self.price.offer
        listed = price_record(
            price.usd_per_chip_hour,
            o.dated(price.spot),
            price.age_days,
            own=o.own,
            source=o.source,
            note=price.caveat,
        )
        return {"usd": self.usd, "per": self.per, **quote_record(o.cloud, o.region, o.instance, listed)}


def chip_hours(chips: int, seconds: float) -> float:
    """Chip-hours of a run.

    >>> chip_hours(64, 7_200)
    128.0
    """
    return chips * seconds / HOUR


def run_cost(chips: int, seconds: float, usd_per_chip_hour: float) -> float:
    """US dollars of a run: 64 chips for two hours at $3 a chip-hour are 128 x 3 dollars.

    >>> run_cost(64, 7_200, 3.0)
    384.0
    """
    return chip_hours(chips, seconds) * usd_per_chip_hour


def prices_in_words(book: PriceBook, used: Iterable[Price | None]) -> tuple[str, ...]:
    """What an answer must say of its prices: own ones and where they were used, and stale ones.

    >>> from chipwise.prices.book import listed
    >>> prices_in_words(listed(), [])
    ()
    """
    prices = [price for price in used if price is not None]
    stale = [price.offer.dated(price.spot) for price in prices if price.stale]
    marked = f"* marks stale prices, older than {STALE_DAYS} days: {len(stale)}, the oldest of "
    return (*custom_prices_in_words(book, prices), *([marked + min(stale)] if stale else []))


def custom_prices_in_words(book: PriceBook, used: Iterable[Price | None]) -> tuple[str, ...]:
    """Which files of own prices lie over the list, and for which chips they were used."""
    if not book.own:
        return ()
    own = sorted({f"{p.offer.chip_id} on {p.offer.cloud}" for p in used if p is not None and p.offer.own})
    where = f"used for {', '.join(own)}" if own else "none of them is the cheapest that fits"
    return (f"prices: {book.origin}; {where}",)


def day_of(text: str, field: str) -> str:
    """A date as YYYY-MM-DD, not after today.

    >>> day_of("2026-08-22", "date")
    '2026-08-22'
    """
    accepted = "a date such as 2026-08-22, not after today"
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise InputError(field, text, accepted) from None
    if day > date.today():
        raise InputError(field, text, accepted)
    return day.isoformat()


def quote(
    acc: Accelerators,
    duration: Estimate,
    spot: bool = False,
    today: date | None = None,
    book: PriceBook | None = None,
) -> Quote | None:
    """What a run of `duration` on these chips costs in whole instances; None where nobody lists a price.

    >>> from chipwise.catalog import parse
    >>> two_hours = Estimate(7_200, 3_600, 14_400, "modelled")
    >>> q = quote(parse("v5e:64"), two_hours)
    >>> q.usd.value == 128 * q.price.usd_per_chip_hour, q.usd.high == 256 * q.price.usd_per_chip_hour
    (True, True)
    """
    rental = cheapest_of(acc, spot, today, book)
    if rental is None:
        return None
    usd = duration.scaled(chip_hours(rental.chips, 1.0) * rental.price.usd_per_chip_hour)
    return Quote(usd, rental.price, rental.chips)
