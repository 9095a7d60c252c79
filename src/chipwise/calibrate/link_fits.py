"""Fits the wires: NCCL inside a node, torus links of TPUs, what is assumed beyond them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np

from chipwise.calibrate.kernel_fits import COUNTED_S, Array, bounded
from chipwise.calibrate.kernel_points import Point
from chipwise.catalog import Chip, Design, load
from chipwise.predict.model.fabric import LinkCoefficients, Wires, gather_seconds, reduce_seconds

# No multi-node measurement names its chips: assumed, 2026-11
BEYOND = {"out": 0.80, "out_hop_s": 6e-6, "out_base_s": 20e-6}
OTHER_UP = 0.75  # of chips that are neither GPUs nor TPUs; assumed, 2026-11
TORUS = LinkCoefficients(up=0.80, out=0.60, hop_s=1e-6, base_s=10e-6, out_hop_s=1e-5, out_base_s=5e-5, ramp_s=0.0)


def fit_links(measured: Sequence[Point]) -> dict[str, dict[str, float]]:
    """Coefficients by chip, design and family."""
    groups: dict[str, list[Point]] = defaultdict(list)
    for p in measured:
        if p.kernel.op in ("reduce", "gather") and p.chip.family == "gpu" and _plain(p):
            groups[p.chip.id].append(p)
    out = {chip_id: _fit(load().chips[chip_id], rows) for chip_id, rows in sorted(groups.items()) if len(rows) >= 8}
    leaders = [chip for design in load().designs.values() for chip in design.leaders]
    leader = next((out[chip] for chip in leaders if chip in out), _dump(LinkCoefficients(**BEYOND)))
    for design in load().designs.values():
        if _switched(design) or design.links.values:
            own = next((out[chip] for chip in design.leaders if chip in out), {**leader, **design.links.values})
            out[f"arch:{design.id}"] = dict(own)
    out["family:other"] = {**leader, "up": OTHER_UP, "in_switch": 0.0}
    out["family:gpu"] = {**leader, "in_switch": 0.0}
    _pcie(out, leader, groups)
    _torus(out, measured)
    return {name: {k: float(f"{v:.4g}") for k, v in c.items()} for name, c in out.items()}


def _switched(design: Design) -> bool:
    """Whether the chips of a design are joined by a switch, as its leader is."""
    return bool(design.leader) and load().chips[design.leader].fabric.kind == "switch"


def _plain(p: Point) -> bool:
    """A benchmark of the library itself on a fully linked node."""
    return not p.kernel.pairs and p.kernel.bench == "" and not p.kernel.nvls_off


def _dump(c: LinkCoefficients) -> dict[str, float]:
    return asdict(c)


def _fit(chip: Chip, rows: Sequence[Point]) -> dict[str, float]:
    size = np.array([float(p.kernel.chips) for p in rows])
    reduces = np.array([p.kernel.op == "reduce" for p in rows])
    data = np.array([p.kernel.data for p in rows])
    whole = np.where(reduces, data, data * size / (size - 1))
    observed = np.array([p.row.observed_s for p in rows])
    weight = np.where(observed >= COUNTED_S, 1.0, 0.3)
    design = load().designs.get(chip.design)
    reducing = chip.fabric.kind == "switch" and design is not None and design.switch_reduces
    switch = reducing and bool((size > 4).any())
    one = np.ones(len(rows))
    start = np.array((0.85, 7.0, 1.0, 10.0, 0.1, 0.55))
    spread = np.array((0.4, 4.0, 0.7, 15.0, 0.3, 0.1))

    def coefficients(x: Array) -> LinkCoefficients:
        return LinkCoefficients(
            up=x[0],
            base_s=x[1] * 1e-6,
            hop_s=x[2] * 1e-6,
            ramp_s=x[3] * 1e-6,
            spread=x[4],
            in_switch=x[5] if switch else 0.0,
            **BEYOND,
        )

    def residual(x: Array) -> Array:
        links = Wires(chip.fabric, 8, (), (), coefficients(x))
        times = np.where(reduces, reduce_seconds(links, size, one, whole), gather_seconds(links, size, one, whole))
        return np.concatenate((weight * np.log(times / observed), 0.1 * (x - start) / spread))

    low, high = (0.05, 1.0, 0.05, 0.0, -0.6, 0.3), (1.1, 40.0, 10.0, 80.0, 1.1, 0.8)
    c = coefficients(bounded(residual, start, low, high))
    if reducing and not switch:
        c = replace(c, in_switch=float(start[5]))  # measured on two and four chips only: as its relatives
    return _dump(c)


def _pcie(
    out: dict[str, dict[str, float]], coefficients: dict[str, float], groups: Mapping[str, Sequence[Point]]
) -> None:
    """Cards without fast links: as the PCIe machine that was measured at most numbers of ranks, two at least."""
    counts = {
        chip_id: len({p.kernel.chips for p in rows})
        for chip_id, rows in groups.items()
        if chip_id in out and load().chips[chip_id].fabric.kind == "pcie"
    }
    widest = max(counts, key=lambda chip_id: counts[chip_id], default="")
    assumed = {**coefficients, "up": 0.4, "spread": -0.3, "in_switch": 0.0}
    model = dict(out[widest]) if counts.get(widest, 0) > 1 else assumed
    for chip in load().chips.values():
        if chip.fabric.kind == "pcie" and chip.id not in out:
            out[chip.id] = {**model, **BEYOND}


def _torus(out: dict[str, dict[str, float]], measured: Sequence[Point]) -> None:
    """TPU links: shares of the published all-gather, all-reduce and two-slice all-reduce."""
    out["family:tpu"] = _dump(TORUS)
    for chip in (c for c in load().chips.values() if c.family == "tpu"):
        mine = [p for p in measured if p.chip.id == chip.id and p.kernel.op in ("reduce", "gather")]
        gathers = [p for p in mine if p.kernel.op == "gather"]
        rings = [p for p in mine if p.kernel.op == "reduce" and not p.kernel.over_slices]
        slices = [p for p in mine if p.kernel.over_slices]
        c = TORUS
        if gathers:
            c = _gathers(chip, gathers)
        for p in rings:  # 2(n-1)/n of the data over all links of the chip
            wire = 2 * (p.kernel.chips - 1) / p.kernel.chips * p.kernel.data / chip.fabric.scale_up
            c = replace(c, up=wire / p.row.observed_s)
        for p in slices:
            c = replace(c, out=0.5 * p.kernel.data / chip.fabric.scale_out / p.row.observed_s)
        if mine:
            out[chip.id] = _dump(c)


def _gathers(chip: Chip, rows: Sequence[Point]) -> LinkCoefficients:
    """A straight line through bytes and seconds, each row weighted alike."""
    data = np.array([p.kernel.data for p in rows])
    seconds = np.array([p.row.observed_s for p in rows])
    links = 2 * chip.fabric.link  # the published groups cover a 2 x 2 plane: one link on each of two axes
    design = np.stack((data / seconds, 1 / seconds), axis=1)
    (slope, start), *_ = np.linalg.lstsq(design, np.ones(len(rows)), rcond=None)
    return replace(TORUS, up=float(1 / (slope * links)), base_s=float(max(start - 3 * TORUS.hop_s, 1e-6)))
