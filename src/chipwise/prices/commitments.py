"""Commitments that count: with the host, no older than a year, not of low confidence, below the price on demand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date

from chipwise.catalog import Chip, Commitment, instances
from chipwise.catalog.instances import squashed
from chipwise.catalog.joined import joined
from chipwise.catalog.offers import DOUBTFUL
from chipwise.prices.book import PriceBook
from chipwise.prices.fit import ALONE, price_of
from chipwise.prices.record import age_in_days

OLDEST_DAYS = 365


@dataclass(frozen=True, slots=True)
class Commitments:
    """Those that count, cheapest first, and in words why others don't."""

    counted: tuple[Commitment, ...]
    left_out: tuple[str, ...]


def commitments_that_count(
    book: PriceBook, chip: Chip, years: int, today: date, clouds: Iterable[str] | None = None
) -> Commitments:
    """Commitments of so many years for a chip; a company's own always count.

    >>> from chipwise.catalog import load
    >>> from chipwise.prices.book import listed
    >>> found = commitments_that_count(listed(), load().chips["h100"], 1, date(2026, 11, 16))
    >>> "oblivus" in {c.cloud for c in found.counted}, [words for words in found.left_out if "oblivus" in words]
    (False, ['oblivus at $3.62/h of 2024-02-26: older than a year'])
    """
    wanted = None if clouds is None else set(clouds)
    offers = book.offers if wanted is None else tuple(o for o in book.offers if o.cloud in wanted)
    now = price_of(chip, chip.fabric.host_chips, False, today, replace(book, offers=offers))
    counted: list[Commitment] = []
    left_out: dict[tuple[str, str], list[Commitment]] = {}
    for c in book.commitments_for(chip.id, years, wanted):
        without = (c.ondemand_usd_per_chip_hour, now.usd_per_chip_hour if now else None)
        against = min((usd for usd in without if usd is not None), default=None)
        if c.own:
            counted.append(c)
        elif age_in_days(c.date, today) > OLDEST_DAYS:
            left_out.setdefault((c.cloud, "older than a year"), []).append(c)
        elif c.note.startswith(DOUBTFUL):
            left_out.setdefault((c.cloud, "of low confidence"), []).append(c)
        elif c.note.startswith(ALONE):
            left_out.setdefault((c.cloud, "without the host"), []).append(c)
        elif against is not None and c.usd_per_chip_hour >= against:
            left_out.setdefault((c.cloud, f"not below ${against:.2f}/h on demand"), []).append(c)
        else:
            counted.append(c)
    return Commitments(tuple(counted), tuple(f"{_named(many)}: {why}" for (_, why), many in left_out.items()))


def instance_chips(c: Commitment, book: PriceBook) -> float:
    """The chips of the instance of a commitment; 1 where none is known: it is for any number of chips."""
    if not c.instance:
        return 1.0
    named = instances().get((c.cloud, squashed(c.instance)))
    mine = (o.chips for o in book.offers if (o.cloud, o.instance) == (c.cloud, c.instance))
    return float(named.chips) if named else next(mine, 1.0)


def may_be_joined(c: Commitment) -> bool:
    """Whether several instances of a commitment work together: unless they are known to stand alone."""
    return c.own or joined(c.cloud, c.instance) != "no"


def _named(commitments: list[Commitment]) -> str:
    """Commitments of one cloud by the cheapest, which comes first."""
    c, more = commitments[0], len(commitments) - 1
    where = f"{c.cloud} {c.region}" if c.region else c.cloud
    others = f" and {more} more" if more else ""
    return f"{where} at ${c.usd_per_chip_hour:.2f}/h of {c.date}{others}"
