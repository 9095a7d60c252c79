"""How many chips somebody sells for one run: whole slices of TPUs, joined instances of other chips."""

from __future__ import annotations

from chipwise.catalog import Chip, Offer, load
from chipwise.catalog.offers import ANY
from chipwise.catalog.supply import USUAL_INSTANCES, most_instances
from chipwise.prices.book import PriceBook

UNBOUNDED = 10**9  # of a company's own offers: it knows how many it has


def supplied(offer: Offer, book: PriceBook) -> int:
    """Chips of an offer that one run can count on."""
    if offer.own or load().slices.get(offer.chip_id) is not None or counts_as_joined(offer, book):
        return sold(offer)
    return int(_chips(offer))


def sold(offer: Offer) -> int:
    """Chips of an offer that somebody without a contract can count on, joined or not."""
    if offer.own:
        return UNBOUNDED
    if load().slices.get(offer.chip_id) is not None:
        return (
            USUAL_INSTANCES * 8
        )  # Google bounds slices, not how many it sells at once: as many as of GPUs are assumed
    return int(_chips(offer) * most_instances(offer.cloud, offer.instance))


def _chips(offer: Offer) -> float:
    return load().chips[offer.chip_id].fabric.host_chips if offer.instance == ANY else offer.chips


def supply(chip: Chip, book: PriceBook) -> int:
    """The most chips that a listed offer supplies to one run; without an offer, as many hosts as usual.

    >>> from chipwise.prices.book import listed
    >>> chips = load().chips
    >>> supply(chips["h100"], listed()), supply(chips["v5e"], listed()), supply(chips["v5p"], listed())
    (2048, 2048, 2048)
    """
    offers = book.offers_for(chip.id)
    if not offers:
        return chip.fabric.host_chips * USUAL_INSTANCES
    return max(supplied(offer, book) for offer in offers)


def counts_as_joined(offer: Offer, book: PriceBook) -> bool:
    """Whether several instances of an offer count as joined: known to be, or not known and allowed."""
    return offer.joined == "yes" or (offer.joined == "unknown" and book.fabric == "any")
