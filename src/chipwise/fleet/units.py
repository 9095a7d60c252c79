"""What a chip can be had in: every size of instance, at its cheapest, on one pricing model.

These are the instances from which `compare` and `cost` take the cheapest, so that a plan has every unit to choose from
that they would rent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date

from chipwise.catalog import Chip, Commitment, Offer, load
from chipwise.catalog.offers import ANY
from chipwise.knowledge import Knowledge
from chipwise.prices import PriceBook, is_stale
from chipwise.prices.commitments import commitments_that_count, instance_chips, may_be_joined
from chipwise.prices.fit import counts, fitting, usd_per_chip_hour
from chipwise.prices.supply import counts_as_joined

YEARS = {"1y": 1, "3y": 3}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the price of a supply comes from."""

    cloud: str
    region: str
    instance: str
    usd_per_chip_hour: float  # 0 where it is bought
    date: str
    source: str
    stale: bool
    fresh: str = ""  # of a stale price: what the cheapest is that could stand in for it and is not stale


@dataclass(frozen=True, slots=True)
class Unit:
    """An instance that can be had."""

    chips: int
    joined: bool  # whether several can work together
    origin: Origin

    @property
    def usd_per_hour(self) -> float:
        """US dollars an hour of all its chips."""
        return self.chips * self.origin.usd_per_chip_hour

    def replaces(self, other: Unit) -> bool:
        """Whether it can stand in for another wherever that is used, at no higher price."""
        if other.joined and not self.joined:
            return False
        if self.chips >= other.chips and self.usd_per_hour <= other.usd_per_hour:
            return True
        parts = self.joined and other.chips % self.chips == 0
        return parts and self.origin.usd_per_chip_hour <= other.origin.usd_per_chip_hour


def units(
    chip: Chip, terms: str, knowledge: Knowledge, clouds: Sequence[str] | None, regions: Sequence[str] | None
) -> tuple[Unit, ...]:
    """The units of a chip on one pricing model, of clouds and regions or of all: none that another could replace.

    >>> h100 = load().chips["h100"]
    >>> {unit.chips for unit in units(h100, "ondemand", Knowledge(), None, None)} >= {1, 2, 8}
    True
    """
    book = within(knowledge.prices, clouds, regions)
    if terms in YEARS:
        every = list(_committed(chip, YEARS[terms], knowledge, clouds, regions))
    elif chip.id in load().slices:
        every = list(_slices(chip, terms == "spot", book, knowledge.today))
    else:
        every = list(_instances(chip, terms == "spot", book, knowledge.today))
    out: list[Unit] = []
    for unit in sorted(every, key=lambda u: (u.origin.usd_per_chip_hour, not u.joined, -u.chips)):
        if not any(other.replaces(unit) for other in out):
            out = [other for other in out if not unit.replaces(other)] + [unit]
    return tuple(sorted((_with_fresh(u, every) for u in out), key=lambda u: (-u.chips, u.origin.usd_per_chip_hour)))


def _with_fresh(unit: Unit, every: Iterable[Unit]) -> Unit:
    """The unit; of a stale price it is said what one of at least its size costs that is not stale."""
    able = [u for u in every if not u.origin.stale and u.chips >= unit.chips and u.joined >= unit.joined]
    if not unit.origin.stale or not able:
        return unit
    o = min((u.origin for u in able), key=lambda origin: origin.usd_per_chip_hour)
    fresh = f"${o.usd_per_chip_hour:.2f}/h ({o.cloud}, {o.region or 'any'}, {o.date})"
    return replace(unit, origin=replace(unit.origin, fresh=fresh))


def within(book: PriceBook, clouds: Sequence[str] | None, regions: Sequence[str] | None) -> PriceBook:
    """The offers of clouds and regions."""
    return replace(
        book,
        offers=tuple(
            o for o in book.offers if (clouds is None or o.cloud in clouds) and (regions is None or o.region in regions)
        ),
    )


def _instances(chip: Chip, spot: bool, book: PriceBook, today: date) -> Iterable[Unit]:
    for o in book.offers_for(chip.id, spot):
        if not counts(o, spot, book) or o.chips < 1:
            continue
        if o.instance == ANY:
            yield Unit(1, True, _origin(o, spot, today))
        else:
            together = counts_as_joined(o, book) and (o.own or o.chips >= chip.fabric.host_chips)
            yield Unit(int(o.chips), together, _origin(o, spot, today))


def _slices(chip: Chip, spot: bool, book: PriceBook, today: date) -> Iterable[Unit]:
    """Slices within a host, and hosts of larger slices."""
    legal, host = load().slices[chip.id], chip.fabric.host_chips
    for chips in (n for n in legal.chip_counts() if n <= host):
        for o in fitting(chip, chips, spot, book)[0][:1]:
            yield Unit(chips, False, _origin(o, spot, today))
    for o in fitting(chip, min(2 * host, legal.max_chips), spot, book)[0][:1]:
        yield Unit(host, True, _origin(o, spot, today))


def _committed(
    chip: Chip, years: int, knowledge: Knowledge, clouds: Sequence[str] | None, regions: Sequence[str] | None
) -> Iterable[Unit]:
    """Commitments; one for no instance that is known is for any number of chips."""
    slices = chip.id in load().slices
    for c in commitments_that_count(knowledge.prices, chip, years, knowledge.today, clouds).counted:
        if regions is not None and c.region not in ("", *regions):
            continue
        chips = max(1, int(instance_chips(c, knowledge.prices)))
        together = slices or may_be_joined(c)
        yield Unit(min(chips, chip.fabric.host_chips) if slices else chips, together, _committed_origin(c, knowledge))


def _origin(o: Offer, spot: bool, today: date) -> Origin:
    usd, dated = usd_per_chip_hour(o, spot), o.dated(spot)
    return Origin(o.cloud, o.region, o.instance, usd, dated, o.source, is_stale(dated, today))


def _committed_origin(c: Commitment, knowledge: Knowledge) -> Origin:
    stale = is_stale(c.date, knowledge.today)
    return Origin(c.cloud, c.region, c.instance, c.usd_per_chip_hour, c.date, c.source, stale)
