"""A price book: the offers in force, which are the catalog's list prices unless a company's own stand over them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property

from chipwise.catalog import Commitment, Offer, load

STALE_DAYS = 90


@dataclass(frozen=True)  # without slots: the newest date is looked up for every offer, and kept
class PriceBook:
    """Offers and commitments, and in words where they come from."""

    offers: tuple[Offer, ...]
    commitments: tuple[Commitment, ...]
    origin: str
    own: tuple[str, ...] = ()  # files of a company's own prices, the last laid over the others

    def offers_for(
        self,
        chip_id: str,
        spot: bool = False,
        clouds: Iterable[str] | None = None,
        regions: Iterable[str] | None = None,
    ) -> tuple[Offer, ...]:
        """Offers for a chip, cheapest first; with `spot` only those that have a spot price.

        >>> listed().offers_for("v5e", clouds=["gcp"])[0].cloud, listed().offers_for("v7x")
        ('gcp', ())
        """
        wanted_clouds = None if clouds is None else set(clouds)
        wanted_regions = None if regions is None else set(regions)
        offers = [
            (price, offer)
            for offer in self.offers
            if offer.chip_id == chip_id
            and (wanted_clouds is None or offer.cloud in wanted_clouds)
            and (wanted_regions is None or offer.region in wanted_regions)
            and (price := offer.price(spot)) is not None
        ]
        offers.sort(key=lambda pair: (pair[0], -pair[1].chips, pair[1].cloud, pair[1].region, pair[1].instance))
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
        offers = [offer for offer in self.offers if not offer.own] or self.offers
        return max(date.fromisoformat(offer.date) for offer in offers)

    def recent(self, offer: Offer) -> bool:
        """Whether an offer counts before older ones: a list price near the newest, and every own price."""
        return offer.own or (self.newest - date.fromisoformat(offer.date)).days <= STALE_DAYS


@cache
def listed() -> PriceBook:
    """The list prices that come with this version."""
    catalog = load()
    return PriceBook(catalog.offers, catalog.commitments, "list prices of the catalog")
