"""Prices: who rents which chip where, per chip-hour, each with its date."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chipwise.catalog.joined import Joined, joined

DOUBTFUL = "low confidence"  # offers so noted count for nothing
ANY = "any"  # the instance of a price for every size


@dataclass(frozen=True, slots=True, repr=False)
class Offer:
    """One line of a price list. Prices are US dollars per chip-hour; `date` is the age of the price."""

    chip_id: str
    cloud: str
    region: str
    instance: str
    chips: float  # chips in one instance; below 1 for a shared chip
    ondemand_usd_per_chip_hour: float | None  # per chip-hour; None where only a company's own spot price is known
    spot_usd_per_chip_hour: float | None  # per chip-hour; None where no spot price is listed
    date: str
    source: str
    note: str = ""
    own: bool = False  # a company's own price, not a list price
    joined: Joined = "unknown"  # whether a fast fabric joins several of these instances
    spot_date: str = ""  # the age of the spot price where it is another

    def __repr__(self) -> str:
        return f"<Offer {self.chip_id}:{self.chips:g} {self.cloud} {self.region} {self.instance}>"

    @property
    def doubtful(self) -> bool:
        """Whether its note says that the price is second-hand and of low confidence: listed, but it decides nothing."""
        return self.note.startswith(DOUBTFUL) and not self.own

    def dated(self, spot: bool = False) -> str:
        """The date of the price."""
        return self.spot_date or self.date if spot else self.date

    def price(self, spot: bool = False) -> float | None:
        """US dollars per chip-hour."""
        return self.spot_usd_per_chip_hour if spot else self.ondemand_usd_per_chip_hour


@dataclass(frozen=True, slots=True)
class Commitment:
    """Chips paid for over years, used or not. Prices are US dollars per chip-hour."""

    chip_id: str
    cloud: str
    region: str  # "" where the source names none
    instance: str  # "" where the source names none
    years: int
    usd_per_chip_hour: float
    ondemand_usd_per_chip_hour: float | None  # of the same source and date; None where it gives none
    date: str
    source: str
    note: str = ""
    own: bool = False  # a company's own price, not a list price


def commitment_from_row(row: dict[str, str]) -> Commitment:
    """A `Commitment` from one row of commitments.csv, whose prices are per chip."""
    return Commitment(
        **_listing(row),
        years=int(row["years"]),
        usd_per_chip_hour=float(row["usd_chip_h"]),
        ondemand_usd_per_chip_hour=float(row["ondemand_usd_chip_h"]) if row["ondemand_usd_chip_h"] else None,
    )


def offer_from_row(row: dict[str, str]) -> Offer:
    """An `Offer` from one row of offers.csv, whose prices are per instance."""
    chips = float(row["chips"])
    return Offer(
        **_listing(row),
        chips=chips,
        ondemand_usd_per_chip_hour=float(row["ondemand_usd_h"]) / chips if row["ondemand_usd_h"] else None,
        spot_usd_per_chip_hour=float(row["spot_usd_h"]) / chips if row["spot_usd_h"] else None,
        joined=joined(row["cloud"], row["instance"]),
        spot_date=row.get("spot_date") or "",
    )


def _listing(row: dict[str, str]) -> dict[str, Any]:
    """What every price list says beside its prices."""
    shared = {name: row[name] for name in ("cloud", "region", "instance", "date", "source", "note")}
    return {"chip_id": row["chip"], **shared}
