"""A chip of one's own, described in one file by a chip that it is like and the figures that differ."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

from chipwise.catalog.chip import DTYPES, Chip, Figure
from chipwise.catalog.currencies import Rates, exchange_rates
from chipwise.catalog.money import PER_HOUR, read_amount
from chipwise.catalog.offers import ANY, Offer
from chipwise.errors import NOTHING, BrokenFile, Conflict, InputError, UnknownName
from chipwise.io.files import parse_yaml, read_text
from chipwise.units import parse_count, parse_quantity

NO_RATES: Rates = MappingProxyType({})
OWN = "own"  # the cloud of the price that a chip's file gives
MOST_USD = 1e4  # of a chip-hour; more is another unit or a slip
MISSING_PRECISION = "none"  # written for a precision that the chip lacks and its relative has
CITATION = ("value", "source", "date", "note")  # keys of a figure that says where it is from
TEXTS = ("name", "like", "title", "source", "date", "note", "price")
_RATES = ("memory_bytes", "usable_bytes", "bandwidth", "onchip_bytes", "clock_hz", "tdp_w", "idle_w")
ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
DATE = re.compile(r"20\d\d(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?")


@dataclass(frozen=True, slots=True)
class Measure:
    """What a key of the file accepts: the figures it sets, their unit, and the ends of what a chip can be."""

    figures: tuple[str, ...]
    unit: str
    least: float
    most: float
    such: str


# Ends are a tenth of the smallest and ten times the largest figure of the catalog, or wider: beyond is a wrong unit.
MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "memory": Measure(("memory_bytes",), "bytes", 1e9, 1e13, "96 GiB"),
        "usable_memory": Measure(("usable_bytes",), "bytes", 1e9, 1e13, "94 GiB"),
        "bandwidth": Measure(("bandwidth",), "bytes/s", 1e10, 1e15, "3.35 TB/s"),
        "onchip_memory": Measure(("onchip_bytes",), "bytes", 1e5, 1e11, "50 MiB"),
        "cores": Measure(("cores",), "count", 1, 1e5, "132"),
        "clock": Measure(("clock_hz",), "Hz", 1e8, 1e10, "1.98 GHz"),
        "power": Measure(("tdp_w",), "W", 1, 1e5, "700 W"),
        "idle_power": Measure(("idle_w",), "W", 0.1, 1e5, "80 W"),
        "links": Measure(("fabric.scale_up", "fabric.link"), "bytes/s", 1e8, 1e14, "450 GB/s one way"),
        "linked_chips": Measure(("fabric.domain",), "count", 1, 1e5, "8"),
        "host_chips": Measure(("fabric.host_chips",), "count", 1, 1024, "8"),
        "network": Measure(("fabric.scale_out",), "bytes/s", 1e6, 1e13, "400 Gb/s"),
        "host_link": Measure(("fabric.host_link",), "bytes/s", 1e8, 1e13, "64 GB/s"),
    }
)
PEAK = Measure((), "FLOP/s", 1e9, 1e18, "989 TFLOP/s")
KEYS = (*TEXTS, "peak", *MEASURES)


@dataclass(frozen=True, slots=True)
class DescribedChip:
    """What a chip's file says, read but not yet laid over the chip that it is like."""

    file: str
    id: str
    like: str
    title: str
    figures: Mapping[str, Figure]
    lacking: tuple[str, ...]  # precisions
    usd_per_chip_hour: float | None
    price_source: str
    date: str


def read_chip_file(path: Path, rates: Rates = NO_RATES) -> DescribedChip:
    """A chip's file, YAML or (by its ending) TOML; `InputError` for what no chip can be.

    A price in another currency is read at `rates`, before those that are known.
    """
    return described_chip(_table(path), str(path), date.today(), rates)


def described_chip(table: Mapping[str, Any], file: str, today: date, rates: Rates = NO_RATES) -> DescribedChip:
    """A chip as keys and values have it.

    >>> keys = {"name": "h100-slow", "like": "h100", "bandwidth": "2 TB/s", "peak": {"fp8": "none"}}
    >>> chip = described_chip(keys, "slow.yaml", date(2026, 11, 18))
    >>> chip.figures["bandwidth"].value, chip.lacking
    (2000000000000.0, ('fp8',))
    """
    for key in table:
        if key not in KEYS:
            raise UnknownName(key, key, KEYS, what="key")
    chip_id = _text(table, "name", "a short name in small letters, digits and hyphens, such as my-h100", ID)
    like = _text(table, "like", "the name of a known chip whose other figures it takes, such as h100")
    cited = _Cited.of(table, _Cited(file, today.isoformat(), ""), "")
    peaks = table.get("peak", {})
    if not isinstance(peaks, Mapping):
        raise InputError("peak", peaks, "dense rates by precision, such as {bf16: 989 TFLOP/s}")
    figures: dict[str, Figure] = {}
    lacking = []
    for dtype, entry in peaks.items():
        if dtype not in DTYPES:
            raise UnknownName(f"peak.{dtype}", str(dtype), DTYPES, what="precision")
        if entry == MISSING_PRECISION:
            lacking.append(dtype)
        else:
            figures[f"peak.{dtype}"] = _figure(f"peak.{dtype}", entry, PEAK, cited)
    for key, measure in MEASURES.items():
        if key in table:
            figure = _figure(key, table[key], measure, cited)
            figures |= dict.fromkeys(measure.figures, figure)
    price, price_cited = _entry("price", table["price"], cited) if "price" in table else (None, cited)
    usd, note = (None, "") if price is None else _price(price, {**exchange_rates(), **rates})
    return DescribedChip(
        file=file,
        id=chip_id,
        like=like,
        title=_text(table, "title", "text") if "title" in table else "",
        figures=MappingProxyType(figures),
        lacking=tuple(lacking),
        usd_per_chip_hour=usd,
        price_source="; ".join(filter(None, (price_cited.source, note))),
        date=price_cited.date,
    )


def chip_like(described: DescribedChip, like: Chip) -> Chip:
    """The chip: the figures of its file over those of the chip that it is like."""
    if like.fabric.kind == "torus" and "fabric.scale_up" in described.figures:
        raise Conflict("links", f"like: {like.id}", "links of a torus hang on its axes; leave them as they are")
    inherited = {name: replace(f, note=_inherited(like.id, f.note)) for name, f in like.figures.items()}
    figures: dict[str, Figure] = {**inherited, **described.figures}
    for dtype in described.lacking:
        if figures.pop(f"peak.{dtype}", None) is None:
            raise InputError(f"peak.{dtype}", MISSING_PRECISION, f"a precision that {like.id} has")
    for part, whole in (("usable_bytes", "memory_bytes"), ("idle_w", "tdp_w")):
        if whole in described.figures and part not in described.figures:
            share = like.figures[part].value / like.figures[whole].value
            note = f"assumed: {share:.3g} of it, as of {like.id}"
            figures[part] = replace(described.figures[whole], value=share * figures[whole].value, note=note)
    _check_parts(figures)
    if not any(name.startswith("peak.") for name in figures):
        raise InputError("peak", MISSING_PRECISION, "at least one precision that the chip has")
    value: dict[str, Any] = {name: figure.value for name, figure in figures.items()}
    return replace(
        like,
        id=described.id,
        name=described.title or f"{described.id} (like {like.name})",
        aliases=(),
        device_kinds=(),
        peak=MappingProxyType({d: value[f"peak.{d}"] for d in DTYPES if f"peak.{d}" in value}),
        cores=int(value["cores"]),
        **{name: value[name] for name in _RATES},
        fabric=replace(
            like.fabric,
            domain=int(value["fabric.domain"]),
            host_chips=int(value["fabric.host_chips"]),
            **{name: value[f"fabric.{name}"] for name in ("scale_up", "link", "scale_out", "host_link")},
        ),
        figures=MappingProxyType(figures),
        like=like.id,
        described_in=described.file,
    )


def own_offer(described: DescribedChip) -> Offer | None:
    """The price that the file gives, as an offer of any number of chips."""
    usd = described.usd_per_chip_hour
    if usd is None:
        return None
    return Offer(described.id, OWN, ANY, ANY, 1.0, usd, None, described.date, described.price_source, "", True, "yes")


@dataclass(frozen=True, slots=True)
class _Cited:
    """Where a figure comes from; of the whole file where a figure names none."""

    source: str
    date: str
    note: str

    @classmethod
    def of(cls, table: Mapping[str, Any], usual: _Cited, field: str) -> _Cited:
        day = str(table.get("date", usual.date))
        if not DATE.fullmatch(day):
            raise InputError(f"{field}date", day, "a date such as 2026-11-18, 2026-11 or 2026")
        texts = {}
        for key in ("source", "note"):
            texts[key] = table.get(key, getattr(usual, key))
            if not isinstance(texts[key], str):
                raise InputError(f"{field}{key}", texts[key], "text")
        return cls(texts["source"], day, texts["note"])


def _table(path: Path) -> Mapping[str, Any]:
    text = read_text(path, 100_000)
    if path.suffix.lower() != ".toml":
        return parse_yaml(text, str(path), 500, "`like: h100`")
    import tomllib

    try:
        return tomllib.loads(text)
    except ValueError as error:  # not TOML; a number of thousands of digits
        raise BrokenFile("file", str(path), f"TOML ({error})") from None
    except RecursionError:
        raise BrokenFile("file", str(path), "a few levels of nesting") from None


def _text(table: Mapping[str, Any], key: str, accepted: str, pattern: re.Pattern[str] | None = None) -> str:
    value = table.get(key)
    if value is None:
        raise InputError(key, NOTHING, accepted)
    if not isinstance(value, str) or not value.strip() or (pattern is not None and not pattern.fullmatch(value)):
        raise InputError(key, value, accepted)
    return value


def _entry(field: str, entry: Any, usual: _Cited) -> tuple[Any, _Cited]:
    """A value, alone or as {value, source, date, note}."""
    if not isinstance(entry, Mapping):
        return entry, usual
    for key in entry:
        if key not in CITATION:
            raise UnknownName(f"{field}.{key}", str(key), CITATION, what="key")
    if "value" not in entry:
        raise InputError(f"{field}.value", NOTHING, "the figure itself")
    return entry["value"], _Cited.of(entry, usual, f"{field}.")


def _figure(field: str, entry: Any, measure: Measure, usual: _Cited) -> Figure:
    value, cited = _entry(field, entry, usual)
    accepted = f"between {measure.least:.3g} and {measure.most:.3g} {measure.unit}, written such as {measure.such}"
    if measure.unit == "count":
        number = parse_count(value, field)
        if not float(number).is_integer():
            raise InputError(field, value, f"a whole number {accepted}")
    else:
        number = parse_quantity(value, field, measure.unit, measure.such)
    if not measure.least <= number <= measure.most:
        raise InputError(field, value, accepted)
    return Figure(float(number), measure.unit, cited.source, cited.date, cited.note)


def _price(value: Any, rates: Rates) -> tuple[float, str]:
    """US dollars for a chip-hour, and the rate where another currency is written."""
    accepted = f"the price of a chip-hour, above 0 and at most ${MOST_USD:,.0f}, such as 2.5 or €2.30"
    amount = read_amount(value, "price", accepted, rates, PER_HOUR)
    if not 0 < amount.usd(rates) <= MOST_USD:
        raise InputError("price", value, accepted)
    return amount.usd(rates), amount.note(rates)


def _inherited(like: str, note: str) -> str:
    return f"assumed: as {like}" + (f"; {note.removeprefix('assumed: ')}" if note else "")


def _check_parts(figures: Mapping[str, Figure]) -> None:
    """What is a part of another figure is not above it."""
    parts = (
        ("usable_memory", "usable_bytes", "memory", "memory_bytes"),
        ("onchip_memory", "onchip_bytes", "memory", "memory_bytes"),
        ("idle_power", "idle_w", "power", "tdp_w"),
    )
    for key, part, whole_key, whole in parts:
        if figures[part].value > figures[whole].value:
            most = f"{figures[whole].value:.4g} {figures[whole].unit}"
            raise InputError(key, f"{figures[part].value:.4g} {figures[part].unit}", f"at most its {whole_key}, {most}")
