"""Edge devices: modules, cards and sticks that infer beside what they watch, with power modes and prices.

They are a catalog of their own: nothing that ranks data-center chips sees them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from chipwise.catalog.chip import DTYPES, Figure
from chipwise.catalog.files import rows, tables
from chipwise.catalog.load import load
from chipwise.errors import UnknownName

DEVICES, FIGURES = "edge_devices.toml", "edge_figures.csv"
# Of memory that a module shares with its CPU, what Linux leaves to CUDA: 15.19 of 17.18 GB on an Orin NX (deviceQuery)
LEFT = {"soc": 0.88}
_SHARED = {  # figures of a catalog chip that an edge device takes over, and the slice (compute, memory) they scale by
    **{f"peak.{dtype}": 0 for dtype in DTYPES},
    "memory_bytes": 1,
    "usable_bytes": 1,
    "bandwidth": 1,
    "onchip_bytes": 1,
    "cores": 0,
    "clock_hz": None,
    "tdp_w": None,
}


@dataclass(frozen=True, slots=True)
class PowerMode:
    """A setting of a device: its power budget, and the share of the full compute clock it runs at."""

    name: str
    watts: float
    clock: float  # share of the full clock, 0 to 1


@dataclass(frozen=True, slots=True)
class EdgeDevice:
    """One device as people buy it. Figures that no source gives are 0; SI units."""

    id: str
    name: str
    vendor: str
    kind: str  # "soc" (module), "asic" or "gpu" (card)
    design: str  # devices of one design share calibration
    architecture: str
    form_factor: str
    power: str  # what the watts are of: "module", "card" or "chip"
    ranked: bool  # an edge device to choose; others are known so that published results can be read
    match: tuple[tuple[str, ...], ...]
    frameworks: tuple[str, ...]
    peak: Mapping[str, float]  # dense FLOP/s by dtype, without DLAs
    dla_int8: float  # FLOP/s of deep-learning accelerators beside the GPU
    memory_bytes: float
    bandwidth: float  # bytes/s
    onchip_bytes: float
    link: float  # bytes/s at which weights that don't stay on chip are loaded; 0: it has memory of its own
    tdp_w: float
    modes: tuple[PowerMode, ...]  # the smallest budget first; the last one is the full clock
    price_usd: float
    figures: Mapping[str, Figure]

    @property
    def full(self) -> PowerMode:
        """The mode of the full clock."""
        return self.modes[-1]

    def modes_within(self, watts: float | None) -> tuple[PowerMode, ...]:
        """Modes whose budget is known and at most `watts`; all of them without a limit."""
        return tuple(mode for mode in self.modes if watts is None or 0 < mode.watts <= watts)


def _figures() -> dict[str, dict[str, Figure]]:
    out: dict[str, dict[str, Figure]] = {}
    for row in rows(FIGURES):
        figure = Figure(float(row["value"]), row["unit"], row["source"], row["date"], row["note"])
        out.setdefault(row["device"], {})[row["figure"]] = figure
    return out


def _scaled(figures: Mapping[str, Figure], share: Sequence[float]) -> dict[str, Figure]:
    """Figures of a whole chip as those of a slice of it."""
    out: dict[str, Figure] = {}
    for name, axis in _SHARED.items():
        if name in figures:
            f = figures[name]
            factor = 1.0 if axis is None else share[axis]
            note = f.note if factor == 1.0 else f"{factor:.3g} of the whole chip"
            out[name] = Figure(f.value * factor, f.unit, f.source, f.date, note)
    return out


def _modes(figures: Mapping[str, Figure], tdp_w: float) -> tuple[PowerMode, ...]:
    """Modes whose clock is known, the full clock last; one of the whole power where none is."""
    clocks = {name.removeprefix("mode_hz."): figures[name].value for name in figures if name.startswith("mode_hz.")}
    if not clocks:
        return (PowerMode("default", tdp_w, 1.0),)
    full = max(clocks.values())
    modes = [PowerMode(name, figures[f"mode_w.{name}"].value, hz / full) for name, hz in clocks.items()]
    return tuple(sorted(modes, key=lambda mode: (mode.clock, -mode.watts)))


def _device(entry: Mapping[str, Any], figures: Mapping[str, Figure]) -> EdgeDevice:
    value = {name: figure.value for name, figure in figures.items()}
    tdp = value.get("tdp_w", 0.0)
    return EdgeDevice(
        **{k: entry[k] for k in ("id", "name", "vendor", "kind", "design", "architecture", "form_factor", "power")},
        ranked=entry.get("ranked", True),
        match=tuple(tuple(words) for words in entry["match"]),
        frameworks=tuple(entry["frameworks"]),
        peak=MappingProxyType({d: value[f"peak.{d}"] for d in DTYPES if f"peak.{d}" in value}),
        dla_int8=value.get("dla_int8", 0.0),
        memory_bytes=value.get("usable_bytes", value.get("memory_bytes", 0.0) * LEFT.get(entry["kind"], 1.0)),
        bandwidth=value.get("bandwidth", 0.0),
        onchip_bytes=value.get("onchip_bytes", 0.0),
        link=value.get("link", 0.0),
        tdp_w=tdp,
        modes=_modes(figures, tdp),
        price_usd=value.get("price_usd", 0.0),
        figures=MappingProxyType(dict(figures)),
    )


@cache
def edge_devices() -> Mapping[str, EdgeDevice]:
    """Every edge device by id.

    >>> orin = edge_devices()["jetson-orin-nx-16gb"]
    >>> orin.full.name, [mode.watts for mode in orin.modes_within(15)]
    ('MAXN', [15.0, 10.0])
    """
    own, entries = _figures(), tables(DEVICES, "device")
    out: dict[str, EdgeDevice] = {}
    for entry in entries:
        share = entry.get("slice", [1.0, 1.0])
        if "chip" in entry:
            figures = _scaled(load().chips[entry["chip"]].figures, share)
        elif "base" in entry:
            figures = _scaled(own[entry["base"]], share)
        else:
            figures = {}
        out[entry["id"]] = _device(entry, {**figures, **own.get(entry["id"], {})})
    return MappingProxyType(out)


def _words(text: str) -> list[str]:
    plain = text.lower().replace("1x1g", "1g").replace(".", " ")
    return re.findall(r"[a-z]+[0-9]*[a-z]*|[0-9]+[a-z]*", re.sub(r"(?<=[0-9])\s*gb\b", " gb", plain))


def _plain(text: str) -> str:
    return "-".join(text.strip().lower().replace("_", " ").replace("-", " ").split())


def find_device(text: str) -> EdgeDevice:
    """The device that a name means, in any spelling: by id or its end, or by the longest set of its words in a text.

    >>> find_device("NVIDIA Jetson Orin NX (16 GB)").id, find_device("Hailo-8L").id, find_device("agx orin 32gb").id
    ('jetson-orin-nx-16gb', 'hailo-8l', 'jetson-agx-orin-32gb')
    """
    known = edge_devices()
    exact = _plain(text)
    if exact in known:
        return known[exact]
    ends = [name for name in known if name.endswith(f"-{exact}")]
    if len(ends) == 1 and "-" in exact:
        return known[ends[0]]
    words, best = set(_words(text)), (0, "")
    for device in known.values():
        for match in device.match:
            if set(match) <= words and len(match) > best[0]:
                best = (len(match), device.id)
    if not best[1]:
        raise UnknownName("device", text, known, hint=f" (lines: {', '.join(_lines())})")
    return known[best[1]]


@cache
def _lines() -> Mapping[str, tuple[str, ...]]:
    """Ranked devices by the first word of their ids, which names their line."""
    lines: dict[str, tuple[str, ...]] = {}
    for device in edge_devices().values():
        if device.ranked:
            line = device.id.split("-")[0]
            lines[line] = (*lines.get(line, ()), device.id)
    return MappingProxyType(lines)


def find_devices(text: str) -> list[EdgeDevice]:
    """The device that a name means, or all of a line: Jetson, Coral, Hailo ...

    >>> [device.id for device in find_devices("Hailo")]
    ['hailo-8', 'hailo-8l', 'hailo-10h']
    """
    line = _lines().get(_plain(text), ())
    return [edge_devices()[name] for name in line] or [find_device(text)]
