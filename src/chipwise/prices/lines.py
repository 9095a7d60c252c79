"""Price lists for people: every offer with its price on each pricing model, cheapest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chipwise.catalog import Commitment, Offer
from chipwise.catalog.joined import Joined
from chipwise.prices.book import PriceBook

TERMS = ("ondemand", "spot", "1y", "3y")


@dataclass(frozen=True, slots=True)
class Dated:
    """One price per chip-hour, with its age and where it comes from."""

    usd_per_chip_hour: float
    date: str
    source: str
    note: str
    own: bool


@dataclass(frozen=True, slots=True)
class PriceLine:
    """An instance of a cloud in a region, and what a chip-hour of it costs on each pricing model."""

    chip_id: str
    cloud: str
    region: str  # "" where the source names none
    instance: str  # "" where the source names none
    chips: float | None  # None where the source names no instance
    ondemand: Dated | None
    spot: Dated | None
    year1: Dated | None
    year3: Dated | None
    joined: Joined | None = None  # None where the source names no instance

    def on(self, terms: str) -> Dated | None:
        """The price on one of TERMS."""
        return {"ondemand": self.ondemand, "spot": self.spot, "1y": self.year1, "3y": self.year3}[terms]

    @property
    def cheapest(self) -> float:
        """Per chip-hour on demand, or on the cheapest other terms where there is no such price."""
        if self.ondemand is not None:
            return self.ondemand.usd_per_chip_hour
        return min(price.usd_per_chip_hour for price in (self.spot, self.year1, self.year3) if price is not None)

    @property
    def date(self) -> str:
        """The age of the line: that of its on-demand or spot price, else that of its commitments."""
        return next(price.date for price in (self.ondemand, self.spot, self.year1, self.year3) if price is not None)


def price_lines(book: PriceBook, chip_ids: Sequence[str], terms: str = "") -> tuple[PriceLine, ...]:
    """Lines for chips in the order given, cheapest first; with `terms` only those that have such a price, by it.

    >>> from chipwise.prices.book import listed
    >>> lines = price_lines(listed(), ["v5e"], terms="3y")
    >>> [line.year3.usd_per_chip_hour for line in lines] == sorted(line.year3.usd_per_chip_hour for line in lines)
    True
    """
    out: list[PriceLine] = []
    for chip_id in chip_ids:
        matching = [line for line in _of(book, chip_id) if not terms or line.on(terms) is not None]
        matching.sort(key=lambda line: (-(line.chips or 0), line.cloud, line.region, line.instance))
        matching.sort(key=lambda line: line.date, reverse=True)  # of equal prices the newest first
        out += sorted(matching, key=lambda line: _rank(line, terms))
    return tuple(out)


def cheapest_of_each(lines: Iterable[PriceLine]) -> tuple[PriceLine, ...]:
    """The first line of every chip and cloud."""
    first: dict[tuple[str, str], PriceLine] = {}
    for line in lines:
        first.setdefault((line.chip_id, line.cloud), line)
    return tuple(first.values())


def _rank(line: PriceLine, terms: str) -> tuple[bool, float]:
    """By the price on these terms; without terms those that can be had on demand come first."""
    price = line.on(terms or "ondemand")
    return (True, round(line.cheapest, 6)) if price is None else (False, round(price.usd_per_chip_hour, 6))


def _of(book: PriceBook, chip_id: str) -> list[PriceLine]:
    offers = [offer for offer in book.offers if offer.chip_id == chip_id]
    commitments = [c for c in book.commitments if c.chip_id == chip_id]
    lines, used = [], set()
    for offer in offers:
        year1, year3 = (_committed(offer, commitments, years) for years in (1, 3))
        used |= {id(c) for c in (year1, year3) if c is not None}
        lines.append(
            PriceLine(
                chip_id,
                offer.cloud,
                offer.region,
                offer.instance,
                offer.chips,
                _dated(offer.ondemand_usd_per_chip_hour, offer),
                _dated(offer.spot_usd_per_chip_hour, offer, offer.dated(True)),
                None if year1 is None else _dated(year1.usd_per_chip_hour, year1),
                None if year3 is None else _dated(year3.usd_per_chip_hour, year3),
                offer.joined,
            )
        )
    return lines + _alone([c for c in commitments if id(c) not in used])


def _committed(offer: Offer, commitments: Iterable[Commitment], years: int) -> Commitment | None:
    """The commitment for an offer's instance, or for any in its region; an own one before the list's."""
    fitting = [
        c
        for c in commitments
        if c.years == years
        and (c.cloud, c.region) == (offer.cloud, offer.region)
        and c.instance.lower() in ("", offer.instance.lower())
    ]
    return min(fitting, key=lambda c: (not c.own, not c.instance, c.usd_per_chip_hour), default=None)


def _alone(commitments: Iterable[Commitment]) -> list[PriceLine]:
    """Lines for commitments whose instance has no other price."""
    places: dict[tuple[str, str, str, str], dict[int, Commitment]] = {}
    for c in commitments:
        places.setdefault((c.chip_id, c.cloud, c.region, c.instance), {})[c.years] = c
    out = []
    for key, terms in places.items():
        year1, year3 = (
            _dated(terms[years].usd_per_chip_hour, terms[years]) if years in terms else None for years in (1, 3)
        )
        out.append(PriceLine(*key, None, None, None, year1, year3))
    return out


def _dated(usd_per_chip_hour: float | None, of: Offer | Commitment, day: str = "") -> Dated | None:
    return None if usd_per_chip_hour is None else Dated(usd_per_chip_hour, day or of.date, of.source, of.note, of.own)
