"""An update of the price list: fetched, checked like the list shipped, compared, and written atomically."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from chipwise.catalog import Offer, load
from chipwise.catalog.joined import joined
from chipwise.errors import BrokenFile
from chipwise.io.atomic import atomic_write
from chipwise.present.blocks import Block, Text, section
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import plural, price
from chipwise.present.result import Result
from chipwise.prices.book import listed
from chipwise.prices.custom_prices import CustomPriceRow
from chipwise.prices.import_view import LEFT_OUT
from chipwise.prices.imported import LeftOut, Tally
from chipwise.prices.skypilot import read_skypilot
from chipwise.prices.stored import SKYPILOT, previous_file, read_stored, stored_file, stored_text, updated
from chipwise.prices.update.changes import ChipChange, changes, fault, untouched, usual_prices
from chipwise.prices.update.fetch import DEFAULT_URL, CatalogFile, catalog_files

MOST_FAULTY = 0.1  # of the offers: a list with more is another kind of file


def _usd(usd: float | None) -> str:
    return "-" if usd is None else price(usd)


CHANGES: list[Column[ChipChange]] = [
    Column("chip", lambda r: r.chip_id, "chip", words=True),
    Column("new", lambda r: r.new, "new"),
    Column("gone", lambda r: r.gone, "gone"),
    Column("up", lambda r: r.up, "up", help="offers whose price on demand rose"),
    Column("down", lambda r: r.down, "down"),
    Column("before_usd_per_chip_hour", lambda r: r.before, "cheapest before", lambda r: _usd(r.before)),
    Column("after_usd_per_chip_hour", lambda r: r.after, "after", lambda r: _usd(r.after)),
]


@dataclass(frozen=True, slots=True, repr=False)
class PriceUpdate(Result):
    """What an update did: how many offers from where, by chip what changed, and where the lists lie."""

    VERB: ClassVar[str] = "prices update"
    source: str
    clouds: tuple[str, ...]
    missing: tuple[str, ...]  # clouds that the source doesn't have
    offers: int
    dated: str  # the newest price
    changed: tuple[ChipChange, ...]
    left_out: tuple[LeftOut, ...]
    assumptions: tuple[str, ...]
    out: str
    previous: str  # "" where there was no list before

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "source": self.source,
            "clouds": list(self.clouds),
            "missing_clouds": list(self.missing),
            "offers": self.offers,
            "date": self.dated,
            "changes": [record(CHANGES, change) for change in self.changed],
            "left_out": [record(LEFT_OUT, reason) for reason in self.left_out],
            "assumptions": list(self.assumptions),
            "out": self.out,
            "previous": self.previous or None,
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a chip."""
        return [flat(CHANGES, change) for change in self.changed]

    def blocks(self) -> list[Block]:
        """For people."""
        head = f"{plural(self.offers, 'offer')} of {plural(len(self.clouds), 'cloud')}, the newest of {self.dated}"
        kept = f"; the list before is kept in {self.previous}" if self.previous else ""
        return [
            Text(f"{head}, from {self.source}", True),
            table(CHANGES, self.changed, title="What changed; US dollars per chip-hour on demand")
            if self.changed
            else Text("Nothing changed."),
            *([table(LEFT_OUT, self.left_out, title="Left out")] if self.left_out else []),
            *self._lost(),
            *section("Assumptions", self.assumptions),
            Text(f"In force from now on: {self.out}{kept}. To go back to the list shipped, delete it."),
        ]

    def _lost(self) -> list[Block]:
        lost = [change.chip_id for change in self.changed if change.before is not None and change.after is None]
        return [Text(f"No price on demand any more: {', '.join(lost)}")] if lost else []


def update_prices(
    source: str = "",
    cloud: str = "",
    dated: str = "",
    today: date | None = None,
    tell: Callable[[str], None] | None = None,
) -> PriceUpdate:
    """Fetch list prices and put them in force; the list before is kept beside them."""
    day, where = today or date.today(), source or DEFAULT_URL
    before = listed().offers
    with TemporaryDirectory(prefix="chipwise-prices-") as folder:
        files, missing = catalog_files(where, Path(folder), cloud, tell or (lambda _: None))
        offers, left_out, notes = _read(files, dated, day)
    good, faulty = _checked(offers, before, day)
    good, kept = _redated(good, before)
    if kept:
        notes.append(f"all prices of {', '.join(kept)} are as before: they keep their date")
    path, previous = stored_file(), previous_file()
    in_force = updated(read_stored(), good)
    path.parent.mkdir(parents=True, exist_ok=True)
    had = path.is_file()
    if had:
        shutil.copyfile(path, previous)
    atomic_write(stored_text(in_force).encode(), path)
    listed.cache_clear()
    return PriceUpdate(
        where,
        tuple(sorted({o.cloud for o in good})),
        tuple(missing),
        len(good),
        max(o.date for o in good),
        changes(before, updated(load().offers, in_force)),
        (*left_out, *faulty),
        tuple(notes),
        str(path),
        str(previous) if had else "",
    )


def _read(files: Sequence[CatalogFile], dated: str, today: date) -> tuple[list[Offer], tuple[LeftOut, ...], list[str]]:
    """The offers of all files, rows left out, and what was assumed."""
    offers: list[Offer] = []
    counts: dict[str, int] = {}
    notes: list[str] = []
    for file in files:
        imported = read_skypilot([file.path], file.cloud, dated or min(file.dated or today.isoformat(), str(today)))
        offers += [_offer(row) for row in imported.rows]
        for left in imported.left_out:
            counts[left.reason] = counts.get(left.reason, 0) + left.rows
    if not dated and not all(file.dated for file in files):
        notes.append("prices are dated by the day of the update: the source gives no date (--date says another)")
    many = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return offers, tuple(LeftOut(reason, rows) for reason, rows in many), notes


def _offer(row: CustomPriceRow) -> Offer:
    ondemand, spot = (None if usd is None else usd / row.chips for usd in row.prices[:2])
    return Offer(
        row.chip_id,
        row.cloud,
        row.region,
        row.instance,
        row.chips,
        ondemand,
        spot,
        row.date,
        row.source,
        row.note,
        joined=joined(row.cloud, row.instance),
    )


def _checked(offers: Sequence[Offer], before: Iterable[Offer], today: date) -> tuple[list[Offer], tuple[LeftOut, ...]]:
    """Offers that pass the checks of the list shipped, and how many don't; a list with many faults is refused."""
    usual, tally, good = usual_prices(before), Tally(), []
    for offer in offers:
        reason = fault(offer, usual, today)
        if reason:
            tally.add(reason)
        else:
            good.append(offer)
    faults = len(offers) - len(good)
    if faults > MOST_FAULTY * len(offers):
        worst = tally.left_out()[0]
        raise BrokenFile(
            "source",
            f"{faults:,} of {len(offers):,} offers",
            f"prices that can be listed; {worst.rows:,}: {worst.reason}",
        )
    return good, tally.left_out()


def _redated(offers: Sequence[Offer], before: Sequence[Offer]) -> tuple[list[Offer], list[str]]:
    """Offers of clouds whose prices all stand as before keep their date, and those clouds."""
    known = [o for o in before if o.source.lower().startswith(SKYPILOT)]
    dates = {cloud: min(o.date for o in known if o.cloud == cloud) for cloud in untouched(before, offers)}
    kept = sorted(cloud for cloud, day in dates.items() if any(o.cloud == cloud and o.date > day for o in offers))
    return [replace(o, date=min(o.date, dates.get(o.cloud, o.date))) for o in offers], kept
