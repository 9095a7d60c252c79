"""Which offers can hold chips that work together, and the one to take.

An instance that holds all of the chips always counts. Several instances count where a fast fabric is known to join
them, those whose network is not known only where the price book says so. A TPU slice is one instance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date

from chipwise.catalog import Chip, Offer, load
from chipwise.catalog.offers import ANY
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


def paid_chips(chip: Chip, chips: int, instance: float) -> int:
    """Chips that are paid for: whole instances of so many; TPU slices and shares of a chip as they are.

    >>> paid_chips(load().chips["h100"], 9, 8.0), paid_chips(load().chips["v5e"], 16, 8.0)
    (16, 16)
    """
    if chip.family == "tpu" or instance < 1:
        return chips
    return int(-(-chips // instance) * instance)


def price_of(
    chip: Chip,
    chips: int,
    spot: bool = False,
    today: date | None = None,
    book: PriceBook | None = None,
    whole_instances: bool = False,
    slice_chips: int = 0,
) -> Price | None:
    """The cheapest offer for so many chips that work together; None where nobody lists a price.

    Cheapest by the chip-hour; with `whole_instances` by what the instances cost that hold the chips. `slice_chips` are
    those of one TPU slice, where the chips are several slices.

    >>> price_of(load().chips["v5e"], 64, today=date(2026, 8, 30)).offer.instance
    'v5litepod-64'
    >>> price_of(load().chips["mi355x"], 64) is None
    True
    """
    offers, note = fitting(chip, chips, spot, book or listed(), slice_chips)
    if not offers:
        return None
    best = offers[0]
    if whole_instances:
        best = min(offers, key=lambda o: round(paid_chips(chip, chips, o.chips) * usd_per_chip_hour(o, spot), 9))
    return priced_offer(best, spot, today or date.today(), note)


def priced_offer(offer: Offer, spot: bool, today: date, note: str = "") -> Price:
    """The price of an offer on a day."""
    return Price(usd_per_chip_hour(offer, spot), spot, offer, age_in_days(offer.dated(spot), today), note)


def fitting(chip: Chip, chips: int, spot: bool, book: PriceBook, slice_chips: int = 0) -> tuple[tuple[Offer, ...], str]:
    """The offers that can hold so many chips that work together, cheapest first, and what is wrong with them all.

    Instances smaller than a host count only where nothing larger is listed, offers much older than the newest of the
    list only where nothing else is, or nothing as small; a company's own prices always count.

    >>> {o.joined for o in fitting(load().chips["h100"], 64, False, listed())[0]}
    {'yes'}
    """
    offers = book.offers_for(chip.id, spot)
    if chip.id in load().slices:
        return _slices(chip, slice_chips or chips, offers, book)
    offers = tuple(o for o in offers if _holds(o, chips) or counts_as_joined(o, book))
    host = min(chips, chip.fabric.host_chips)
    whole = tuple(o for o in offers if _holds(o, host))
    enough = tuple(o for o in whole or offers if supplied(o, book) >= chips)
    notes = [] if whole else [f"only instances of fewer than {host} chips are listed"]
    if offers and not enough:
        notes.append(f"so many take a contract: no offer is known to join {chips:,} chips")
    return _preferred(enough or whole or offers, book), "; ".join(notes)


def with_hosts(offers: tuple[Offer, ...]) -> tuple[Offer, ...]:
    """Without list prices that leave the host out, which look cheaper than they are; those where nothing else is."""
    return tuple(o for o in offers if o.own or not o.note.startswith(ALONE)) or offers


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
            usd = usd_per_chip_hour(doubtful, spot)
            said = f"the only {what} of {chip.id} is of low confidence (${usd:.2f}/h, {doubtful.cloud})"
            return f"{said}; --price {chip.id}={usd:.2f} counts it"
        return f"{chip.id} has no {what} in {book.origin}"
    unknown = sum(1 for o in offers if o.joined == "unknown")
    offered = f"none of the {len(offers)} offers" if len(offers) > 1 else "no offer"
    said = f"{offered} with a {what} of {chip.id} is known to have a fast fabric, which {chips:,} chips need"
    many = f"{unknown} offers" if unknown > 1 else "one offer"
    return f"{said}; --fabric any counts {many} whose network is not known" if unknown else said


def fabric_in_words(book: PriceBook) -> str:
    """Which offers count for chips over several instances."""
    if book.fabric == "any":
        return "over several instances also offers count whose network is not known (--fabric any)"
    return "over several instances only offers known to be joined by a fast fabric count"


def _holds(offer: Offer, chips: int) -> bool:
    return offer.instance == ANY or offer.chips >= chips


def _preferred(offers: tuple[Offer, ...], book: PriceBook) -> tuple[Offer, ...]:
    """Recent offers, and those with the host in the price, where there are any.

    Older ones, up to twice as far from the newest, count where they are smaller than every recent one: whoever needs
    two chips should not pay for eight since the list of the seller of two is some weeks older.
    """
    recent = book.recent(offers)
    if not recent:
        return with_hosts(offers)
    least = min(o.chips for o in recent)
    smaller = [o for o in book.recent(offers, 2 * STALE_DAYS) if o.chips < least]
    return with_hosts(tuple(o for o in offers if o in recent or o in smaller))


def _slices(chip: Chip, chips: int, offers: tuple[Offer, ...], book: PriceBook) -> tuple[tuple[Offer, ...], str]:
    """The offers of slices of at least so many chips, by the name of the slice itself: a chip-hour costs the same."""
    most = load().slices[chip.id].max_chips
    needed = min(chips, most)
    holding = tuple(_named(o, needed) for o in offers if o.own or _holds(o, needed))
    note = "" if holding else f"only slices of fewer than {needed} chips are listed"
    return _preferred(holding or offers, book), note


def _named(offer: Offer, chips: int) -> Offer:
    """An offer of a larger slice as one of so many chips."""
    if offer.chips == chips or offer.instance == ANY or offer.own or "-" not in offer.instance:
        return offer
    cores = load().slices[offer.chip_id].counts == "cores"
    name = f"{offer.instance.rpartition('-')[0]}-{chips * 2 if cores else chips}"
    note = "; ".join(part for part in (f"the price of {offer.instance}", offer.note) if part)
    return replace(offer, instance=name, chips=float(chips), note=note)
