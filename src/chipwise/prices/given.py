"""Prices given by hand: a chip and US dollars for a chip-hour on demand, such as v7x=12.0."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

from chipwise.catalog import Offer, exact_chip
from chipwise.catalog.offers import ANY
from chipwise.errors import InputError
from chipwise.prices.book import GIVEN, PriceBook
from chipwise.units import parse_number

MOST_USD = 1e4  # of a chip-hour; more is another unit or a slip
ACCEPTED = f"a chip and US dollars for a chip-hour of it, above 0 and at most {MOST_USD:,.0f}, such as v7x=12.0"
GivenPrices = Mapping[str, float] | Sequence[str] | None


def read_given(prices: GivenPrices) -> dict[str, float]:
    """Prices as people write them, by the chip's id.

    >>> read_given(["v7x=12.0", "NVIDIA H100=$2.10"])
    {'v7x': 12.0, 'h100': 2.1}
    """
    pairs = [f"{chip}={usd}" for chip, usd in prices.items()] if isinstance(prices, Mapping) else list(prices or ())
    given: dict[str, float] = {}
    for text in pairs:
        named = re.fullmatch(r"\s*(.+?)\s*=\s*\$?(.+?)\s*(?:/\s*(?:chip-?|gpu-?)?(?:h|hr|hour))?\s*", text, re.I)
        usd = parse_number(named[2], "price", ACCEPTED) if named else 0.0
        if named is None or not 0 < usd <= MOST_USD:
            raise InputError("price", text, ACCEPTED)
        chip_id = exact_chip(named[1]).id
        if given.get(chip_id, usd) != usd:
            raise InputError("price", text, f"one price for {chip_id}")
        given[chip_id] = usd
    return given


def with_given(book: PriceBook, prices: GivenPrices, today: date) -> PriceBook:
    """The book with given prices in place of all on demand for these chips; spot and commitments stay.

    >>> from chipwise.prices.book import listed
    >>> [o.ondemand_usd_per_chip_hour for o in with_given(listed(), ["v7x=11"], date.today()).offers_for("v7x")]
    [11.0]
    """
    given = read_given(prices)
    if not given:
        return book
    mine = [
        Offer(chip_id, GIVEN, ANY, ANY, 1.0, usd, None, today.isoformat(), "given by hand", "", True, "yes")
        for chip_id, usd in given.items()
    ]
    others = [replace(o, ondemand_usd_per_chip_hour=None) if o.chip_id in given else o for o in book.offers]
    kept = [o for o in others if o.ondemand_usd_per_chip_hour is not None or o.spot_usd_per_chip_hour is not None]
    named = ", ".join(f"{chip_id} at ${usd:g}/h" for chip_id, usd in given.items())
    return replace(
        book, offers=(*mine, *kept), origin=f"{named} as given, over {book.origin}", own=(*book.own, "prices given")
    )
