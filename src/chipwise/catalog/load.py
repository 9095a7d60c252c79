"""Reads the data files once and hands out a `Catalog`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from chipwise.catalog.chip import DTYPES, Chip, Fabric, Figure
from chipwise.catalog.designs import Design, design_from_table
from chipwise.catalog.files import chip_files, chip_rates, each, once, rows, tables, take_chip_files, take_rates
from chipwise.catalog.offers import Commitment, Offer, commitment_from_row, offer_from_row
from chipwise.catalog.slices import Slices, slices_from_table
from chipwise.catalog.stacks import Stack, stack_from_table
from chipwise.errors import BrokenFile, ChipwiseError, InputError, UnknownName

CHIP_FIGURES = ("memory_bytes", "usable_bytes", "bandwidth", "onchip_bytes", "clock_hz", "tdp_w", "idle_w")
FABRIC_RATES = ("scale_up", "link", "scale_out", "host_link")
FABRIC_COUNTS = ("domain", "dims", "wrap", "host_chips")


@dataclass(frozen=True, slots=True)
class Network:
    """The scale-out network of one rentable shape, in bytes/s one way (a dated fact, not a default)."""

    id: str
    chips: tuple[str, ...]
    instances: tuple[str, ...]  # as clouds call the shape; () for servers to buy
    host_chips: int
    per_host: float
    per_chip: float
    source: str
    date: str
    note: str


@dataclass(frozen=True, slots=True)
class Catalog:
    """Everything chipwise knows about hardware, software stacks and prices."""

    chips: Mapping[str, Chip]
    match: Mapping[str, tuple[tuple[str, ...], ...]]  # word sets that recognize a chip in free text
    stacks: Mapping[str, Stack]
    slices: Mapping[str, Slices]  # legal TPU slice shapes, by chip id
    offers: tuple[Offer, ...]
    commitments: tuple[Commitment, ...]
    networks: Mapping[str, Network]
    designs: Mapping[str, Design]


def _figures(name: str, prefix: str = "") -> dict[str, dict[str, Figure]]:
    out: dict[str, dict[str, Figure]] = {}

    def take(row: Mapping[str, str]) -> None:
        figure = Figure(float(row["value"]), row["unit"], row["source"], row["date"], row["note"])
        out.setdefault(row["chip"], {})[prefix + row["figure"]] = figure

    each(name, rows(name), take)
    return out


def _fabric(entry: dict[str, Any], figures: Mapping[str, Figure]) -> Fabric:
    rates: dict[str, Any] = {name: figures[f"fabric.{name}"].value for name in FABRIC_RATES}
    counts: dict[str, Any] = {name: int(figures[f"fabric.{name}"].value) for name in FABRIC_COUNTS}
    return Fabric(kind=entry["fabric_kind"], name=entry["fabric"], **rates, **counts)


def _chip(entry: dict[str, Any], figures: dict[str, Figure]) -> Chip:
    value: dict[str, Any] = {name: figure.value for name, figure in figures.items()}
    counts: dict[str, Any] = {name: int(value[name]) for name in ("cores", "mxu", "devices")}
    lists: dict[str, Any] = {name: tuple(entry[name]) for name in ("aliases", "frameworks", "programming", "limits")}
    return Chip(
        **{name: entry[name] for name in ("id", "name", "vendor", "family", "architecture", "launched")},
        **lists,
        **{name: value[name] for name in CHIP_FIGURES},
        **counts,
        peak=MappingProxyType({d: value[f"peak.{d}"] for d in DTYPES if f"peak.{d}" in value}),
        fabric=_fabric(entry, figures),
        figures=MappingProxyType(figures),
        trains=entry.get("trains", True),
        design=entry.get("design", entry["id"]),
        compute_capability=entry.get("compute_capability", ""),
        device_kinds=tuple(entry.get("device_kinds", ())),
    )


def _networks() -> dict[str, Network]:
    return {network.id: network for network in each("networks.csv", rows("networks.csv"), _network)}


def _network(row: Mapping[str, str]) -> Network:
    return Network(
        id=row["id"],
        chips=tuple(row["chips"].split()),
        instances=tuple(row["instances"].split()),
        host_chips=int(row["host_chips"]),
        per_host=float(row["gbit_s_per_host"]) * 1e9 / 8,
        per_chip=float(row["gbit_s_per_host"]) * 1e9 / 8 / int(row["host_chips"]),
        source=row["source"],
        date=row["date"],
        note=row["note"],
    )


NO_RATES: Mapping[str, float] = MappingProxyType({})


def _described(
    chips: Mapping[str, Chip], slices: Mapping[str, Slices]
) -> tuple[dict[str, Chip], dict[str, Slices], tuple[Offer, ...]]:
    """Chips of one's own, their slices and their prices."""
    own: dict[str, Chip] = {}
    shapes: dict[str, Slices] = {}
    offers: list[Offer] = []
    for path in chip_files():
        try:
            chip, offer = _own_chip(path, {**chips, **own})
        except BrokenFile:  # names the file
            raise
        except InputError as error:
            raise error.under(f"{path.name} {error.field}") from None
        own[chip.id] = chip
        family = slices.get(chip.like) or shapes.get(chip.like)
        if family is not None:
            shapes[chip.id] = replace(family, chip_id=chip.id, gke=None)
        offers += [offer] if offer else []
    return own, shapes, tuple(offers)


def _own_chip(path: Path, chips: Mapping[str, Chip]) -> tuple[Chip, Offer | None]:
    from chipwise.catalog.chip_file import chip_like, own_offer, read_chip_file

    described = read_chip_file(path, chip_rates())
    if described.id in {name for chip in chips.values() for name in (chip.id, *chip.aliases)}:
        raise InputError("name", described.id, "a name that no other chip has")
    if described.like not in chips:
        raise UnknownName("like", described.like, chips)
    return chip_like(described, chips[described.like]), own_offer(described)


def add_chip_files(files: Iterable[str | Path], rates: Mapping[str, float] = NO_RATES) -> None:
    """Add chips of one's own to the catalog of this process; a file that was added before is read again.

    Their prices are read at these `rates` before those that are known. A file that can't be used leaves the catalog
    as it was.
    """
    take_rates(rates)
    paths = [Path(file) for file in files]
    if not paths:
        return
    before = take_chip_files(())
    take_chip_files((*before, *paths))
    try:
        load()
    except ChipwiseError:
        take_chip_files(before)
        raise


def drop_chip_files() -> None:
    """The catalog without the chips that were added to this process."""
    take_chip_files(())


@once
def load() -> Catalog:
    """The catalog shipped with this version, and over it the chips of one's own; read once.

    >>> load().chips["h100"].peak["bf16"]
    989400000000000.0
    """
    figures = _figures("figures.csv")
    for chip_id, fabric in _figures("fabrics.csv", "fabric.").items():
        figures.setdefault(chip_id, {}).update(fabric)
    entries = tables("chips.toml", "chip")
    chips = {chip.id: chip for chip in each("chips.toml", entries, lambda e: _chip(e, figures[e["id"]]))}
    tori = tables("slices.toml", "slice")
    slices = dict(each("slices.toml", tori, lambda e: (e["chip"], slices_from_table(e))))
    own, shapes, prices = _described(chips, slices)
    match = dict(each("chips.toml", entries, lambda e: (e["id"], tuple(tuple(words) for words in e["match"]))))
    stacks = each("stacks.toml", tables("stacks.toml", "stack"), lambda e: (e["id"], stack_from_table(e)))
    designs = each("designs.toml", tables("designs.toml", "design"), lambda e: (e["id"], design_from_table(e)))
    return Catalog(
        chips=MappingProxyType({**chips, **own}),
        match=MappingProxyType({**match, **dict.fromkeys(own, ())}),
        stacks=MappingProxyType(dict(stacks)),
        slices=MappingProxyType({**slices, **shapes}),
        offers=(*prices, *each("offers.csv", rows("offers.csv"), offer_from_row)),
        commitments=tuple(each("commitments.csv", rows("commitments.csv"), commitment_from_row)),
        networks=MappingProxyType(_networks()),
        designs=MappingProxyType(dict(designs)),
    )
