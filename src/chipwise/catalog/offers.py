"""Prices: who rents which chip where, per chip-hour, each with its date."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Offer:
    """One line of a price list. Prices are US dollars per chip-hour; `date` is the age of the price."""

    chip_id: str
    cloud: str
    region: str
    instance: str
    chips: float  # chips in one instance; below 1 for a shared chip
    ondemand_usd_h: float  # per chip-hour
    spot_usd_h: float | None  # per chip-hour; None where no spot price is listed
    date: str
    source: str
    note: str = ""

    def price(self, spot: bool = False) -> float | None:
        """US dollars per chip-hour."""
        return self.spot_usd_h if spot else self.ondemand_usd_h


def offer_from_row(row: dict[str, str]) -> Offer:
    """An `Offer` from one row of offers.csv, whose prices are per instance."""
    chips = float(row["chips"])
    return Offer(
        chip_id=row["chip"],
        cloud=row["cloud"],
        region=row["region"],
        instance=row["instance"],
        chips=chips,
        ondemand_usd_h=float(row["ondemand_usd_h"]) / chips,
        spot_usd_h=float(row["spot_usd_h"]) / chips if row["spot_usd_h"] else None,
        date=row["date"],
        source=row["source"],
        note=row["note"],
    )


def offers_for(
    chip_id: str,
    spot: bool = False,
    clouds: Iterable[str] | None = None,
    regions: Iterable[str] | None = None,
) -> tuple[Offer, ...]:
    """Offers for a chip, cheapest first; with `spot` only those that have a spot price."""
    from chipwise.catalog.load import load  # load imports this module

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
