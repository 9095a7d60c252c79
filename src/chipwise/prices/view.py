"""A price list as every face shows it: what a chip-hour costs, where and on which terms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, ClassVar

from chipwise.catalog import exact_chip, load
from chipwise.errors import InputError, UnknownName
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import plural, price
from chipwise.present.result import Result
from chipwise.prices.book import STALE_DAYS, PriceBook
from chipwise.prices.lines import TERMS, Dated, PriceLine, cheapest_of_each, price_lines
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
        *(_terms(terms, today) for terms in TERMS),
        Column("date", lambda r: r.date, "date", words=True, help="of the price on demand, or of the first other"),
        Column("age_days", age, "age", lambda r: f"{age(r):,}", drop=1, help="days since the date"),
    ]


@dataclass(frozen=True, slots=True, repr=False)
class PriceList(Result):
    """Offers per chip-hour, cheapest first; `chips` are those asked about by name, `total` the offers that match."""

    VERB: ClassVar[str] = "prices"
    lines: tuple[PriceLine, ...]
    chips: tuple[str, ...]
    total: int
    prices: PriceBook
    today: date

    @property
    def columns(self) -> list[Column[PriceLine]]:
        """The columns of an offer."""
        return offer_columns(self.today)

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        offers = [record(self.columns, line) for line in self.lines]
        return {"prices": self.prices.origin, "today": self.today.isoformat(), "offers": offers}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row an offer; a price that there isn't leaves its columns empty."""
        return [_filled(flat(self.columns, line)) for line in self.lines]

    def blocks(self) -> list[Block]:
        """For people."""
        out: list[Block] = []
        if self.lines:
            out.append(table(self.columns, self.lines, title=plural(len(self.lines), "offer")))
            committed = "1 year, 3 years: committed, paid for used or not. age: days since the date."
            out += [Text(f"US dollars per chip-hour; {committed}"), *self._marks()]
        elif not self.chips:
            out.append(Text("No offer matches."))
        priced = {line.chip_id for line in self.lines}
        missing = [chip for chip in self.chips if chip not in priced]
        if missing:
            out.append(Text(f"{', '.join(missing)}: no public price that matches"))
        if len(self.lines) < self.total:
            out.append(Text(f"The cheapest of each cloud; all {self.total:,} offers: chipwise prices --all"))
        if self.prices.own:
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

    Where chips are named, all their offers are listed.
    """

    on: str | Sequence[str] | None = None
    cloud: str | Sequence[str] | None = None
    region: str | Sequence[str] | None = None
    terms: str | None = None
    every: bool = False


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
    clouds = {o.cloud for o in book.offers} | {c.cloud for c in book.commitments}
    regions = {o.region for o in book.offers} | {c.region for c in book.commitments}
    lines = price_lines(
        book,
        chips,
        _named("cloud", filters.cloud, clouds),
        _named("region", filters.region, regions),
        filters.terms or "",
    )
    shown = lines if filters.on is not None or filters.every else cheapest_of_each(lines)
    return PriceList(shown, tuple(chips) if filters.on is not None else (), len(lines), book, today)


def _names(flag: str, given: str | Sequence[str], expected: str) -> list[str]:
    parts: Iterable[str] = given.split(",") if isinstance(given, str) else given
    names = [name.strip() for name in parts if name.strip()]
    if not names:
        raise InputError(flag, str(given), expected)
    return names


def _chips(on: str | Sequence[str] | None) -> list[str]:
    if on is None:
        return list(load().chips)
    return list(dict.fromkeys(exact_chip(name).id for name in _names("on", on, "chips such as v5p,h100")))


def _named(flag: str, given: str | Sequence[str] | None, names_listed: set[str]) -> list[str]:
    """The names of a list; one that isn't known is a mistake."""
    if given is None:
        return []
    lower = {name.lower(): name for name in names_listed if name}
    names = [name.lower() for name in _names(flag, given, "names split by commas")]
    for name in names:
        if name not in lower:
            raise UnknownName(flag, name, lower, ": see `chipwise prices --all`")
    return [lower[name] for name in names]
