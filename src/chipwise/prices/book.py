"""A price book: the offers in force, which are the catalog's list prices unless a company's own stand over them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any, Literal

from chipwise.catalog import Commitment, Offer, load
from chipwise.catalog.files import once
from chipwise.io.brief import brief
from chipwise.prices.stored import read_stored, updated

STALE_DAYS = 90  # a price that is older on the day of asking is stale: marked wherever it is shown
# Assumed (2026-11-18): twice as old, and older than the list by that, a price decides nothing. Every chip of the list
# that has a price has one within these days.
OUTDATED_DAYS = 2 * STALE_DAYS
LISTED = "list prices of the catalog"  # the origin of those shipped
FabricNeeded = Literal["known", "any"]
GIVEN = "given"  # the cloud of an offer that stands for a price given by hand


@brief
@dataclass(frozen=True)  # without slots: what was looked up is kept
class PriceBook:
    """Offers and commitments, and in words where they come from.

    Whether an offer counts hangs on the offer, the list's date and `oldest_days` alone, never on other offers: so one
    offer more can't raise a price, nor can one less lower it.
    """

    offers: tuple[Offer, ...]
    commitments: tuple[Commitment, ...]
    origin: str
    own: tuple[str, ...] = ()  # files of a company's own prices, the last laid over the others
    fabric: FabricNeeded = "known"  # above one instance, offers known to be joined alone, or also those not known
    made: date | None = None  # the day of the list; None: of its newest offer. A part of a list is as old as the list
    oldest_days: float = OUTDATED_DAYS  # list prices that are older than the list by more don't count

    def __post_init__(self) -> None:
        if self.made is None and self.offers:
            dates = [o.date for o in self.offers if not o.own] or [o.date for o in self.offers]
            object.__setattr__(self, "made", date.fromisoformat(max(dates)))

    def outdated(self, offer: Offer, spot: bool = False) -> bool:
        """Whether a list price is so old that it doesn't count; a company's own always does."""
        if offer.own or self.made is None:
            return False
        return (self.made - date.fromisoformat(offer.dated(spot))).days > self.oldest_days

    @cached_property
    def lookups(self) -> dict[object, Any]:
        """What was looked up in this book."""
        return {}

    def offers_for(
        self,
        chip_id: str,
        spot: bool = False,
        clouds: Iterable[str] | None = None,
        regions: Iterable[str] | None = None,
    ) -> tuple[Offer, ...]:
        """Offers for a chip, cheapest first and of equal prices the newest; with `spot` those with a spot price.

        Doubtful prices are left out.

        >>> listed().offers_for("v5e", clouds=["gcp"])[0].cloud, listed().offers_for("mi355x")
        ('gcp', ())
        """
        wanted_clouds = None if clouds is None else set(clouds)
        wanted_regions = None if regions is None else set(regions)
        offers = [
            (price, offer)
            for offer in self.offers
            if offer.chip_id == chip_id
            and not offer.doubtful
            and (wanted_clouds is None or offer.cloud in wanted_clouds)
            and (wanted_regions is None or offer.region in wanted_regions)
            and (price := offer.price(spot)) is not None
        ]
        offers.sort(key=lambda pair: (-pair[1].chips, pair[1].cloud, pair[1].region, pair[1].instance))
        offers.sort(key=lambda pair: pair[1].dated(spot), reverse=True)
        offers.sort(key=lambda pair: round(pair[0], 6))
        return tuple(offer for _, offer in offers)

    def commitments_for(
        self, chip_id: str, years: int, clouds: Iterable[str] | None = None, regions: Iterable[str] | None = None
    ) -> tuple[Commitment, ...]:
        """Commitments of so many years for a chip, cheapest first.

        >>> [c.usd_per_chip_hour < c.ondemand_usd_per_chip_hour for c in listed().commitments_for("v6e", 3)][0]
        True
        """
        wanted_clouds = None if clouds is None else set(clouds)
        wanted_regions = None if regions is None else set(regions)
        commitments = [
            c
            for c in self.commitments
            if c.chip_id == chip_id
            and c.years == years
            and (wanted_clouds is None or c.cloud in wanted_clouds)
            and (wanted_regions is None or c.region in wanted_regions)
        ]
        return tuple(sorted(commitments, key=lambda c: (c.usd_per_chip_hour, c.cloud, c.region)))


@once
def listed() -> PriceBook:
    """The list prices in force: those that come with this version, and over them those that `prices update` kept."""
    catalog = load()
    newer = read_stored()
    origin = LISTED
    if newer:
        origin += f", updated with prices up to {max(o.date for o in newer)}"
    return PriceBook(updated(catalog.offers, newer), catalog.commitments, origin)
