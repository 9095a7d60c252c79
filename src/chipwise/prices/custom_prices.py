"""A company's own prices: a CSV file laid over the list, price by price.

The file has a header and one line an instance; prices are of the whole instance, per hour::

    chip,cloud,region,instance,chips,ondemand_usd_h,spot_usd_h,year1_usd_h,year3_usd_h,date,source,note
    h100,gcp,us-central1,a3-highgpu-8g,8,61.20,,48.00,36.00,2026-10-31,contract 4711,

A line needs one price at least. The instance `any` is a price for every size, per so many chips. A `currency` column
may name another than USD, and so may a cell (`€16`); rates come from the user or else from the catalog.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from chipwise.catalog import Commitment, Offer, exact_chip, load
from chipwise.catalog.currencies import USD, Rates, exchange_rates, rate_note, usd_for_one
from chipwise.catalog.joined import Joined, joined
from chipwise.catalog.money import PER_HOUR, Amount, read_amount
from chipwise.catalog.offers import ANY
from chipwise.errors import BrokenFile, UnknownName
from chipwise.io.clock import day_of_asking
from chipwise.io.csv_lines import MAX_CHIPS, Line, check_columns, read_lines
from chipwise.io.printable import csv_cell
from chipwise.prices.book import PriceBook

COLUMNS = (
    "chip",
    "cloud",
    "region",
    "instance",
    "chips",
    "ondemand_usd_h",
    "spot_usd_h",
    "year1_usd_h",
    "year3_usd_h",
    "date",
    "source",
    "note",
)
NEEDED = ("chip", "cloud", "region", "instance", "chips", "date")
PRICES = ("ondemand_usd_h", "spot_usd_h", "year1_usd_h", "year3_usd_h")
CURRENCY = "currency"
MAX_USD_H = 1e6  # of an instance; more is another unit or a slip
PRICE = f"a price per hour above 0 and at most {MAX_USD_H:,.0f}"
YEARS = {1: "year1_usd_h", 3: "year3_usd_h"}


@dataclass(frozen=True, slots=True)
class CustomPrices:
    """Offers and commitments of one file."""

    file: str
    offers: tuple[Offer, ...]
    commitments: tuple[Commitment, ...]
    rates: tuple[str, ...] = ()  # that amounts of other currencies were taken at


@dataclass(frozen=True, slots=True)
class CustomPriceRow:
    """One line of the file, prices in US dollars per instance-hour; None where there is none."""

    chip_id: str
    cloud: str
    region: str
    instance: str
    chips: float
    prices: tuple[float | None, float | None, float | None, float | None]  # in the order of PRICES
    date: str
    source: str
    note: str = ""
    rates: tuple[str, ...] = ()  # that its amounts were taken at


def read_custom_prices(path: Path, rates: Rates | None = None, today: date | None = None) -> CustomPrices:
    """The prices of a file; a line that can't be used is a `BrokenFile` that names it.

    Other currencies are taken at `rates`, or else at those that are known.
    """
    rates = exchange_rates() if rates is None else rates
    header, lines = read_lines(path)
    check_columns(path.name, header, NEEDED, (*COLUMNS, CURRENCY))
    when = today or day_of_asking()
    rows: list[CustomPriceRow] = []
    line_of: dict[tuple[str, ...], int] = {}
    for line in lines:
        row = _row(line, rates, when)
        key = (row.chip_id, row.cloud, row.region, row.instance, f"{row.chips:g}")
        if key in line_of:
            where = f"{path.name} line {line.number}"
            raise BrokenFile(where, " ".join(key), f"no offer twice (line {line_of[key]} has it)")
        line_of[key] = line.number
        rows.append(row)
    if not rows:
        raise BrokenFile("file", str(path), "at least one price below the header: it has none")
    offers = tuple(offer for row in rows if (offer := _offer(row)) is not None)
    commitments = tuple(c for row in rows for c in _commitments(row))
    notes = tuple(dict.fromkeys(note for row in rows for note in row.rates))
    return CustomPrices(path.name, offers, commitments, notes)


def laid_over(book: PriceBook, own: CustomPrices) -> PriceBook:
    """The book with own prices in place of those for the same chip, cloud, region and instance or instance size.

    Only the price of the same terms gives way: a contract for spot leaves the list's on-demand price standing.
    """
    offers = [kept for offer in book.offers if (kept := _without(offer, own.offers)) is not None]
    commitments = [c for c in book.commitments if not any(_same_commitment(c, mine) for mine in own.commitments)]
    counts = f"{len(own.offers)} offers and {len(own.commitments)} commitments of {own.file}"
    counts += "".join(f", {note}" for note in own.rates)
    origin = f"own prices ({counts}) over {book.origin}"
    return replace(
        book,
        offers=(*own.offers, *offers),
        commitments=(*own.commitments, *commitments),
        origin=origin,
        own=(*book.own, own.file),
    )


def custom_prices_csv(rows: Sequence[CustomPriceRow]) -> str:
    """Rows as the text of a file that `read_custom_prices` reads."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for r in rows:
        prices = ["" if usd is None else f"{usd:.10g}" for usd in r.prices]
        cells = [r.chip_id, r.cloud, r.region, r.instance, f"{r.chips:g}", *prices, r.date, r.source, r.note]
        writer.writerow(map(csv_cell, cells))
    return buffer.getvalue()


def _chip_id(line: Line) -> str:
    name = line.words("chip", "a chip such as h100")
    try:
        return exact_chip(name).id
    except UnknownName:
        raise UnknownName(line.where("chip"), name, load().chips, ": see `chipwise chips`") from None


def _row(line: Line, rates: Rates, today: date) -> CustomPriceRow:
    chip_id = _chip_id(line)
    cloud, region, instance = (line.words(name, f"the name of the {name}") for name in ("cloud", "region", "instance"))
    chips = line.number_of("chips", "the chips of one instance, above 0", MAX_CHIPS)
    amounts = [_amount(line, name, rates) if line[name] else None for name in PRICES]
    if not any(amounts):
        raise BrokenFile(f"{line.file} line {line.number} {', '.join(PRICES)}", "nothing", "one price at least")
    first, second, third, fourth = (None if amount is None else amount.usd(rates) for amount in amounts)
    written = dict.fromkeys(amount.currency for amount in amounts if amount is not None)
    notes = tuple(note for code in written if (note := rate_note(code, rates)))
    return CustomPriceRow(
        chip_id,
        cloud.lower(),
        region,
        instance,
        chips,
        (first, second, third, fourth),
        line.day("date", today),
        "; ".join(filter(None, (line["source"] or line.file, *notes))),
        line["note"],
        notes,
    )


def _amount(line: Line, column: str, rates: Rates) -> Amount:
    """A price with its currency: that of the cell, or else that of the line."""
    code = line[CURRENCY].upper() or USD
    usd_for_one(code, rates, line.where(CURRENCY))
    amount = line.amount_of(column, PRICE, lambda text, where: read_amount(text, where, PRICE, rates, PER_HOUR, code))
    if line[CURRENCY] and amount.currency != code:
        raise line.wrong(column, f"one currency: {CURRENCY} says {code}")
    if not 0 < amount.usd(rates) <= MAX_USD_H:
        raise line.wrong(column, PRICE)
    return amount


def _offer(row: CustomPriceRow) -> Offer | None:
    ondemand, spot = (None if usd is None else usd / row.chips for usd in row.prices[:2])
    if ondemand is None and spot is None:
        return None
    host = load().chips[row.chip_id].fabric.host_chips
    chips = max(row.chips, host) if row.instance == ANY else row.chips  # a price for every size is one for whole hosts
    return Offer(
        row.chip_id,
        row.cloud,
        row.region,
        row.instance,
        chips,
        ondemand,
        spot,
        row.date,
        row.source,
        row.note,
        own=True,
        joined=_joined(row),
    )


def _joined(row: CustomPriceRow) -> Joined:
    """Whether a fast fabric joins own instances: as for the cloud's type, else taken for granted."""
    known = joined(row.cloud, row.instance)
    return "yes" if known == "unknown" else known


def _commitments(row: CustomPriceRow) -> Iterable[Commitment]:
    ondemand = None if row.prices[0] is None else row.prices[0] / row.chips
    for years, usd in zip(YEARS, row.prices[2:], strict=True):
        if usd is not None:
            instance = "" if row.instance == ANY else row.instance
            yield Commitment(
                row.chip_id,
                row.cloud,
                row.region,
                instance,
                years,
                usd / row.chips,
                ondemand,
                row.date,
                row.source,
                row.note,
                own=True,
            )


def _without(offer: Offer, own: Sequence[Offer]) -> Offer | None:
    """An offer less the prices that own ones replace; None where nothing is left."""
    for mine in own:
        if not _same_offer(offer, mine):
            continue
        offer = replace(
            offer,
            ondemand_usd_per_chip_hour=None if mine.ondemand_usd_per_chip_hour else offer.ondemand_usd_per_chip_hour,
            spot_usd_per_chip_hour=None if mine.spot_usd_per_chip_hour else offer.spot_usd_per_chip_hour,
        )
    return offer if offer.ondemand_usd_per_chip_hour or offer.spot_usd_per_chip_hour else None


def _same_offer(offer: Offer, mine: Offer) -> bool:
    same_region = (offer.chip_id, offer.cloud, offer.region) == (mine.chip_id, mine.cloud, mine.region)
    named = offer.instance.lower() == mine.instance.lower() and not offer.instance.startswith("(")  # no type's name
    return same_region and (named or offer.chips == mine.chips or mine.instance == ANY)


def _same_commitment(c: Commitment, mine: Commitment) -> bool:
    same_terms = (c.chip_id, c.cloud, c.region, c.years) == (mine.chip_id, mine.cloud, mine.region, mine.years)
    return same_terms and (not c.instance or not mine.instance or c.instance.lower() == mine.instance.lower())
