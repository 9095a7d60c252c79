"""What the same chips cost at every seller: the cheapest, the median and the range, and who wins at the median."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from chipwise.compare.decision import R, Row, pick_of
from chipwise.compare.serving.row import ServingRow
from chipwise.knowledge import Knowledge
from chipwise.prices.fit import rentals
from chipwise.units import format_money

NAMED = 3  # sellers that a sentence names
EVEN = 0.01  # prices no further apart than this are called the same


@dataclass(frozen=True, slots=True)
class Sellers:
    """US dollars for an hour of the chips of a row, by seller, cheapest first; and per chip-hour of the row."""

    chips: int
    hourly: tuple[tuple[str, float], ...]
    fresh_usd_per_hour: float | None = None  # of the cheapest whose price is not stale

    @property
    def usd_per_chip_hour(self) -> tuple[float, ...]:
        """Of each seller, cheapest first."""
        return tuple(usd / self.chips for _, usd in self.hourly)

    @property
    def median(self) -> float:
        """US dollars per chip-hour."""
        return median(self.usd_per_chip_hour)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        prices = self.usd_per_chip_hour
        return {
            "sellers": [cloud for cloud, _ in self.hourly],
            "cheapest_usd_per_chip_hour": prices[0],
            "median_usd_per_chip_hour": self.median,
            "highest_usd_per_chip_hour": prices[-1],
        }


def sellers_of(row: Row, knowledge: Knowledge) -> Sellers | None:
    """What every seller asks for the chips of a row on demand; None where it has no price."""
    acc, book = row.accelerators, knowledge.prices
    if row.ondemand is None:
        return None
    together, pieces = acc.count // acc.slices, acc.slices
    if isinstance(row, ServingRow) and not acc.shape:
        together, pieces = row.split.chips, row.fleet.replicas
    least: dict[str, float] = {}
    every = rentals(acc.chip, together, pieces, False, knowledge.today, book)
    for rental in every:  # cheapest first
        least.setdefault(rental.price.offer.cloud, rental.usd_per_hour)
    fresh = next((rental.usd_per_hour for rental in every if not rental.price.stale), None)
    hourly = tuple(sorted(least.items(), key=lambda pair: (pair[1], pair[0])))
    return Sellers(acc.count, hourly, fresh) if least else None


def at_price(row: R, sellers: Sellers, usd_per_chip_hour: float) -> R:
    """The row at another price of its sellers than the cheapest."""
    assert row.ondemand is not None
    cheapest = sellers.usd_per_chip_hour[0]
    priced: R = row.priced(row.ondemand.price.usd_per_chip_hour * usd_per_chip_hour / cheapest)
    return priced


def sellers_in_words(rows: Sequence[R], pick: R, knowledge: Knowledge, objective: str) -> str:
    """Who sells the pick at which prices; on cost also the pick without stale prices, and at median prices."""
    mine = sellers_of(pick, knowledge)
    if mine is None or pick.ondemand is None:
        return ""
    acc = pick.accelerators
    part = not acc.shape and acc.count % acc.chip.fabric.host_chips > 0
    text = _range(str(acc), mine, " used, in whole instances" if part else "")
    if pick.ondemand.price.caveat:
        text += f" Of its price: {pick.ondemand.price.caveat}."
    if objective != "cost":
        return text
    sold = [(row, sellers_of(row, knowledge)) for row in rows]
    if pick.ondemand.price.stale and mine.fresh_usd_per_hour is not None:
        text += _otherwise([at_fresh(row, sellers) for row, sellers in sold], pick, "Without stale prices")
    medians = [row if sellers is None else at_price(row, sellers, sellers.median) for row, sellers in sold]
    return text + _otherwise(medians, pick, "At the median price of every chip")


def at_fresh(row: R, sellers: Sellers | None) -> R:
    """The row at the cheapest price that is not stale; as it is where there is none."""
    if sellers is None or sellers.fresh_usd_per_hour is None:
        return row
    return at_price(row, sellers, sellers.fresh_usd_per_hour / sellers.chips)


def _otherwise(moved: Sequence[R], pick: R, prices: str) -> str:
    """The pick at other prices, and what the pick costs then."""
    now = pick_of(moved, "cost")
    if now is None or now.ondemand is None:
        return ""
    if now.accelerators == pick.accelerators:
        return f" {prices} it still wins, at {format_money(now.ondemand.usd.value)}."
    own = next(row for row in moved if row.accelerators == pick.accelerators)
    assert own.ondemand is not None
    if own.ondemand.usd.value <= now.ondemand.usd.value * (1 + EVEN):
        return f" {prices} {now.accelerators} costs the same."
    theirs, ours = format_money(now.ondemand.usd.value), format_money(own.ondemand.usd.value)
    return f" {prices} {now.accelerators} wins at {theirs}, where {pick.accelerators} costs {ours}."


def _range(name: str, sellers: Sellers, whole: str) -> str:
    """The sellers in words; `whole` says of a part of a host that all of an instance is paid for."""
    prices, clouds = sellers.usd_per_chip_hour, [cloud for cloud, _ in sellers.hourly]
    if len(clouds) == 1:
        return f"One seller of {name} is listed: {clouds[0]} at ${prices[0]:.2f}/h a chip{whole}."
    named = ", ".join(clouds[:NAMED]) + (f" and {len(clouds) - NAMED} more" if len(clouds) > NAMED else "")
    return (
        f"{len(clouds)} sellers of {name} are listed ({named}): ${prices[0]:.2f} to ${prices[-1]:.2f}/h a chip{whole}, "
        f"median ${sellers.median:.2f}."
    )
