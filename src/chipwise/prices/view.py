"""A price list as every face shows it: what a chip-hour costs, where and on which terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, ClassVar

from chipwise.catalog import exact_chip, load
from chipwise.errors import InputError
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import plural, price
from chipwise.present.result import Result
from chipwise.prices.book import LISTED, STALE_DAYS, PriceBook
from chipwise.prices.lines import TERMS, Dated, PriceLine, cheapest_of_each, price_lines
from chipwise.prices.offer_filter import Names, OfferFilter, name_list
from chipwise.prices.record import age_in_days, is_stale, price_record

KEYS = {"ondemand": "ondemand", "spot": "spot", "1y": "year1", "3y": "year3"}  # of TERMS in JSON and CSV
HEADERS = {"ondemand": "on demand", "spot": "spot", "1y": "1 year", "3y": "3 years"}
DROP = {"1y": 4, "3y": 3}


def _price(p: Dated, today: date) -> dict[str, Any]:
    age = age_in_days(p.date, today)
    return price_record(p.usd_per_chip_hour, p.date, age, own=p.own, source=p.source, note=p.note)


def _filled(row: dict[str, Any]) -> dict[str, Any]:
    """A flat row in which a price that there isn't has its columns too, empty ones."""
    fields = _price(Dated(0.0, date.min.isoformat(), "", "", False), date.min)
    out: dict[str, Any] = {}
    for key, cell in row.items():
        out |= {f"{key}_{field}": None for field in fields} if key in KEYS.values() else {key: cell}
    return out


def _terms(terms: str, today: date) -> Column[PriceLine]:
    """The price on one of TERMS."""

    def value(line: PriceLine) -> dict[str, Any] | None:
        dated = line.on(terms)
        return None if dated is None else _price(dated, today)

    def show(line: PriceLine) -> str:
        dated = line.on(terms)
        if dated is None:
            return "-"
        return (
            price(dated.usd_per_chip_hour) + ("+" if dated.own else "") + ("*" if is_stale(dated.date, today) else "")
        )

    return Column(KEYS[terms], value, HEADERS[terms], show, drop=DROP.get(terms, 0), help="of a chip-hour; null: none")


def offer_columns(today: date) -> list[Column[PriceLine]]:
    """The columns of an offer, with ages on a day."""

    def age(line: PriceLine) -> int:
        return age_in_days(line.date, today)

    return [
        Column("chip", lambda r: r.chip_id, "chip", words=True),
        Column("cloud", lambda r: r.cloud, "cloud", words=True),
        Column("region", lambda r: r.region, "region", lambda r: r.region or "any", words=True),
        Column("instance", lambda r: r.instance, "instance", lambda r: r.instance or "any", words=True, under=True),
        Column("chips", lambda r: r.chips, "chips", lambda r: "-" if r.chips is None else f"{r.chips:g}", drop=2),
        Column(
            "joined",
            lambda r: r.joined,
            "fabric",
            lambda r: {"yes": "yes", "no": "no"}.get(r.joined or "", "?"),
            words=True,
            drop=5,
            help="whether a fast fabric joins several instances: yes, no or unknown; null: no instance named",
        ),
        *(_terms(terms, today) for terms in TERMS),
        Column("date", lambda r: r.date, "date", words=True, help="of the price on demand, or of the first other"),
        Column("age_days", age, "age", lambda r: f"{age(r):,}", drop=1, help="days since the date"),
    ]


@dataclass(frozen=True, slots=True, repr=False)
class PriceList(Result):
    """Offers per chip-hour, cheapest first; `chips` are those asked about by name, `total` the offers that match.

    `missing` are chips and clouds asked about of which no offer matches.
    """

    VERB: ClassVar[str] = "prices"
    lines: tuple[PriceLine, ...]
    chips: tuple[str, ...]
    total: int
    prices: PriceBook
    today: date
    missing: tuple[str, ...] = ()

    @property
    def columns(self) -> list[Column[PriceLine]]:
        """The columns of an offer."""
        return offer_columns(self.today)

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        offers = [record(self.columns, line) for line in self.lines]
        return {
            "prices": self.prices.origin,
            "today": self.today.isoformat(),
            "offers": offers,
            "missing": list(self.missing),
            "total": self.total,
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row an offer; a price that there isn't leaves its columns empty."""
        return [_filled(flat(self.columns, line)) for line in self.lines]

    def blocks(self) -> list[Block]:
        """For people."""
        out: list[Block] = []
        if self.lines:
            out.append(table(self.columns, self.lines, title=plural(len(self.lines), "offer")))
            committed = "1 year, 3 years: committed, paid for used or not. age: days since the date."
            fabric = "fabric: whether a fast network joins several instances, ? where no source says."
            out += [Text(f"US dollars per chip-hour; {committed} {fabric}"), *self._marks()]
        elif not self.missing:
            out.append(Text("No offer matches."))
        if self.missing:
            out.append(Text(f"{', '.join(self.missing)}: no public price that matches"))
        if len(self.lines) < self.total:
            out.append(Text(f"The cheapest of each cloud; --all lists all {self.total:,} offers"))
        if self.prices.origin != LISTED:
            out.append(Text(f"Prices: {self.prices.origin}."))
        return out

    def _marks(self) -> list[Block]:
        dated: list[Dated] = [p for line in self.lines for terms in TERMS if (p := line.on(terms)) is not None]
        stale = [p.date for p in dated if is_stale(p.date, self.today)]
        out: list[Block] = []
        if stale:
            oldest = f"{len(stale):,}, the oldest of {min(stale)}"
            out.append(Text(f"* marks stale prices, older than {STALE_DAYS} days: {oldest}"))
        if any(p.own for p in dated):
            out.append(Text("+ marks your own prices"))
        return out


@dataclass(frozen=True, slots=True)
class PriceFilter:
    """Which offers are listed, each a list of names or None for all; `every` offer or the cheapest of each cloud.

    With `fabric` ``known`` only offers known to be joined by a fast fabric, with ``any`` those not known too.
    """

    on: Names = None
    cloud: Names = None
    region: Names = None
    terms: str | None = None
    every: bool = False
    fabric: str | None = None


def list_prices(book: PriceBook, today: date, filters: PriceFilter | None = None) -> PriceList:
    """The offers of a price book that pass a filter.

    >>> from chipwise.prices.book import listed
    >>> offers = list_prices(listed(), date(2026, 8, 30), PriceFilter(on="v5e", cloud="gcp", terms="3y")).lines
    >>> {(line.chip_id, line.cloud) for line in offers}
    {('v5e', 'gcp')}
    """
    filters = filters or PriceFilter()
    if filters.terms is not None and filters.terms not in TERMS:
        raise InputError("pricing", filters.terms, f"one of {', '.join(TERMS)}")
    chips = _chips(filters.on)
    narrowed = OfferFilter.read(filters.cloud, filters.region, None, filters.fabric)
    within = narrowed.apply(book, today)
    lines = price_lines(within, chips, terms=filters.terms or "")
    if filters.fabric is not None:
        joined = ("yes",) if filters.fabric == "known" else ("yes", "unknown")
        lines = tuple(line for line in lines if line.joined in joined)
    shown = lines if filters.every else cheapest_of_each(lines)
    named = tuple(chips) if filters.on is not None else ()
    return PriceList(shown, named, len(lines), book, today, _missing(named, narrowed.clouds, lines))


def _missing(chips: Sequence[str], clouds: Sequence[str], lines: Sequence[PriceLine]) -> tuple[str, ...]:
    """Chips and clouds asked about that no line is of."""
    priced, sellers = {line.chip_id for line in lines}, {line.cloud for line in lines}
    return (*(chip for chip in chips if chip not in priced), *(cloud for cloud in clouds if cloud not in sellers))


def _chips(on: Names) -> list[str]:
    if on is None:
        return list(load().chips)
    return list(dict.fromkeys(exact_chip(name).id for name in name_list("on", on, "chips such as v5p,h100")))
