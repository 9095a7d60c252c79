"""What an update changes: offers that are new, gone, up and down, by chip; and the checks that a list must pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import median

from chipwise.catalog import Offer, load
from chipwise.prices.stored import SKYPILOT, offer_key

LEAST_USD, MOST_USD = 0.01, 50.0  # of a chip-hour: the cheapest and most expensive offers shipped are 0.04 and 27
MOST_SPREAD = 10.0  # times the median of the list in force, or a part of it: another unit or a slip
SAME = 1e-6  # two prices are one


@dataclass(frozen=True, slots=True)
class ChipChange:
    """What changed for a chip, and its cheapest prices on demand before and after."""

    chip_id: str
    new: int
    gone: int
    up: int
    down: int
    before: float | None
    after: float | None


def fault(offer: Offer, usual: dict[str, float], today: date) -> str:
    """Why an offer can't be listed, in words; "" where it can.

    >>> from dataclasses import replace
    >>> good = next(o for o in load().offers if o.chip_id == "v5e")
    >>> day = date.fromisoformat(good.date)
    >>> fault(good, {}, day), fault(replace(good, ondemand_usd_per_chip_hour=700.0), {}, day)
    ('', 'a price that no chip-hour has')
    """
    prices = [usd for usd in (offer.ondemand_usd_per_chip_hour, offer.spot_usd_per_chip_hour) if usd is not None]
    if offer.chip_id not in load().chips:
        return "an unknown chip"
    if not prices:
        return "no price"
    if not all(LEAST_USD <= usd <= MOST_USD for usd in prices):
        return "a price that no chip-hour has"
    if date.fromisoformat(offer.date) > today:
        return "a date to come"
    known, usd = usual.get(offer.chip_id), offer.ondemand_usd_per_chip_hour
    if known is not None and usd is not None and not known / MOST_SPREAD <= usd <= known * MOST_SPREAD:
        return f"more than {MOST_SPREAD:g} times the usual price of the chip, or less than a {MOST_SPREAD:g}th"
    return ""


def usual_prices(offers: Iterable[Offer]) -> dict[str, float]:
    """The median price on demand of each chip."""
    by_chip: dict[str, list[float]] = {}
    for o in offers:
        if o.ondemand_usd_per_chip_hour is not None:
            by_chip.setdefault(o.chip_id, []).append(o.ondemand_usd_per_chip_hour)
    return {chip_id: median(prices) for chip_id, prices in by_chip.items()}


def changes(before: Sequence[Offer], after: Sequence[Offer]) -> tuple[ChipChange, ...]:
    """What changed between two lists, by chip, for the chips of which something did."""
    old, new = ({offer_key(o): o for o in offers} for offers in (before, after))
    out = []
    for chip_id in load().chips:
        mine = [key for key in old.keys() | new.keys() if key[0] == chip_id]
        both = [(_usd(old[key]), _usd(new[key])) for key in mine if key in old and key in new]
        change = ChipChange(
            chip_id,
            sum(key not in old for key in mine),
            sum(key not in new for key in mine),
            sum(after_usd > before_usd * (1 + SAME) for before_usd, after_usd in both),
            sum(after_usd < before_usd * (1 - SAME) for before_usd, after_usd in both),
            _cheapest(old[key] for key in mine if key in old),
            _cheapest(new[key] for key in mine if key in new),
        )
        if change.new or change.gone or change.up or change.down:
            out.append(change)
    return tuple(out)


def untouched(before: Sequence[Offer], after: Sequence[Offer]) -> Iterator[str]:
    """Clouds whose offers of SkyPilot's list all stand in the new one at the same prices: its file is as it was."""
    new = {offer_key(o): o for o in after}
    for cloud in dict.fromkeys(o.cloud for o in after):
        mine = [o for o in before if o.cloud == cloud and o.source.lower().startswith(SKYPILOT)]
        if mine and all((there := new.get(offer_key(o))) is not None and _same(o, there) for o in mine):
            yield cloud


def _same(a: Offer, b: Offer) -> bool:
    pairs = (
        (a.ondemand_usd_per_chip_hour, b.ondemand_usd_per_chip_hour),
        (a.spot_usd_per_chip_hour, b.spot_usd_per_chip_hour),
    )
    return all((x is None) == (y is None) and abs((x or 0.0) - (y or 0.0)) < SAME for x, y in pairs)


def _usd(offer: Offer) -> float:
    return offer.ondemand_usd_per_chip_hour or offer.spot_usd_per_chip_hour or 0.0


def _cheapest(offers: Iterable[Offer]) -> float | None:
    prices = [o.ondemand_usd_per_chip_hour for o in offers if o.ondemand_usd_per_chip_hour is not None]
    return min(prices, default=None)
