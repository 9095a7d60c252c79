"""The cost of a run: chip-hours times the cheapest offer that fits it, with the offer's name and age."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal

from chipwise.catalog import Chip, Offer
from chipwise.errors import InputError
from chipwise.predict.estimate import Estimate
from chipwise.prices.book import STALE_DAYS, PriceBook, listed
from chipwise.prices.record import age_in_days, price_record, quote_record
from chipwise.units import HOUR, format_money

ALONE = "accelerator only"  # offers so noted ask for the host on top
SINGLE = "single node"  # offers so noted can't be joined by a network that training needs


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per chip-hour, the offer they come from, and how old that offer is."""

    usd_per_chip_hour: float
    spot: bool
    offer: Offer
    age_days: int  # from the offer's date to the day of asking
    note: str = ""

    @property
    def stale(self) -> bool:
        """Whether the offer is older than STALE_DAYS."""
        return self.age_days > STALE_DAYS

    def __str__(self) -> str:
        o = self.offer
        age = f"{o.date}, stale" if self.stale else o.date
        age += ", own price" if o.own else ""
        return f"${self.usd_per_chip_hour:.2f}/h ({o.cloud}, {o.region}, {age})"


@dataclass(frozen=True, slots=True)
class Quote:
    """What a run, or an hour of a service, costs at a price, with an interval."""

    usd: Estimate
    price: Price
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
            price.usd_per_chip_hour, o.date, price.age_days, own=o.own, source=o.source, note=price.note or o.note
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

    >>> prices_in_words(listed(), [])
    ()
    """
    prices = [price for price in used if price is not None]
    stale = [price.offer.date for price in prices if price.stale]
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


def paid_chips(chip: Chip, chips: int, instance: float) -> int:
    """Chips that are paid for: whole instances of so many; TPU slices and shares of a chip as they are.

    >>> from chipwise.catalog import load
    >>> paid_chips(load().chips["h100"], 9, 8.0), paid_chips(load().chips["v5e"], 16, 8.0)
    (16, 16)
    """
    if chip.family == "tpu" or instance < 1:
        return chips
    return int(-(-chips // instance) * instance)


def price_of(
    chip: Chip,
    chips: int,
    spot: bool = False,
    today: date | None = None,
    book: PriceBook | None = None,
    whole_instances: bool = False,
) -> Price | None:
    """The cheapest offer for so many chips; None where nobody lists a price.

    Cheapest by the chip-hour; with `whole_instances` by what the instances cost that hold the chips.

    A run over several chips needs hosts, so instances smaller than a host count only where nothing larger is
    listed. Offers much older than the newest price list of the catalog count only where nothing else is; a company's
    own prices always count.

    >>> from chipwise.catalog import load
    >>> price_of(load().chips["v5e"], 64, today=date(2026, 8, 30)).offer.cloud
    'gcp'
    >>> price_of(load().chips["v7x"], 64) is None
    True
    """
    offers, note = fitting(chip, chips, spot, book or listed())
    if not offers:
        return None
    best = (
        min(offers, key=lambda o: paid_chips(chip, chips, o.chips) * _usd_per_chip_hour(o, spot))
        if whole_instances
        else offers[0]
    )
    return Price(_usd_per_chip_hour(best, spot), spot, best, age_in_days(best.date, today or date.today()), note)


def fitting(chip: Chip, chips: int, spot: bool, book: PriceBook) -> tuple[tuple[Offer, ...], str]:
    """The offers that can hold so many chips that work together, cheapest first, and what is wrong with them all."""
    offers = book.offers_for(chip.id, spot)
    if chips > chip.fabric.host_chips:
        offers = tuple(o for o in offers if not o.note.startswith(SINGLE))
    host = min(chips, chip.fabric.host_chips)
    whole = tuple(o for o in offers if o.chips >= host)
    fresh = tuple(o for o in whole or offers if book.recent(o))
    note = "" if whole else f"only instances of fewer than {host} chips are listed"
    return with_hosts(fresh or whole or offers), note


def with_hosts(offers: tuple[Offer, ...]) -> tuple[Offer, ...]:
    """Without list prices that leave the host out, which look cheaper than they are; those where nothing else is."""
    return tuple(o for o in offers if o.own or not o.note.startswith(ALONE)) or offers


def _usd_per_chip_hour(offer: Offer, spot: bool) -> float:
    usd_per_chip_hour = offer.price(spot)
    assert usd_per_chip_hour is not None  # offers_for left those without a price out
    return usd_per_chip_hour


def quote(
    chip: Chip,
    chips: int,
    duration: Estimate,
    spot: bool = False,
    today: date | None = None,
    book: PriceBook | None = None,
) -> Quote | None:
    """What a run of `duration` on so many chips costs in whole instances; None where nobody lists a price.

    >>> from chipwise.catalog import load
    >>> two_hours = Estimate(7_200, 3_600, 14_400, "modelled")
    >>> q = quote(load().chips["v5e"], 64, two_hours)
    >>> q.usd.value == 128 * q.price.usd_per_chip_hour, q.usd.high == 256 * q.price.usd_per_chip_hour
    (True, True)
    """
    price = price_of(chip, chips, spot, today, book, whole_instances=True)
    if price is None:
        return None
    return Quote(
        duration.scaled(chip_hours(paid_chips(chip, chips, price.offer.chips), 1.0) * price.usd_per_chip_hour), price
    )
