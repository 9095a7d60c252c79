"""Chips with what they cost, as every face shows them: the whole catalog, or everything about one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any, ClassVar, NamedTuple

from chipwise.catalog import DTYPES, Chip, Figure, Offer, Slices, load
from chipwise.catalog.vendors import vendors
from chipwise.io.brief import brief
from chipwise.present import numbers
from chipwise.present.blocks import Block, Text, section
from chipwise.present.columns import Column, flat, padded, record, table
from chipwise.present.result import Result
from chipwise.prices.book import PriceBook
from chipwise.prices.fit import Price, price_of
from chipwise.prices.lines import PriceLine, price_lines
from chipwise.prices.record import is_stale
from chipwise.prices.view import offer_columns
from chipwise.units import format_bytes, format_rate

FIGURES = {  # what people call the figures
    "memory_bytes": "memory",
    "usable_bytes": "usable memory",
    "bandwidth": "memory bandwidth",
    "onchip_bytes": "on-chip memory",
    "cores": "cores",
    "mxu": "side of a systolic array",
    "clock_hz": "clock",
    "tdp_w": "power limit (TDP)",
    "idle_w": "idle power",
    "devices": "devices that software sees",
    "fabric.domain": "chips that fast links join",
    "fabric.scale_up": "fast links together, one way",
    "fabric.link": "one fast link, one way",
    "fabric.dims": "axes of the torus",
    "fabric.wrap": "an axis wraps at multiples of",
    "fabric.host_chips": "chips of a host",
    "fabric.scale_out": "network of a chip, one way",
    "fabric.host_link": "link to the host, one way",
}
TORUS = ("fabric.dims", "fabric.wrap", "fabric.link")


@brief
@dataclass(frozen=True, slots=True)
class PricedChip:
    """A chip, the cheapest price of an hour of one on demand and spot, of one among many hosts, and every offer."""

    chip: Chip
    ondemand: Price | None
    spot: Price | None
    cluster: Price | None  # on demand, of a chip among several hosts
    offers: tuple[PriceLine, ...]
    today: date

    @property
    def slices(self) -> Slices | None:
        """The slices it is sold in; None for chips that are not."""
        return load().slices.get(self.chip.id)

    @property
    def stale(self) -> list[str]:
        """Which of its prices are old."""
        prices = {"ondemand": self.ondemand, "spot": self.spot, "cluster": self.cluster}
        return [name for name, price in prices.items() if price is not None and price.stale]


class FigureRow(NamedTuple):
    """A figure of a chip with its name."""

    name: str
    figure: Figure
    chip: Chip

    @property
    def label(self) -> str:
        """What people call it."""
        if self.name == "cores":
            return vendors()[self.chip.vendor].cores
        if self.name.startswith("peak."):
            return f"peak {self.name[5:]}, dense"
        return FIGURES.get(self.name, self.name)

    @property
    def shown(self) -> str:
        """The value in people's units."""
        value, unit = self.figure.value, self.figure.unit
        if unit == "bytes":
            return format_bytes(value)
        if unit in ("FLOP/s", "bytes/s", "Hz"):
            return format_rate(value, unit.replace("bytes", "B"))
        return f"{value:,g} {unit}" if unit != "count" else f"{value:,g}"

    @property
    def applies(self) -> bool:
        """Whether it means something for this chip: not all have a torus or a systolic array."""
        if self.name == "mxu":
            return self.chip.mxu > 0
        return self.chip.fabric.dims > 0 or self.name not in TORUS


class CheapestOffer(NamedTuple):
    """The cheapest offer of one cloud, on demand or spot."""

    offer: Offer
    spot: bool
    today: date


FIGURE: list[Column[FigureRow]] = [
    Column("figure", lambda r: r.name, "figure", lambda r: r.label, words=True),
    Column("value", lambda r: r.figure.value, "value", lambda r: r.shown),
    Column("unit", lambda r: r.figure.unit),
    Column("date", lambda r: r.figure.date, "date", words=True),
    Column("source", lambda r: r.figure.source, "source", words=True, under=True),
    Column("note", lambda r: r.figure.note, "note", words=True, under=True),
]
CHEAPEST: list[Column[CheapestOffer]] = [
    Column("", None, "cloud", lambda r: r.offer.cloud, words=True),
    Column("", None, "terms", lambda r: "spot" if r.spot else "on demand", words=True),
    Column("", None, "$/chip-hour", lambda r: numbers.price(r.offer.price(r.spot) or 0.0)),
    Column("", None, "chips", lambda r: f"{r.offer.chips:g}"),
    Column("", None, "region", lambda r: r.offer.region, words=True, under=True),
    Column("", None, "instance", lambda r: r.offer.instance, words=True, under=True),
    Column("", None, "date", lambda r: r.offer.date + ("*" if is_stale(r.offer.date, r.today) else ""), words=True),
    Column("", None, "source", lambda r: r.offer.source, words=True, under=True),
]


def _tera(chip: Chip) -> str:
    tera = (chip.peak.get("bf16") or chip.peak.get("fp16") or 0.0) / 1e12
    return f"{tera:,.0f}" if tera >= 1 else f"{tera:.2f}"


def _peaks(chip: Chip) -> dict[str, float | None]:
    return {dtype: chip.peak.get(dtype) for dtype in DTYPES}


def _price(price: Price | None) -> str:
    return "-" if price is None else numbers.price(price.usd_per_chip_hour) + ("*" if price.stale else "")


def _usd(price: Price | None) -> float | None:
    return None if price is None else price.usd_per_chip_hour


def _fabric(chip: Chip) -> dict[str, Any]:
    f = chip.fabric
    return {"kind": f.kind, "name": f.name, "domain": f.domain, "scale_up": f.scale_up, "scale_out": f.scale_out}


def _slices(slices: Slices | None) -> dict[str, Any] | None:
    if slices is None:
        return None
    return {
        "shapes": ["x".join(map(str, shape)) for shape in slices.shapes],
        "cube": slices.cube,
        "max_chips": slices.max_chips,
        "source": slices.source,
        "date": slices.date,
        "note": slices.note,
    }


def figure_rows(chip: Chip) -> list[FigureRow]:
    """The figures of a chip, in the order of its file."""
    return [FigureRow(name, figure, chip) for name, figure in chip.figures.items()]


def _figures(chip: Chip) -> dict[str, Any]:
    named = [(row.name, record(FIGURE, row)) for row in figure_rows(chip)]
    return {name: {key: cell for key, cell in data.items() if key != "figure"} for name, data in named}


CHIP: list[Column[PricedChip]] = [
    Column("id", lambda r: r.chip.id, "chip", words=True),
    Column("name", lambda r: r.chip.name, "name", words=True, drop=1),
    Column("vendor", lambda r: r.chip.vendor),
    Column("family", lambda r: r.chip.family, help="gpu, tpu or other"),
    Column("architecture", lambda r: r.chip.architecture),
    Column("launched", lambda r: r.chip.launched),
    Column("aliases", lambda r: list(r.chip.aliases), help="other names"),
    Column("frameworks", lambda r: list(r.chip.frameworks)),
    Column("programming", lambda r: list(r.chip.programming), help="programming models"),
    Column("limits", lambda r: list(r.chip.limits), nested=True, help="known limits in words"),
    Column("peak", lambda r: _peaks(r.chip), "TFLOP/s", lambda r: _tera(r.chip), drop=10, help="dense FLOP/s by dtype"),
    Column("", None, "fp8", lambda r: f"{r.chip.peak['fp8'] / 1e12:,.0f}" if r.chip.runs("fp8") else "-", drop=5),
    Column(
        "memory_capacity_bytes",
        lambda r: r.chip.memory_bytes,
        "GiB",
        lambda r: _whole(r.chip.memory_bytes / 2**30),
        drop=9,
    ),
    Column("bandwidth", lambda r: r.chip.bandwidth, "GB/s", lambda r: _whole(r.chip.bandwidth / 1e9), drop=7),
    Column("fabric", lambda r: _fabric(r.chip), "links GB/s", lambda r: _whole(r.chip.fabric.scale_up / 1e9), drop=3),
    Column("", None, "joins", lambda r: _whole(r.chip.fabric.domain), drop=2),
    Column("tdp_w", lambda r: r.chip.tdp_w, "W", lambda r: _whole(r.chip.tdp_w), drop=4),
    Column("ondemand_usd_per_chip_hour", lambda r: _usd(r.ondemand), "$/h", lambda r: _price(r.ondemand), drop=8),
    Column("spot_usd_per_chip_hour", lambda r: _usd(r.spot), "spot $/h", lambda r: _price(r.spot), drop=6),
    Column(
        "cluster_usd_per_chip_hour",
        lambda r: _usd(r.cluster),
        "cluster $/h",
        lambda r: _price(r.cluster),
        drop=6,
        help="on demand among several hosts, by offers known to be joined by a fast fabric",
    ),
    Column("stale_prices", lambda r: r.stale, help="which of these prices are older than 90 days"),
    Column("figures", lambda r: _figures(r.chip), nested=True, help="every figure with its source and date"),
    Column("slices", lambda r: _slices(r.slices), nested=True, help="legal slices; null for chips that have none"),
    Column(
        "offers",
        lambda r: [record(offer_columns(r.today), line) for line in r.offers],
        nested=True,
        help="as `prices` has them, cheapest first",
    ),
]


def _whole(value: float) -> str:
    return f"{value:,.0f}"


@dataclass(frozen=True, slots=True, repr=False)
class ChipList(Result):
    """Chips of the catalog with their prices."""

    VERB: ClassVar[str] = "chips"
    rows: tuple[PricedChip, ...]
    prices: PriceBook

    @property
    def chips(self) -> tuple[Chip, ...]:
        """The chips alone."""
        return tuple(row.chip for row in self.rows)

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"chips": [record(CHIP, row) for row in self.rows]}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a chip."""
        return padded([flat(CHIP, row) for row in self.rows])

    def blocks(self) -> list[Block]:
        """For people."""
        return [
            table(CHIP, self.rows, title=numbers.plural(len(self.rows), "chip")),
            Text("TFLOP/s: dense, 16-bit. links: all fast links of a chip, one way; joins: chips they join."),
            Text(
                "$/h: an hour of one chip by the cheapest offer, paid in whole instances; cluster $/h: of a chip among "
                "several hosts, by offers known to be joined by a fast fabric. Prices dated within 90 days of the "
                "newest count first. * marks prices older than 90 days."
            ),
            *self._own(),
            Text("Everything about one: chipwise chips CHIP"),
        ]

    def _own(self) -> list[Block]:
        return [Text(f"Prices: {self.prices.origin}.")] if self.prices.own else []


@dataclass(frozen=True, slots=True, repr=False)
class ChipSheet(ChipList):
    """Everything about one chip: figures with source and date, the cheapest offer of every cloud, software, limits."""

    @property
    def chip(self) -> Chip:
        """The chip."""
        return self.rows[0].chip

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a figure."""
        return [flat(FIGURE, row) for row in figure_rows(self.chip)]

    def blocks(self) -> list[Block]:
        """For people."""
        c = self.chip
        return [
            Text(f"{c.id}: {c.name}, {c.vendor} {c.architecture}, launched {c.launched}"),
            Text(f"also known as: {', '.join(c.aliases) or '-'}"),
            table(FIGURE, [row for row in figure_rows(c) if row.applies], title="Figures"),
            self._cheapest(),
            *self._own(),
            *section(
                "Software",
                [
                    f"frameworks: {', '.join(c.frameworks) or '-'}",
                    f"programming models: {', '.join(c.programming) or '-'}",
                ],
            ),
            *section("Known limits", c.limits or ("none recorded",)),
            *section("Slices", _slice_lines(self.rows[0].slices)),
        ]

    def _cheapest(self) -> Block:
        """The cheapest offer of each cloud, on demand and spot."""
        best: dict[tuple[str, bool], CheapestOffer] = {}
        for spot in (False, True):
            for offer in self.prices.offers_for(self.chip.id, spot):
                best.setdefault((offer.cloud, spot), CheapestOffer(offer, spot, self.rows[0].today))
        if not best:
            return Text("Prices: no public price", True)
        rows = sorted(best.values(), key=lambda row: (row.spot, row.offer.price(row.spot) or 0.0))
        return table(CHEAPEST, rows, title="Prices: the cheapest of each cloud; * marks dates older than 90 days")


def _slice_lines(slices: Slices | None) -> list[str]:
    if slices is None:
        return []
    shapes = ", ".join("x".join(map(str, shape)) for shape in slices.shapes)
    cubes = f", and whole cubes of {slices.cube} a side" if slices.cube else ""
    return [f"{shapes}{cubes}, up to {numbers.plural(slices.max_chips, 'chip')}", f"{slices.source} ({slices.date})"]


def priced(chips: Iterable[Chip], book: PriceBook, today: date) -> tuple[PricedChip, ...]:
    """Chips with the cheapest price of one and of a chip among several hosts, and every offer."""
    return tuple(_priced(chip, book, today) for chip in chips)


def _priced(chip: Chip, book: PriceBook, today: date) -> PricedChip:
    ondemand, spot = (price_of(chip, 1, spot, today, book) for spot in (False, True))
    if ondemand and spot and spot.usd_per_chip_hour >= ondemand.usd_per_chip_hour:
        spot = None  # no use
    cluster = price_of(chip, 2 * chip.fabric.host_chips, False, today, book)
    return PricedChip(chip, ondemand, spot, cluster, price_lines(book, [chip.id]), today)
