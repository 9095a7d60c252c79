"""The price list searched: offers for a chip, cheapest first."""

from __future__ import annotations

from collections.abc import Iterable

from chipwise.catalog.load import load
from chipwise.catalog.offers import Offer


def offers_for(
    chip_id: str,
    spot: bool = False,
    clouds: Iterable[str] | None = None,
    regions: Iterable[str] | None = None,
) -> tuple[Offer, ...]:
    """Offers for a chip, cheapest first; with `spot` only those that have a spot price."""
    wanted_clouds = None if clouds is None else set(clouds)
    wanted_regions = None if regions is None else set(regions)
    found = [
        (price, offer)
        for offer in load().offers
        if offer.chip_id == chip_id
        and (wanted_clouds is None or offer.cloud in wanted_clouds)
        and (wanted_regions is None or offer.region in wanted_regions)
        and (price := offer.price(spot)) is not None
    ]
    found.sort(key=lambda pair: (pair[0], -pair[1].chips, pair[1].cloud, pair[1].region, pair[1].instance))
    return tuple(offer for _, offer in found)


def cheapest(
    chip_id: str,
    spot: bool = False,
    clouds: Iterable[str] | None = None,
    regions: Iterable[str] | None = None,
) -> Offer | None:
    """The cheapest offer for a chip, or None where no price is listed.

    >>> cheapest("v5e", clouds=["gcp"]).cloud
    'gcp'
    >>> cheapest("v7x") is None
    True
    """
    found = offers_for(chip_id, spot, clouds, regions)
    return found[0] if found else None
