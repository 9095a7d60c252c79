"""The user's updated price list: offers fetched later than those shipped, in the user's data folder."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from chipwise.catalog import Offer, load
from chipwise.catalog.offers import offer_from_row
from chipwise.errors import BrokenFile
from chipwise.io.files import read_text
from chipwise.io.paths import data_folder
from chipwise.io.printable import csv_cell, csv_text

FIELDS = (
    "chip",
    "cloud",
    "region",
    "instance",
    "chips",
    "ondemand_usd_h",
    "spot_usd_h",
    "date",
    "spot_date",
    "source",
    "note",
)
MAX_BYTES = 100_000_000
SKYPILOT = "skypilot"  # what sources of its catalog begin with


def stored_file() -> Path:
    """Where the updated list lies."""
    return data_folder() / "prices" / "offers.csv"


def previous_file() -> Path:
    """Where the list lies that the last update replaced."""
    return stored_file().with_name("offers.previous.csv")


def read_stored() -> tuple[Offer, ...]:
    """The offers of the updated list whose chips are known; none where there is no such list."""
    path = stored_file()
    if not path.exists():
        return ()
    rows = csv.DictReader(read_text(path, MAX_BYTES).splitlines())
    try:
        cells = ({name: csv_text(cell) for name, cell in row.items()} for row in rows)
        return tuple(offer_from_row(row) for row in cells if row["chip"] in load().chips)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, csv.Error) as error:
        raise BrokenFile(
            "file", str(path), f"a list that `chipwise prices update` wrote ({error}); update again, or delete it"
        ) from None


def stored_text(offers: Iterable[Offer]) -> str:
    """Offers as the text of a file that `read_stored` reads."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(FIELDS)
    for o in offers:
        prices = [
            "" if usd is None else f"{usd * o.chips:.10g}"
            for usd in (o.ondemand_usd_per_chip_hour, o.spot_usd_per_chip_hour)
        ]
        head = [o.chip_id, o.cloud, o.region, o.instance, f"{o.chips:g}"]
        writer.writerow(map(csv_cell, [*head, *prices, o.date, o.spot_date, o.source, o.note]))
    return buffer.getvalue()


def updated(older: Iterable[Offer], newer: Iterable[Offer]) -> tuple[Offer, ...]:
    """Offers with newer ones in place: of the clouds that those have, SkyPilot's older rows are gone.

    Of two prices of the same offer the later dated stays.
    """
    fresh = {offer_key(o): o for o in newer}
    clouds = {o.cloud for o in fresh.values()}
    kept = []
    for o in older:
        there = fresh.get(offer_key(o))
        if there is not None and o.date > there.date:
            fresh[offer_key(o)] = o
        elif there is None and not (o.cloud in clouds and o.source.lower().startswith(SKYPILOT)):
            kept.append(o)
    return (*fresh.values(), *kept)


def offer_key(offer: Offer) -> tuple[str, str, str, str, float]:
    """What makes two offers the same one at other prices."""
    return offer.chip_id, offer.cloud, offer.region, offer.instance.lower(), offer.chips
