"""Prices of a SkyPilot catalog: its vms.csv files, one a cloud (github.com/skypilot-org/skypilot-catalog, v5 to v8).

Columns: InstanceType, AcceleratorName, AcceleratorCount, Price, SpotPrice, Region and others. Prices are of the whole
instance. Google's file lists the host and its accelerators apart, and TPU slices by their own names
(tpu-v5p-8 counts cores, tpu-v6e-8 chips) with the host in the price. A region's price is that of its cheapest zone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from chipwise.catalog import exact_chip, instances
from chipwise.catalog.instances import N1, google_hosts, squashed
from chipwise.errors import NOTHING, InputError, UnknownName
from chipwise.io.csv_lines import MAX_CHIPS, Line, check_columns, lines_of
from chipwise.io.files import read_text
from chipwise.prices.billed import tpu_slice
from chipwise.prices.custom_prices import MAX_USD_H, CustomPriceRow
from chipwise.prices.imported import Imported, Tally
from chipwise.prices.providers import cloud_names

MAX_BYTES = 100_000_000  # Google's file has 2 MB, Amazon's 4
NEEDED = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "SpotPrice", "Region")
CHIPS = {"A100": "a100-40gb"}  # SkyPilot writes A100-80GB for the larger one
ATTACHED, ATTACHED_NOTE = "(attached to N1 VM)", "accelerator only; the N1 host VM is extra"
NOT_ACCELERATORS = "no accelerator in it"
PLACEHOLDER = "a placeholder: instances of other sizes have the very same price"
NO_PRICE = "no price"
NO_HOST = "an accelerator whose host has no price here"
NO_CHIPS = "a host whose accelerators have no price here"
ONE_EMPTY = "one of the two prices is a placeholder: left empty"
HOST_NOTE = "the host's price and the accelerators' together"
SAME = "the spot price repeats the on-demand price or is above it: spot left empty"


@dataclass(frozen=True, slots=True)
class ListedOffer:
    """An instance in a zone, prices per instance-hour."""

    chip_id: str
    region: str
    instance: str
    chips: float
    ondemand: float | None
    spot: float | None
    note: str = ""


def read_skypilot(files: Sequence[Path], cloud: str = "", dated: str = "", today: date | None = None) -> Imported:
    """Own prices from catalog files; the cloud is that of the folder unless named, the date that of the file."""
    tally, notes = Tally(), []
    rows: dict[tuple[str, ...], CustomPriceRow] = {}
    read = used = 0
    for path in files:
        where = (cloud or path.resolve().parent.name).lower()
        if not cloud and where not in {*cloud_names(), *(key for key, _ in instances())}:
            raise InputError("cloud", NOTHING, f"the cloud of {path}: its folder {where!r} is none that is known")
        day = dated or _day_of(path, today or date.today())
        if not dated:
            notes.append(f"{path.name} of {where} is dated {day} by the time of the file; --date says another")
        lines = list(_lines(path))
        read += len(lines)
        offers = list(_gcp(lines, tally) if where == "gcp" else _plain(lines, where, tally))
        offers = list(_without_placeholders(offers, tally))
        used += len(offers)
        source = f"SkyPilot catalog {where}/{path.name}"
        for offer in _cheapest(offers, tally):
            row = CustomPriceRow(
                offer.chip_id,
                where,
                offer.region,
                offer.instance,
                offer.chips,
                (offer.ondemand, offer.spot, None, None),
                day,
                source,
                offer.note,
            )
            rows[row.chip_id, where, row.region, row.instance, f"{row.chips:g}"] = row
    if not rows:
        raise InputError("files", ", ".join(map(str, files)), "a row with an accelerator that is known and its price")
    used += tally.joined
    return Imported(tuple(rows[key] for key in sorted(rows)), read, used, tally.left_out(), tuple(notes))


def _lines(path: Path) -> Iterator[Line]:
    header, lines = lines_of(path.name, read_text(path, MAX_BYTES).splitlines())
    check_columns(path.name, header, NEEDED)
    return lines


def _day_of(path: Path, today: date) -> str:
    return min(date.fromtimestamp(path.stat().st_mtime), today).isoformat()


def _price(line: Line, column: str) -> float | None:
    """A price; catalogs write 0 where they know none."""
    if not line[column]:
        return None
    accepted = "a price per hour of at least 0 (0 or nothing where there is none)"
    return line.number_of(column, accepted, MAX_USD_H, zero=True) or None


def _plain(lines: Sequence[Line], cloud: str, tally: Tally) -> Iterator[ListedOffer]:
    """Instances with their accelerators in them."""
    for line in lines:
        name, instance = line["AcceleratorName"], line["InstanceType"]
        listed = instances().get((cloud, squashed(instance)))
        if not name and listed is None:
            tally.add(NOT_ACCELERATORS)
            continue
        if listed is not None:
            chip_id, chips = listed.chip_id, listed.chips
        else:
            chip = _chip(name)
            if chip is None:
                tally.add(f"unknown accelerator {name}")
                continue
            chip_id, chips = chip, line.number_of("AcceleratorCount", "a number of accelerators above 0", MAX_CHIPS)
        yield from _priced(
            line,
            ListedOffer(
                chip_id,
                line.words("Region", "the name of a region"),
                instance,
                chips,
                _price(line, "Price"),
                _price(line, "SpotPrice"),
            ),
            tally,
        )


def _priced(line: Line, offer: ListedOffer, tally: Tally) -> Iterator[ListedOffer]:
    if offer.ondemand is None and offer.spot is None:
        tally.add(NO_PRICE)
    elif not offer.instance:
        raise line.wrong("InstanceType", "the name of an instance type")
    else:
        yield offer


def _chip(name: str) -> str | None:
    """The chip of SkyPilot's name; None for those that the catalog of chips doesn't have."""
    if name in CHIPS:
        return CHIPS[name]
    try:
        return exact_chip(name).id
    except UnknownName:
        return None


def _gcp(lines: Sequence[Line], tally: Tally) -> Iterator[ListedOffer]:
    """TPU slices as they are; GPUs with the host that holds so many of them."""
    hosts: dict[tuple[str, str], Line] = {}
    for line in lines:
        if line["AcceleratorName"]:
            continue
        if re.match(r"[ag][2-9]", line["InstanceType"]):  # Google's families that come with accelerators
            hosts[line["InstanceType"], line["AvailabilityZone"]] = line
        else:
            tally.add(NOT_ACCELERATORS)
    used_hosts: set[tuple[str, str]] = set()
    for line in lines:
        name = line["AcceleratorName"]
        if not name:
            continue
        region = line.words("Region", "the name of a region")
        size = tpu_slice(name)
        if size is not None:
            chip_id, chips = size
            yield from _priced(
                line,
                ListedOffer(
                    chip_id, region, name.removeprefix("tpu-"), chips, _price(line, "Price"), _price(line, "SpotPrice")
                ),
                tally,
            )
            continue
        chip = _chip(name)
        if chip is None:
            tally.add(f"unknown accelerator {name}")
            continue
        chips = line.number_of("AcceleratorCount", "a number of accelerators above 0", MAX_CHIPS)
        if google_hosts().get(name) == (N1,):
            yield from _priced(
                line,
                ListedOffer(
                    chip, region, ATTACHED, chips, _price(line, "Price"), _price(line, "SpotPrice"), ATTACHED_NOTE
                ),
                tally,
            )
            continue
        fitting = _hosts_of(name, chip, chips, line["AvailabilityZone"], hosts)
        if not fitting:
            tally.add(NO_HOST)
        for instance, host in fitting.items():
            used_hosts.add((instance, line["AvailabilityZone"]))
            ondemand, spot = (_sum(_price(host, kind), _price(line, kind)) for kind in ("Price", "SpotPrice"))
            yield from _priced(line, ListedOffer(chip, region, instance, chips, ondemand, spot, HOST_NOTE), tally)
    tally.joined += len(used_hosts)
    for _ in hosts.keys() - used_hosts:
        tally.add(NO_CHIPS)


def _hosts_of(name: str, chip: str, chips: float, zone: str, hosts: dict[tuple[str, str], Line]) -> dict[str, Line]:
    """The hosts of a zone that hold so many of these accelerators."""
    families = google_hosts().get(name, ("",))  # not listed: every host of the chip
    fitting = [
        instance_type.name
        for instance_type in instances().values()
        if (instance_type.cloud, instance_type.chip_id, instance_type.chips) == ("gcp", chip, chips)
        and instance_type.name.startswith(families)
    ]
    return {instance: hosts[instance, zone] for instance in fitting if (instance, zone) in hosts}


def _sum(host: float | None, chips: float | None) -> float | None:
    return None if host is None or chips is None else host + chips


def _without_placeholders(offers: Sequence[ListedOffer], tally: Tally) -> Iterator[ListedOffer]:
    """Without prices that several sizes of the same chip share in a region: nobody asks the same for 1 and for 8."""
    sizes: dict[tuple[str, str, float], set[float]] = {}
    for offer in offers:
        for usd in (offer.ondemand, offer.spot):
            if usd is not None:
                sizes.setdefault((offer.chip_id, offer.region, usd), set()).add(offer.chips)

    def real(offer: ListedOffer, usd: float | None) -> float | None:
        return usd if usd is not None and len(sizes[offer.chip_id, offer.region, usd]) == 1 else None

    for offer in offers:
        ondemand, spot = real(offer, offer.ondemand), real(offer, offer.spot)
        if ondemand is None and spot is None:
            tally.add(PLACEHOLDER)
        else:
            if (ondemand, spot) != (offer.ondemand, offer.spot):
                tally.add(ONE_EMPTY)
            yield ListedOffer(offer.chip_id, offer.region, offer.instance, offer.chips, ondemand, spot, offer.note)


def _cheapest(offers: Sequence[ListedOffer], tally: Tally) -> Iterator[ListedOffer]:
    """One offer an instance and region: the cheapest zone on each pricing model."""
    groups: dict[tuple[str, str, str, float], list[ListedOffer]] = {}
    for offer in offers:
        groups.setdefault((offer.chip_id, offer.region, offer.instance, offer.chips), []).append(offer)
    for (chip_id, region, instance, chips), zones in groups.items():
        ondemand, spot = (
            min((usd for zone in zones if (usd := getattr(zone, kind)) is not None), default=None)
            for kind in ("ondemand", "spot")
        )
        if ondemand is not None and spot is not None and spot >= ondemand:
            tally.add(SAME)
            spot = None
        yield ListedOffer(chip_id, region, instance, chips, ondemand, spot, zones[0].note)
