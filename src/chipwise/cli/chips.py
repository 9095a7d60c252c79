"""chipwise chips: the catalog, every figure with its source and date."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chipwise.cli.options import FxOpt, OutFile, PricesOpt, TableJsonCsv, complete_chips

if TYPE_CHECKING:
    from chipwise.catalog import Chip, Figure, Offer
    from chipwise.present.blocks import Block
    from chipwise.prices import PriceBook

EXAMPLES = """\b
Examples:
  chipwise chips
  chipwise chips v5e
  chipwise chips "NVIDIA H100 80GB HBM3" -o json
  chipwise chips -o csv --out chips.csv
"""


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
CORES = {
    "nvidia": "SMs",
    "amd": "CUs",
    "google": "matrix units (MXUs)",
    "aws": "NeuronCores",
    "intel": "matrix engines",
}
TORUS = ("fabric.dims", "fabric.wrap", "fabric.link")


def chips(
    chip: Annotated[
        str | None,
        typer.Argument(
            metavar="[CHIP]", help="Show everything about one chip.", autocompletion=complete_chips, show_default=False
        ),
    ] = None,
    prices: PricesOpt = None,
    fx: FxOpt = None,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """List the chips known, or show everything about one.

    About one: its figures with source, date and note, the cheapest offer of every cloud, software and known limits.
    """
    from chipwise.catalog import find_chip, load
    from chipwise.cli import records
    from chipwise.knowledge import price_book
    from chipwise.present.output import emit, emit_csv, emit_json, formats

    formats(output, "table", "json", "csv")
    book = price_book(prices, fx)
    if chip is None:
        known = list(load().chips.values())
        if output == "json":
            emit_json({**records.head("chips"), "chips": [records.chip(c, book) for c in known]}, out)
        elif output == "csv":
            emit_csv([_flat(c, book) for c in known], out)
        else:
            emit(_list(known, book), out)
        return
    found = find_chip(chip)
    if output == "json":
        emit_json({**records.head("chips"), "chips": [records.chip(found, book)]}, out)
    elif output == "csv":
        emit_csv(
            [
                {"figure": name, "value": f.value, "unit": f.unit, "source": f.source, "date": f.date, "note": f.note}
                for name, f in found.figures.items()
            ],
            out,
        )
    else:
        emit(_detail(found, book), out)


def _peak(c: Chip) -> float:
    return c.peak.get("bf16") or c.peak.get("fp16") or 0.0


def _tera(rate: float) -> str:
    return f"{rate / 1e12:,.0f}" if rate >= 1e12 else f"{rate / 1e12:.2f}"


def _price(c: Chip, spot: bool, book: PriceBook) -> str:
    from chipwise.present import numbers
    from chipwise.prices import price_of

    price = price_of(c, c.fabric.host_chips, spot, book=book)
    return "-" if price is None else numbers.price(price.usd_per_chip_hour) + ("*" if price.stale else "")


def _flat(c: Chip, book: PriceBook) -> dict[str, Any]:
    from chipwise.prices import price_of

    prices = [price_of(c, c.fabric.host_chips, spot, book=book) for spot in (False, True)]
    return {
        "id": c.id,
        "name": c.name,
        "vendor": c.vendor,
        "family": c.family,
        "architecture": c.architecture,
        "launched": c.launched,
        **{f"peak_{d}": c.peak.get(d, "") for d in ("bf16", "fp16", "fp8", "int8", "fp4")},
        "memory_bytes": c.memory_bytes,
        "bandwidth": c.bandwidth,
        "fabric": c.fabric.name,
        "fabric_domain": c.fabric.domain,
        "scale_up": c.fabric.scale_up,
        "scale_out": c.fabric.scale_out,
        "tdp_w": c.tdp_w,
        "ondemand_usd_h": prices[0].usd_per_chip_hour if prices[0] else "",
        "spot_usd_h": prices[1].usd_per_chip_hour if prices[1] else "",
        "stale": " ".join(name for name, each in zip(("ondemand", "spot"), prices, strict=True) if each and each.stale),
        "frameworks": " ".join(c.frameworks),
        "programming": " ".join(c.programming),
    }


def _list(known: list[Chip], book: PriceBook) -> list[Block]:
    from chipwise.present.blocks import Table, Text
    from chipwise.present.numbers import plural

    headers = ["chip", "name", "TFLOP/s", "fp8", "GiB", "GB/s", "links GB/s", "joins", "W", "$/h", "spot $/h"]
    rows = [
        [
            c.id,
            c.name,
            _tera(_peak(c)),
            f"{c.peak['fp8'] / 1e12:,.0f}" if c.runs("fp8") else "-",
            f"{c.memory_bytes / 2**30:,.0f}",
            f"{c.bandwidth / 1e9:,.0f}",
            f"{c.fabric.scale_up / 1e9:,.0f}",
            f"{c.fabric.domain:,}",
            f"{c.tdp_w:,.0f}",
            _price(c, False, book),
            _price(c, True, book),
        ]
        for c in known
    ]
    return [
        Table(
            headers,
            rows,
            frozenset({"chip", "name"}),
            title=plural(len(known), "chip"),
            drop=("name", "joins", "links GB/s", "W", "fp8", "spot $/h", "GB/s", "$/h", "GiB", "TFLOP/s"),
        ),
        Text("TFLOP/s: dense, 16-bit. links: all fast links of a chip, one way; joins: chips they join."),
        Text(
            "$/h: one chip-hour of the cheapest offer among instances that hold a whole host, from price lists dated "
            "within 90 days of the newest; where there is none, of any other. * marks prices older than 90 days."
        ),
        *_own(book),
        Text("Everything about one: chipwise chips CHIP"),
    ]


def _own(book: PriceBook) -> list[Block]:
    from chipwise.present.blocks import Text

    return [Text(f"Prices: {book.origin}.")] if book.own else []


def _detail(c: Chip, book: PriceBook) -> list[Block]:
    from chipwise.catalog import load
    from chipwise.present.blocks import Table, Text
    from chipwise.present.numbers import plural

    words = frozenset({"figure", "unit", "source", "note", "date"})
    out: list[Block] = [
        Text(f"{c.id}: {c.name}, {c.vendor} {c.architecture}, launched {c.launched}"),
        Text(f"also known as: {', '.join(c.aliases) or '-'}"),
        Table(
            ["figure", "value", "date", "source", "note"],
            [
                [_label(name, c), _shown(f), f.date, f.source, f.note]
                for name, f in c.figures.items()
                if _means(name, c)
            ],
            words,
            title="Figures",
            under=("source", "note"),
        ),
        _offers(c, book),
        *_own(book),
        Text("Software", True),
        Text(f"  frameworks: {', '.join(c.frameworks) or '-'}"),
        Text(f"  programming models: {', '.join(c.programming) or '-'}"),
        Text("Known limits", True),
        *(Text(f"  {limit}") for limit in c.limits or ("none recorded",)),
    ]
    slices = load().slices.get(c.id)
    if slices:
        shapes = ", ".join("x".join(map(str, s)) for s in slices.shapes)
        cubes = f", and whole cubes of {slices.cube} a side" if slices.cube else ""
        out += [
            Text("Slices", True),
            Text(f"  {shapes}{cubes}, up to {plural(slices.max_chips, 'chip')}"),
            Text(f"  {slices.source} ({slices.date})"),
        ]
    return out


def _means(name: str, c: Chip) -> bool:
    """Whether a figure says something about this chip: not all have a torus or a systolic array."""
    if name == "mxu":
        return c.mxu > 0
    return c.fabric.dims > 0 or name not in TORUS


def _label(name: str, c: Chip) -> str:
    if name == "cores":
        return CORES.get(c.vendor, "cores")
    return f"peak {name[5:]}, dense" if name.startswith("peak.") else FIGURES.get(name, name)


def _shown(f: Figure) -> str:
    from chipwise.units import format_bytes, format_rate

    if f.unit == "bytes":
        return format_bytes(f.value)
    if f.unit in ("FLOP/s", "bytes/s", "Hz"):
        return format_rate(f.value, f.unit.replace("bytes", "B"))
    return f"{f.value:,g} {f.unit}" if f.unit != "count" else f"{f.value:,g}"


def _offers(c: Chip, book: PriceBook) -> Block:
    """The cheapest offer of each cloud, on demand and spot."""
    from chipwise.present.blocks import Table, Text
    from chipwise.present.numbers import price
    from chipwise.prices import is_stale

    today = date.today()
    best: dict[tuple[str, bool], Offer] = {}
    for spot in (False, True):
        for offer in book.offers_for(c.id, spot):
            best.setdefault((offer.cloud, spot), offer)
    cheapest = sorted(best.items(), key=lambda x: (x[0][1], x[1].price(x[0][1])))
    rows = [
        [
            o.cloud,
            "spot" if spot else "on demand",
            price(o.price(spot) or 0.0),
            f"{o.chips:g}",
            o.region,
            o.instance,
            f"{o.date}*" if is_stale(o.date, today) else o.date,
            o.source,
        ]
        for (_, spot), o in cheapest
    ]
    if not rows:
        return Text("Prices: no public price", True)
    return Table(
        ["cloud", "kind", "$/chip-hour", "chips", "region", "instance", "date", "source"],
        rows,
        frozenset({"cloud", "kind", "region", "instance", "date", "source"}),
        title="Prices: the cheapest of each cloud; * marks dates older than 90 days",
        under=("source", "instance", "region"),
    )
