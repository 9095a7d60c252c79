"""Price lists and imports as tables and records."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from chipwise.cli import records
from chipwise.present.blocks import Block, Table, Text
from chipwise.present.numbers import plural, price
from chipwise.prices import STALE_DAYS, PriceBook, is_stale
from chipwise.prices.custom_prices import PRICES
from chipwise.prices.imported import Imported
from chipwise.prices.lines import TERMS, Dated, PriceLine
from chipwise.units import format_money

KEYS = {"ondemand": "ondemand", "spot": "spot", "1y": "year1", "3y": "year3"}  # of TERMS in JSON and CSV


def blocks(book: PriceBook, lines: Sequence[PriceLine], asked: Sequence[str], all_of: int, today: date) -> list[Block]:
    """A price list for people; `asked` are the chips named, `all_of` the offers there are."""
    out: list[Block] = []
    if lines:
        out.append(_table(lines, today))
        out.append(
            Text(
                "US dollars per chip-hour; 1 year, 3 years: committed, paid for used or not. age: days since the date."
            )
        )
        out += _marks(lines, today)
    elif not asked:
        out.append(Text("No offer matches."))
    priced = {line.chip_id for line in lines}
    missing = [chip_id for chip_id in asked if chip_id not in priced]
    if missing:
        out.append(Text(f"{', '.join(missing)}: no public price that matches"))
    if len(lines) < all_of:
        out.append(Text(f"The cheapest of each cloud; all {all_of:,} offers: chipwise prices --all"))
    if book.own:
        out.append(Text(f"Prices: {book.origin}."))
    return out


def _table(lines: Sequence[PriceLine], today: date) -> Table:
    headers = ["chip", "cloud", "region", "instance", "chips", "on demand", "spot", "1 year", "3 years", "date", "age"]
    rows = [
        [
            line.chip_id,
            line.cloud,
            line.region or "any",
            line.instance or "any",
            "-" if line.chips is None else f"{line.chips:g}",
            *(_cell(line.on(terms), today) for terms in TERMS),
            line.date,
            f"{(today - date.fromisoformat(line.date)).days:,}",
        ]
        for line in lines
    ]
    words = frozenset({"chip", "cloud", "region", "instance", "date"})
    return Table(
        headers,
        rows,
        words,
        title=plural(len(rows), "offer"),
        under=("instance",),
        drop=("age", "chips", "3 years", "1 year"),
    )


def _cell(found: Dated | None, today: date) -> str:
    if found is None:
        return "-"
    return price(found.usd_per_chip_hour) + ("+" if found.own else "") + ("*" if is_stale(found.date, today) else "")


def _marks(lines: Sequence[PriceLine], today: date) -> list[Block]:
    prices = [found for line in lines for terms in TERMS if (found := line.on(terms)) is not None]
    stale = [found.date for found in prices if is_stale(found.date, today)]
    out: list[Block] = []
    if stale:
        oldest = f"{len(stale):,}, the oldest of {min(stale)}"
        out.append(Text(f"* marks stale prices, older than {STALE_DAYS} days: {oldest}"))
    if any(found.own for found in prices):
        out.append(Text("+ marks your own prices"))
    return out


def record(book: PriceBook, lines: Sequence[PriceLine], today: date) -> dict[str, Any]:
    """A price list as JSON."""
    return {
        **records.head("prices"),
        "prices": book.origin,
        "today": today.isoformat(),
        "offers": [
            {
                "chip": line.chip_id,
                "cloud": line.cloud,
                "region": line.region,
                "instance": line.instance,
                "chips": line.chips,
                **{KEYS[terms]: _price(line.on(terms), today) for terms in TERMS},
            }
            for line in lines
        ],
    }


def _price(found: Dated | None, today: date) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "usd_per_chip_hour": found.usd_per_chip_hour,
        "date": found.date,
        "age_days": (today - date.fromisoformat(found.date)).days,
        "stale": is_stale(found.date, today),
        "own": found.own,
        "source": found.source,
        "note": found.note,
    }


def flat(lines: Sequence[PriceLine], today: date) -> list[dict[str, Any]]:
    """A price list as rows of CSV, per chip-hour."""
    out = []
    for line in lines:
        found = {KEYS[terms]: line.on(terms) for terms in TERMS}
        out.append(
            {
                "chip": line.chip_id,
                "cloud": line.cloud,
                "region": line.region,
                "instance": line.instance,
                "chips": "" if line.chips is None else f"{line.chips:g}",
                **{f"{key}_usd_chip_h": "" if each is None else each.usd_per_chip_hour for key, each in found.items()},
                "date": line.date,
                "age_days": (today - date.fromisoformat(line.date)).days,
                "stale": " ".join(key for key, each in found.items() if each and is_stale(each.date, today)),
                "own": " ".join(key for key, each in found.items() if each and each.own),
                "source": next(each.source for each in found.values() if each),
            }
        )
    return out


def import_blocks(found: Imported, out: str) -> list[Block]:
    """What an importer found, for people."""
    headers = ["chip", "cloud", "region", "instance", "chips", "on demand", "spot", "1 year", "3 years", "date"]
    rows = [
        [
            r.chip_id,
            r.cloud,
            r.region,
            r.instance,
            f"{r.chips:g}",
            *("-" if usd is None else price(usd / r.chips) for usd in r.prices),
            r.date,
        ]
        for r in found.rows
    ]
    words = frozenset({"chip", "cloud", "region", "instance", "date", "left out because"})
    shown: list[Block] = [
        Table(
            headers,
            rows,
            words,
            title=f"{plural(len(rows), 'own price')} in {out}",
            under=("instance",),
            drop=("chips", "3 years", "1 year"),
        ),
        Text(f"US dollars per chip-hour, from {found.used:,} of {plural(found.read, 'row')}."),
    ]
    if found.left_out:
        left = [[each.reason, f"{each.rows:,}", _money(each.usd)] for each in found.left_out]
        shown.append(Table(["left out because", "rows", "cost"], left, words, title="Left out"))
    if found.assumptions:
        shown += [Text("Assumptions", True), *(Text(f"  {line}") for line in found.assumptions)]
    return [*shown, Text(f"Use it: chipwise prices --prices {out}; cost, compare, predict and chips take it too.")]


def _money(usd: float | None) -> str:
    if usd is None:
        return "-"
    return f"-{format_money(-usd)}" if usd < 0 else format_money(usd)


def import_record(found: Imported, kind: str, files: Sequence[str], out: str) -> dict[str, Any]:
    """What an importer found, as JSON."""
    return {
        **records.head("prices import"),
        "kind": kind,
        "files": list(files),
        "out": out,
        "rows_read": found.read,
        "rows_used": found.used,
        "own_prices": [
            {
                "chip": r.chip_id,
                "cloud": r.cloud,
                "region": r.region,
                "instance": r.instance,
                "chips": r.chips,
                **dict(zip(PRICES, r.prices, strict=True)),
                "date": r.date,
                "source": r.source,
                "note": r.note,
            }
            for r in found.rows
        ],
        "left_out": [{"reason": each.reason, "rows": each.rows, "usd": each.usd} for each in found.left_out],
        "assumptions": list(found.assumptions),
    }
