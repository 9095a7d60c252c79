"""The one price of chips: the cheapest offer that holds them, whole instances paid, for every verb that asks.

Chips that work together lie in one instance, or in instances of whole hosts that a fast fabric is known to join (those
whose network is not known only where the price book says so). Within an instance no fabric is asked for. Pieces that
need nothing of one another, such as replicas, may lie in any number of instances of any size. A TPU slice is one
instance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from math import ceil

from chipwise.catalog import Accelerators, Chip, Offer, load
from chipwise.catalog.offers import ANY
from chipwise.io.clock import day_of_asking
from chipwise.prices.book import STALE_DAYS, PriceBook, listed
from chipwise.prices.record import age_in_days
from chipwise.prices.supply import counts_as_joined, supplied

ALONE = "accelerator only"  # offers so noted ask for the host on top


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per chip-hour, the offer they come from, and how old that offer is."""

    usd_per_chip_hour: float
    spot: bool
    offer: Offer
    age_days: int  # from the price's date to the day of asking
    note: str = ""

    @property
    def stale(self) -> bool:
        """Whether the price is older than STALE_DAYS."""
        return self.age_days > STALE_DAYS

    @property
    def caveat(self) -> str:
        """What the reader should know of the price, in words; "" for nothing."""
        return "; ".join(part for part in (self.note, self.offer.note) if part)

    def __str__(self) -> str:
        o = self.offer
        dated = o.dated(self.spot)
        age = f"{dated}, stale" if self.stale else dated
        age += ", own price" if o.own else ""
        return f"${self.usd_per_chip_hour:.2f}/h ({o.cloud}, {o.region}, {age})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rental:
    """Whole instances (of TPUs: slices) of one offer that hold chips, and what a chip-hour of them costs."""

    price: Price
    size: int  # chips of one instance
    chips: int  # of all instances: paid for
    pieces: int  # that they hold, as many as asked for or more

    @property
    def usd_per_hour(self) -> float:
        """US dollars an hour of all chips that are paid for."""
        return self.chips * self.price.usd_per_chip_hour

    @property
    def usd_per_piece_hour(self) -> float:
        """US dollars an hour of one of the pieces that the instances hold."""
        return self.usd_per_hour / self.pieces


def paid_chips(chip: Chip, chips: int, instance: float) -> int:
    """Chips that are paid for: whole instances of so many; TPU slices and shares of a chip as they are.

    >>> paid_chips(load().chips["h100"], 9, 8.0), paid_chips(load().chips["v5e"], 16, 8.0)
    (16, 16)
    """
    if chip.family == "tpu" or instance < 1:
        return chips
    return int(-(-chips // instance) * instance)


def rentals(
    chip: Chip,
    chips: int,
    pieces: int = 1,
    spot: bool = False,
    today: date | None = None,
    book: PriceBook | None = None,
) -> tuple[Rental, ...]:
    """Every way to rent so many pieces of chips that work together, cheapest by the hour first.

    >>> h100 = load().chips["h100"]
    >>> {rental.price.offer.joined for rental in rentals(h100, 64)}
    {'yes'}
    """
    day, prices = today or day_of_asking(), book or listed()
    offers, note = fitting(chip, chips, spot, prices)
    out = [_rental(chip, o, chips, pieces, spot, day, note) for o in offers]
    return tuple(sorted(out, key=lambda rental: round(rental.usd_per_hour, 9)))


def cheapest(
    chip: Chip,
    chips: int,
    pieces: int = 1,
    spot: bool = False,
    today: date | None = None,
    book: PriceBook | None = None,
) -> Rental | None:
    """The cheapest way to rent so many pieces of chips that work together; None where nobody lists a price.

    >>> cheapest(load().chips["v5e"], 64, today=date(2026, 8, 30)).price.offer.instance
    'v5litepod-64'
    >>> cheapest(load().chips["mi355x"], 64) is None
    True
    """
    every = rentals(chip, chips, pieces, spot, today, book)
    return with_fresh(every[0], every) if every else None


def cheapest_of(
    acc: Accelerators, spot: bool = False, today: date | None = None, book: PriceBook | None = None
) -> Rental | None:
    """The cheapest way to rent chips that all work together, in the slices that are named."""
    return cheapest(acc.chip, acc.count // acc.slices, acc.slices, spot, today, book)


def price_of(
    chip: Chip, chips: int, spot: bool = False, today: date | None = None, book: PriceBook | None = None
) -> Price | None:
    """The price of a chip-hour of the cheapest way to rent so many chips that work together."""
    rental = cheapest(chip, chips, 1, spot, today, book)
    return None if rental is None else rental.price


PERCENT_UP_TO = 2.0  # times as much: above that nobody reckons in percent


def with_fresh(rental: Rental, others: Iterable[Rental]) -> Rental:
    """The rental; of a stale price it is said what the cheapest is that is not stale."""
    if not rental.price.stale:
        return rental
    alike = (r for r in others if not r.price.stale and r.pieces >= rental.pieces)  # that could stand in for it
    fresh = min(alike, key=lambda r: r.usd_per_hour, default=None)
    if fresh is None:
        return rental
    words = f"stale; with prices of the last {STALE_DAYS} days it costs {_times(fresh, rental)}: {fresh.price}"
    note = "; ".join(part for part in (words, rental.price.note) if part)
    return replace(rental, price=replace(rental.price, note=note))


def _times(fresh: Rental, stale: Rental) -> str:
    ratio = fresh.usd_per_hour / stale.usd_per_hour if stale.usd_per_hour else 1.0
    if ratio >= PERCENT_UP_TO:
        return f"{ratio:.3g} times as much"
    more = round((ratio - 1) * 100)
    return f"{more} % more" if more else "the same"


def priced_offer(offer: Offer, spot: bool, today: date, note: str = "") -> Price:
    """The price of an offer on a day."""
    return Price(usd_per_chip_hour(offer, spot), spot, offer, age_in_days(offer.dated(spot), today), note)


def fitting(chip: Chip, chips: int, spot: bool, book: PriceBook) -> tuple[tuple[Offer, ...], str]:
    """The offers that can hold so many chips that work together, cheapest first, and what is wrong with them all.

    Whether an offer can is a matter of the offer alone. What supplies fewer chips than asked for counts only where
    nobody supplies as many.

    >>> {o.joined for o in fitting(load().chips["h100"], 64, False, listed())[0]}
    {'yes'}
    """
    key = ("fitting", chip.id, chips, spot)
    if key not in book.lookups:
        book.lookups[key] = _fitting(chip, chips, spot, book)
    offers: tuple[tuple[Offer, ...], str] = book.lookups[key]
    return offers


def _fitting(chip: Chip, chips: int, spot: bool, book: PriceBook) -> tuple[tuple[Offer, ...], str]:
    offers = tuple(o for o in book.offers_for(chip.id, spot) if counts(o, spot, book))
    if chip.id in load().slices:
        return _slices(chip, chips, offers), ""
    held = tuple(o for o in offers if fits(o, chip, chips, book))
    enough = tuple(o for o in held if supplied(o, book) >= chips)
    short = held and not enough
    note = f"so many take a contract: no offer is known to join {chips:,} chips" if short else ""
    return enough or held, note


def counts(offer: Offer, spot: bool, book: PriceBook) -> bool:
    """Whether an offer may decide anything: neither outdated nor without its host. A company's own always may."""
    return offer.own or not (book.outdated(offer, spot) or offer.note.startswith(ALONE))


def fits(offer: Offer, chip: Chip, chips: int, book: PriceBook) -> bool:
    """Whether chips that work together fit into an instance, or into joined instances of whole hosts."""
    if _holds(offer, chips):
        return True
    return counts_as_joined(offer, book) and (offer.own or offer.chips >= chip.fabric.host_chips)


def usd_per_chip_hour(offer: Offer, spot: bool) -> float:
    """The price of an offer that has one."""
    usd = offer.price(spot)
    assert usd is not None  # offers_for left those without a price out
    return usd


def why_no_price(chip: Chip, chips: int, spot: bool, book: PriceBook) -> str:
    """Why no price is found for so many chips, in words.

    >>> why_no_price(load().chips["mi355x"], 8, False, listed())
    'mi355x has no public price in list prices of the catalog'
    """
    what = "spot price" if spot else "public price"
    offers = book.offers_for(chip.id, spot)
    if not offers:
        doubtful = next((o for o in book.offers if o.chip_id == chip.id and o.doubtful and o.price(spot)), None)
        if doubtful is not None:
            return f"the only {what} of {chip.id} is of low confidence{_counted(doubtful, spot)}"
        return f"{chip.id} has no {what} in {book.origin}"
    counted = [o for o in offers if counts(o, spot, book)]
    if not counted:
        current = [o for o in offers if not book.outdated(o, spot)]
        if current:
            return f"every {what} of {chip.id} leaves the host out{_counted(current[0], spot)}"
        age = age_in_days(max(o.dated(spot) for o in offers), day_of_asking())
        return f"every {what} of {chip.id} is outdated; --max-age {age}d counts the newest"
    if chip.id in load().slices:
        largest = max(counted, key=lambda o: o.chips)
        return f"no slice of {chip.id} over several hosts has a {what}, only {largest.instance}"
    if chips <= chip.fabric.host_chips:
        return f"no instance with a {what} of {chip.id} holds {chips:,} chips"
    unknown = sum(1 for o in counted if o.joined == "unknown" and o.chips >= chip.fabric.host_chips)
    offered = f"none of the {len(counted)} offers" if len(counted) > 1 else "no offer"
    fabric = f"{offered} with a {what} of {chip.id} is known to have a fast fabric, which {chips:,} chips need"
    many = f"{unknown} offers" if unknown > 1 else "one offer"
    return f"{fabric}; --fabric any counts {many} whose network is not known" if unknown else fabric


def _counted(offer: Offer, spot: bool) -> str:
    """An offer that doesn't count, and how to count it."""
    usd = usd_per_chip_hour(offer, spot)
    return f" (${usd:.2f}/h, {offer.cloud}); --price {offer.chip_id}={usd:.2f} counts it"


def fabric_in_words(book: PriceBook) -> str:
    """Which offers count for chips over several instances."""
    if book.fabric == "any":
        return "over several instances also offers count whose network is not known (--fabric any)"
    return "over several instances only offers known to be joined by a fast fabric count"


def _holds(offer: Offer, chips: int) -> bool:
    return offer.instance == ANY or offer.chips >= chips


def _rental(chip: Chip, offer: Offer, chips: int, pieces: int, spot: bool, today: date, note: str) -> Rental:
    """Whole instances of one offer; pieces smaller than an instance fill it."""
    price = priced_offer(offer, spot, today, note)
    if chip.id in load().slices or offer.instance == ANY or offer.chips < 1:
        return Rental(price=price, size=chips, chips=chips * pieces, pieces=pieces)
    size = int(offer.chips)
    inside = size // chips
    instances = ceil(pieces / inside) if inside else pieces * ceil(chips / size)
    return Rental(price=price, size=size, chips=instances * size, pieces=instances * inside if inside else pieces)


def _slices(chip: Chip, chips: int, offers: Iterable[Offer]) -> tuple[Offer, ...]:
    """The offers of slices for so many chips, by the name of the slice itself.

    A chip-hour costs the same in slices of every size over several hosts (it need not within one: v2-8 and v2-32), so
    the list leaves most sizes out.
    """
    needed = min(chips, load().slices[chip.id].max_chips)
    least = min(needed, chip.fabric.host_chips + 1)
    return tuple(_named(o, needed) for o in offers if o.own or _holds(o, least))


def _named(offer: Offer, chips: int) -> Offer:
    """An offer of another slice as one of so many chips."""
    if offer.chips == chips or offer.instance == ANY or offer.own or "-" not in offer.instance:
        return offer
    cores = load().slices[offer.chip_id].counts == "cores"
    name = f"{offer.instance.rpartition('-')[0]}-{chips * 2 if cores else chips}"
    note = "; ".join(part for part in (f"the price of {offer.instance}", offer.note) if part)
    return replace(offer, instance=name, chips=float(chips), note=note)
