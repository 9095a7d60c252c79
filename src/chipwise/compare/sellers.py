"""What the same chips cost at every seller: the cheapest, the median and the range, and who wins at the median."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from chipwise.compare.decision import R, Row, pick_of
from chipwise.compare.serving.fleet import rent
from chipwise.compare.serving.row import ServingRow
from chipwise.knowledge import Knowledge
from chipwise.prices.fit import fitting, paid_chips, usd_per_chip_hour
from chipwise.units import format_money

NAMED = 3  # sellers that a sentence names
EVEN = 0.01  # prices no further apart than this are called the same


@dataclass(frozen=True, slots=True)
class Sellers:
    """US dollars for an hour of the chips of a row, by seller, cheapest first; and per chip-hour of the row."""

    chips: int
    hourly: tuple[tuple[str, float], ...]

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
    replicas = isinstance(row, ServingRow) and not acc.shape
    together = row.split.chips if isinstance(row, ServingRow) and replicas else acc.count
    offers, _ = fitting(acc.chip, together, False, book, acc.count // acc.slices)
    least: dict[str, float] = {}
    for cloud in dict.fromkeys(offer.cloud for offer in offers):
        mine = tuple(offer for offer in offers if offer.cloud == cloud)
        if isinstance(row, ServingRow) and replicas:
            fleet = rent(acc.chip, together, row.fleet.replicas, False, knowledge.today, replace(book, offers=mine))
            usd = fleet.usd_per_hour
        else:
            usd = min(paid_chips(acc.chip, acc.count, o.chips) * usd_per_chip_hour(o, False) for o in mine)
        if usd is not None:
            least[cloud] = usd
    return Sellers(acc.count, tuple(sorted(least.items(), key=lambda pair: (pair[1], pair[0])))) if least else None


def at_median(row: R, sellers: Sellers) -> R:
    """The row at the median price of its sellers."""
    assert row.ondemand is not None
    cheapest = sellers.usd_per_chip_hour[0]
    priced: R = row.priced(row.ondemand.price.usd_per_chip_hour * sellers.median / cheapest)
    return priced


def sellers_in_words(rows: Sequence[R], pick: R, knowledge: Knowledge, objective: str) -> str:
    """Who sells the pick at which prices; on cost also the pick at the median price of every chip."""
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
    moved = [at_median(row, sellers) if (sellers := sellers_of(row, knowledge)) is not None else row for row in rows]
    now = pick_of(moved, "cost")
    if now is None or now.ondemand is None:
        return text
    if now.accelerators == pick.accelerators:
        return f"{text} At the median price of every chip it still wins, at {format_money(now.ondemand.usd.value)}."
    own = next(row for row in moved if row.accelerators == pick.accelerators)
    assert own.ondemand is not None
    if own.ondemand.usd.value <= now.ondemand.usd.value * (1 + EVEN):
        return f"{text} At the median price of every chip {now.accelerators} costs the same."
    theirs, ours = format_money(now.ondemand.usd.value), format_money(own.ondemand.usd.value)
    return (
        f"{text} At the median price of every chip {now.accelerators} wins at {theirs}, where "
        f"{pick.accelerators} costs {ours}."
    )


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
