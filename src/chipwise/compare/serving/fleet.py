"""Chips rented for equal replicas: whole instances of the cheapest offer, or slices that exist."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from math import ceil

from chipwise.catalog import Accelerators, Chip, load
from chipwise.compare.terms import at_least
from chipwise.prices import Price, PriceBook, Rental
from chipwise.prices.fit import cheapest_of, rentals, with_fresh


@dataclass(frozen=True, slots=True)
class Fleet:
    """Chips, the replicas that they hold, and what a chip-hour costs."""

    accelerators: Accelerators
    replicas: int
    price: Price | None  # None: no public price
    idle: int = 0  # chips of the instances beside them, which are paid for

    @property
    def paid_chips(self) -> int:
        """All chips that are paid for."""
        return self.accelerators.count + self.idle

    @property
    def usd_per_hour(self) -> float | None:
        """US dollars an hour of all chips that are paid for."""
        return None if self.price is None else self.paid_chips * self.price.usd_per_chip_hour


def rent(
    chip: Chip,
    each: int,
    replicas: int,
    spot: bool = False,
    today: date | None = None,
    book: PriceBook | None = None,
    by_replica: bool = False,
) -> Fleet:
    """The cheapest chips that hold at least so many replicas of `each` chips; without a price the fewest.

    Replicas fill whole instances; cheapest is by the hour, or with `by_replica` by the hour of a replica, which is what
    decides where more of them end sooner.

    >>> fleet = rent(load().chips["v5e"], 8, 3)
    >>> str(fleet.accelerators), fleet.replicas
    ('v5e:3*2x4', 3)
    """
    if chip.id in load().slices:
        acc = slices(chip, each, replicas)
        return Fleet(acc, _inside(acc, each), _price(cheapest_of(acc, spot, today, book)))
    every = rentals(chip, each, replicas, spot, today, book)
    if not every:
        acc = at_least(chip, each * replicas)
        return Fleet(acc, acc.count // each, None)
    best = every[0]
    if by_replica:
        best = min(every, key=lambda rental: (round(rental.usd_per_piece_hour, 9), rental.chips))
    best = with_fresh(best, every)
    return Fleet(Accelerators(chip, best.chips), best.pieces, best.price)


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
    acc: Accelerators, each: int, spot: bool = False, today: date | None = None, book: PriceBook | None = None
) -> Fleet:
    """These chips with as many replicas as they hold (0 where none does), paid for in whole instances."""
    if acc.shape:
        return Fleet(acc, _inside(acc, each), _price(cheapest_of(acc, spot, today, book)))
    inside = acc.count // each
    every = []
    for rental in rentals(acc.chip, min(each, acc.count), max(1, inside), spot, today, book):
        spare = acc.count - inside * each  # chips that were named and hold no replica are rented too
        paid = max(rental.chips, ceil(acc.count / rental.size) * rental.size) if spare else rental.chips
        every.append(replace(rental, chips=paid))
    if not every:
        return Fleet(acc, inside, None)
    best = with_fresh(min(every, key=lambda rental: round(rental.usd_per_hour, 9)), every)
    return Fleet(acc, inside, best.price, best.chips - acc.count)


def _inside(acc: Accelerators, each: int) -> int:
    """Replicas that slices hold."""
    return acc.count // acc.slices // each * acc.slices


def _price(rental: Rental | None) -> Price | None:
    return None if rental is None else rental.price
