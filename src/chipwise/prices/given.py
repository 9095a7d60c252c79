"""Prices given by hand: a chip and the price of a chip-hour on demand, such as v7x=12.0 or v7x=€11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

from chipwise.catalog import Offer, exact_chip
from chipwise.catalog.currencies import Rates, exchange_rates
from chipwise.catalog.money import PER_HOUR, Amount, read_amount
from chipwise.catalog.offers import ANY
from chipwise.errors import InputError
from chipwise.prices.book import GIVEN, PriceBook

MOST_USD = 1e4  # of a chip-hour; more is another unit or a slip
ACCEPTED = f"a chip and the price of a chip-hour, above 0 and at most ${MOST_USD:,.0f}, such as v7x=12.0 or v7x=€11"
GivenPrices = Mapping[str, float] | Sequence[str] | None


def read_given(prices: GivenPrices, rates: Rates | None = None) -> dict[str, float]:
    """Prices as people write them, in US dollars by the chip's id.

    >>> read_given(["v7x=12.0", "NVIDIA H100=$2.10"])
    {'v7x': 12.0, 'h100': 2.1}
    """
    rates = exchange_rates() if rates is None else rates
    return {chip_id: amount.usd(rates) for chip_id, amount in _amounts(prices, rates).items()}


def _amounts(prices: GivenPrices, rates: Rates) -> dict[str, Amount]:
    pairs = [f"{chip}={usd}" for chip, usd in prices.items()] if isinstance(prices, Mapping) else list(prices or ())
    given: dict[str, Amount] = {}
    for text in pairs:
        name, _, price = text.partition("=")
        if not name.strip() or not price.strip():
            raise InputError("price", text, ACCEPTED)
        amount = read_amount(price, "price", ACCEPTED, rates, PER_HOUR)
        if not 0 < amount.usd(rates) <= MOST_USD:
            raise InputError("price", text, ACCEPTED)
        chip_id = exact_chip(name.strip()).id
        if given.get(chip_id, amount) != amount:
            raise InputError("price", text, f"one price for {chip_id}")
        given[chip_id] = amount
    return given


def with_given(book: PriceBook, prices: GivenPrices, today: date, rates: Rates | None = None) -> PriceBook:
    """The book with given prices in place of all on demand for these chips; spot and commitments stay.

    >>> from chipwise.prices.book import listed
    >>> [o.ondemand_usd_per_chip_hour for o in with_given(listed(), ["v7x=11"], date.today()).offers_for("v7x")]
    [11.0]
    """
    rates = exchange_rates() if rates is None else rates
    given = _amounts(prices, rates)
    if not given:
        return book
    mine = [
        Offer(chip_id, GIVEN, ANY, ANY, 1.0, amount.usd(rates), None, today.isoformat(), source, "", True, "yes")
        for chip_id, amount in given.items()
        for source in ["; ".join(filter(None, ("given by hand", amount.note(rates))))]
    ]
    others = [replace(o, ondemand_usd_per_chip_hour=None) if o.chip_id in given else o for o in book.offers]
    kept = [o for o in others if o.ondemand_usd_per_chip_hour is not None or o.spot_usd_per_chip_hour is not None]
    named = ", ".join(_shown(chip_id, amount, rates) for chip_id, amount in given.items())
    return replace(
        book, offers=(*mine, *kept), origin=f"{named} as given, over {book.origin}", own=(*book.own, "prices given")
    )


def _shown(chip_id: str, amount: Amount, rates: Rates) -> str:
    note = amount.note(rates)
    return f"{chip_id} at ${amount.usd(rates):.6g}/h" + (f" ({note})" if note else "")
