"""A price book: the offers in force, which are the catalog's list prices unless a company's own stand over them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, cached_property
from typing import Literal

from chipwise.catalog import Commitment, Offer, load
from chipwise.prices.stored import read_stored, updated

STALE_DAYS = 90
LISTED = "list prices of the catalog"  # the origin of those shipped
FabricNeeded = Literal["known", "any"]
GIVEN = "given"  # the cloud of an offer that stands for a price given by hand


@dataclass(frozen=True)  # without slots: the newest date is looked up for every offer, and kept
class PriceBook:
    """Offers and commitments, and in words where they come from."""

    offers: tuple[Offer, ...]
    commitments: tuple[Commitment, ...]
    origin: str
    own: tuple[str, ...] = ()  # files of a company's own prices, the last laid over the others
    fabric: FabricNeeded = "known"  # above one instance, offers known to be joined alone, or also those not known

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

    @cached_property
    def newest(self) -> date:
        """The date of the newest list price; own prices don't make a list old."""
        listed_dates = [o.date for o in self.offers if not o.own] or [o.date for o in self.offers]
        return date.fromisoformat(max(listed_dates))

    def recent(self, offers: Iterable[Offer], days: int = STALE_DAYS) -> tuple[Offer, ...]:
        """Offers that count before older ones: list prices so near to the newest, and every own price."""
        oldest = (self.newest - timedelta(days=days)).isoformat() if self.offers else ""
        return tuple(o for o in offers if o.own or o.date >= oldest)


@cache
def listed() -> PriceBook:
    """The list prices in force: those that come with this version, and over them those that `prices update` kept."""
    catalog = load()
    newer = read_stored()
    origin = LISTED
    if newer:
        origin += f", updated with prices up to {max(o.date for o in newer)}"
    return PriceBook(updated(catalog.offers, newer), catalog.commitments, origin)
