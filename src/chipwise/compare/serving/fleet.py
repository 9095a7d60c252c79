"""Chips rented for equal replicas: whole instances of the cheapest offer, or slices that exist."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from math import ceil

from chipwise.catalog import Accelerators, Chip, Offer, load
from chipwise.catalog.offers import ANY
from chipwise.compare.terms import at_least
from chipwise.prices import Price, PriceBook, listed, price_of
from chipwise.prices.fit import fitting, priced_offer


@dataclass(frozen=True, slots=True)
class Fleet:
    """Chips, the replicas that they hold, and what a chip-hour costs."""

    accelerators: Accelerators
    replicas: int
    price: Price | None  # None: no public price
    idle: int = 0  # chips of the instances beside them, which are paid for

    @property
    def usd_per_hour(self) -> float | None:
        """US dollars an hour of all chips that are paid for."""
        return None if self.price is None else (self.accelerators.count + self.idle) * self.price.usd_per_chip_hour


def rent(
    chip: Chip, each: int, replicas: int, spot: bool = False, today: date | None = None, book: PriceBook | None = None
) -> Fleet:
    """The cheapest chips that hold at least so many replicas of `each` chips; without a price the fewest.

    Replicas answer by themselves, so instances smaller than a host do where they hold one; a replica over several
    instances needs whole hosts that can be joined.

    >>> fleet = rent(load().chips["v5e"], 8, 3)
    >>> str(fleet.accelerators), fleet.replicas
    ('v5e:3*2x4', 3)
    """
    legal = load().slices.get(chip.id)
    if legal is not None:
        acc = slices(chip, each, replicas)
        return Fleet(
            acc,
            acc.count // each if acc.slices == 1 else acc.count // acc.slices // each * acc.slices,
            price_of(chip, acc.count, spot, today, book, slice_chips=acc.count // acc.slices),
        )
    offers = [o for o in fitting(chip, each, spot, book or listed())[0] if o.chips >= 1]
    if not offers:
        acc = at_least(chip, each * replicas)
        return Fleet(acc, acc.count // each, None)
    when = today or date.today()
    fleets = [_whole(chip, offer, each, replicas, spot, when) for offer in offers]
    return min(fleets, key=lambda f: (round(f.usd_per_hour or 0.0, 6), f.accelerators.count))


def slices(chip: Chip, each: int, replicas: int) -> Accelerators:
    """A slice for every replica, or one for all where that takes fewer chips.

    >>> v5p = load().chips["v5p"]
    >>> str(slices(v5p, 2, 5)), str(slices(v5p, 8, 3))
    ('v5p:3*2x2x1', 'v5p:3*2x2x2')
    """
    legal = load().slices[chip.id]
    own = next(n for n in legal.chip_counts() if n >= each)
    many = ceil(replicas / (own // each))
    apart = Accelerators(chip, own * many, legal.shape_for(own) or (), many)
    joined = at_least(chip, each * replicas)
    return joined if joined.count < apart.count else apart


def held(
    acc: Accelerators, each: int, today: date | None = None, spot: bool = False, book: PriceBook | None = None
) -> Fleet:
    """These chips with as many replicas as they hold (0 where none does), paid for in whole instances."""
    if acc.shape:
        own = acc.count // acc.slices
        return Fleet(acc, own // each * acc.slices, price_of(acc.chip, own, spot, today, book, slice_chips=own))
    inside = acc.count // each
    rented = rent(acc.chip, each, inside, spot, today, book) if inside else None
    if rented is None or rented.price is None or rented.price.offer.chips < 1:
        return Fleet(acc, inside, price_of(acc.chip, min(each, acc.count), spot, today, book))
    return Fleet(acc, inside, rented.price, max(0, rented.accelerators.count - acc.count))


def _whole(chip: Chip, offer: Offer, each: int, replicas: int, spot: bool, today: date) -> Fleet:
    """Whole instances of one offer; the replicas fill them."""
    size = each if offer.instance == ANY else int(offer.chips)
    inside = size // each
    many = ceil(replicas / inside) if inside else replicas * ceil(each / size)
    price = priced_offer(offer, spot, today)
    return Fleet(Accelerators(chip, many * size), many * inside if inside else replicas, price)
