"""Fits the coefficients of kernels and wires to measured ones. Deterministic; scipy is imported when used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from chipwise.calibrate.kernel_attention import fit_attention, fit_variants
from chipwise.calibrate.kernel_fits import Array, gemm_times, least, row_weights, trial
from chipwise.calibrate.kernel_points import Point, points
from chipwise.calibrate.kernel_shapes import fit_benches, fit_shapes
from chipwise.calibrate.link_fits import fit_links
from chipwise.catalog import Chip, load
from chipwise.catalog.calibration import Calibration
from chipwise.catalog.compilers import tpu_compilers
from chipwise.predict.model import systolic
from chipwise.predict.model.kernels import KernelCoefficients
from chipwise.predict.site import architecture, table_of

Table = dict[str, dict[str, dict[str, float]]]

ENOUGH = 10  # rows from which all five coefficients of a product are fitted
GEMM = ("matmul", "small_tile", "wave_s", "launch_s", "memory")
START = {"half": (0.80, 1.0, 1.5e-6, 1.5e-6, 0.82), "fp32": (0.85, 0.3, 1.5e-6, 5e-6, 0.8)}
LOW = np.array((0.15, 0.03, 0.05e-6, 0.1e-6, 0.3))
HIGH = np.array((1.0, 8.0, 8e-6, 15e-6, 1.0))
PRIOR = np.array((0.5, 1.0, 0.7, 0.7, 0.12))  # standard deviations around the start, as logarithms

# Large products on TPUs without published ones: the compiler keeps the arrays busy. Assumed, 2026-11.
TPU_MATMUL = 0.95
TPU_MEMORY = 0.87  # AI-Hypercomputer/tpu-recipes: TPU7x copies at 6.4 of 7.38 TB/s, v6e at 1.36 of 1.64
TRUSTED_FROM = 1024.0**3  # the compiler's cycles of smaller products are 1.2 to 1.9 times what they take
TPU = KernelCoefficients(TPU_MATMUL, 0.0, 2e-6, 1.5e-6, TPU_MEMORY, 0.55, 0.80, 0.5, 256.0, 5e-6)
# Chips that only have a best-of-shapes figure, or none: attention reaches this part of what products reach
ATTENTION_OF_MATMUL = 0.65
# Power holds vector units back: log of the share of peak against log of fp32 FLOP/s per watt (slope, level),
# as found on the six cards of sitar-lab/NeuSight and DeepBench, 2026-11; used where too few of them are left
VECTOR_LINE, VECTOR_LOW, VECTOR_TOP = (-0.5, 12.3), 0.45, 0.93


def fit_kernels(
    root: Path, without: str | None = None, compiled: Mapping[str, Any] | None = None
) -> tuple[Table, dict[str, dict[str, float]], dict[str, Any]]:
    """Coefficients of kernels and links, and residuals, from what was measured less one source.

    `root` holds ``rows/kernels.csv`` and the tables in ``kernels``; the residuals are a calibration's
    `kernel_residuals`. `compiled` holds the tables of products that TPU compilers gave.
    """
    measured = points(root, without)
    prior = trial({}, {}, {}, compiled)
    kernels = _products(measured, prior)
    _fill(kernels)
    _add_attention(kernels, measured)
    links = fit_links(measured)
    benches = fit_benches(measured, kernels, links, prior.training.compiled)
    _best_only(kernels, measured, benches)
    variants = fit_variants(kernels, measured)
    _prefer_published(kernels, variants)
    residuals: dict[str, Any] = {"benches": benches, "attention": variants, "shapes": {}}
    residuals["shapes"] = fit_shapes(measured, kernels, links, residuals, prior.training.compiled)
    return _rounded(kernels), links, residuals


def _gemm_groups(measured: Sequence[Point]) -> dict[tuple[str, str], list[Point]]:
    """Products by chip and precision, in the way of measuring that has most rows (graphs before others)."""
    groups: dict[tuple[str, str], dict[str, list[Point]]] = defaultdict(lambda: defaultdict(list))
    for p in measured:
        if p.kernel.op == "gemm" and p.kernel.bench != "best":
            dtype = "bf16" if p.kernel.dtype == "fp16" and "bf16" in p.chip.peak else p.kernel.dtype
            groups[p.chip.id, dtype][p.kernel.bench].append(p)
    return {key: by["graph"] if "graph" in by else max(by.values(), key=len) for key, by in groups.items()}


def _products(measured: Sequence[Point], calibration: Calibration) -> Table:
    groups = _gemm_groups(measured)
    table: Table = defaultdict(dict)
    pooled = [(load().chips[c], rows) for (c, d), rows in groups.items() if d == "fp32"]
    if pooled:
        for chip_id, entry in _fit_pooled(pooled).items():
            table[chip_id]["fp32"] = entry
    for (chip_id, dtype), rows in sorted(groups.items()):
        chip = load().chips[chip_id]
        if dtype == "fp32" and chip_id in table and "fp32" in table[chip_id]:
            continue
        if chip.mxu:
            cycles = table_of(chip, dtype, calibration)
            table[chip_id][dtype] = (
                _fit_cycles(chip, dtype, rows, cycles) if cycles else _fit_systolic(chip, dtype, rows)
            )
        elif len(rows) >= ENOUGH:
            table[chip_id][dtype] = _fit_one(chip, dtype, rows)
    return dict(table)


def _coefficients(x: Array) -> dict[str, float]:
    return dict(zip(GEMM, (float(v) for v in x), strict=True))


def _fit_one(chip: Chip, dtype: str, rows: Sequence[Point]) -> dict[str, float]:
    observed, weight = np.log([p.row.observed_s for p in rows]), row_weights(rows)
    start = np.array(START["half"])

    def residual(x: Array) -> Array:
        times = gemm_times(chip, dtype, rows, KernelCoefficients(**_coefficients(x)))
        return np.concatenate((weight * (np.log(times) - observed), (np.log(x) - np.log(start)) / PRIOR))

    best = min(
        (least(residual, s, LOW, HIGH) for s in (START["half"], (0.9, 3.0, 1e-6, 1e-6, 0.8))),
        key=lambda x: float(np.abs(residual(x)).sum()),
    )
    return _coefficients(best)


def _fit_pooled(groups: Sequence[tuple[Chip, list[Point]]]) -> dict[str, dict[str, float]]:
    """Vector-unit products: each chip its share of peak, all chips the rest."""
    observed = [np.log([p.row.observed_s for p in rows]) for _, rows in groups]
    # a chip with many rows must not drown the others
    weight = [row_weights(rows) * min(1.0, (60 / len(rows)) ** 0.5) for _, rows in groups]
    start = np.array((*START["fp32"][1:], *(START["fp32"][0] for _ in groups)))

    def residual(x: Array) -> Array:
        parts = [(np.log(x[:4]) - np.log(start[:4])) / PRIOR[1:]]
        for i, (chip, rows) in enumerate(groups):
            c = KernelCoefficients(x[4 + i], *x[:4])
            parts.append(weight[i] * (np.log(gemm_times(chip, "fp32", rows, c)) - observed[i]))
        return np.concatenate(parts)

    low = np.concatenate((LOW[1:], np.full(len(groups), LOW[0])))
    high = np.concatenate((HIGH[1:], np.full(len(groups), HIGH[0])))
    x = least(residual, start, low, high)
    return {chip.id: _coefficients(np.array((x[4 + i], *x[:4]))) for i, (chip, _) in enumerate(groups)}


def _fit_systolic(chip: Chip, dtype: str, rows: Sequence[Point]) -> dict[str, float]:
    """A systolic array has two unknowns here: its share of peak and its start-up."""
    observed = np.log([p.row.observed_s for p in rows])
    start = np.array((0.9, 4e-6))

    def residual(x: Array) -> Array:
        c = replace(TPU, matmul=float(x[0]), wave_s=float(x[1]))
        prior = (np.log(x) - np.log(start)) / np.array((0.5, 0.5))
        return np.concatenate((row_weights(rows) * (np.log(gemm_times(chip, dtype, rows, c)) - observed), 0.1 * prior))

    x = least(residual, start, np.array((0.3, 0.2e-6)), np.array((1.0, 20e-6)))
    return asdict(replace(TPU, matmul=float(x[0]), wave_s=float(x[1])))


def _fit_cycles(chip: Chip, dtype: str, rows: Sequence[Point], table: systolic.CycleTable) -> dict[str, float]:
    """Seconds of real products over the compiler's: one number, on products whose cycles can be trusted."""
    large = [p for p in rows if p.kernel.m * p.kernel.n * p.kernel.k > TRUSTED_FROM] or list(rows)
    observed = np.array([p.row.observed_s for p in large])
    x = 1.0
    for _ in range(8):
        times = gemm_times(chip, dtype, large, replace(TPU, cycles=x), table)
        x *= float(np.exp(np.mean(np.log(observed / times))))
    return asdict(replace(TPU, cycles=x))


def _fill(table: Table) -> None:
    """Entries for every design and family, so that each chip of the catalog finds a relative."""
    chips, designs = load().chips, load().designs.values()
    leaders = {design.id: design.leader for design in designs if design.leader}
    plain = _coefficients(np.array(START["half"]))
    vector = _coefficients(np.array(START["fp32"]))
    for entry in table.values():
        _complete(entry)
    lead = next((table[c]["bf16"] for c in leaders.values() if "bf16" in table.get(c, {})), plain)
    for name, chip_id in leaders.items():
        own = dict(table.get(chip_id, {}))
        if "bf16" not in own and "fp16" not in own:
            own["bf16"] = lead
        table[f"arch:{name}"] = _complete(own)
    for design in designs:
        if share := design.matmul_share:
            attention = ATTENTION_OF_MATMUL * share
            entry = {"bf16": {**lead, "matmul": share, "attention": attention}, "fp32": {**vector, "matmul": share}}
            table[f"arch:{design.id}"] = _complete(entry)
    _vector_units(table, vector)
    for chip in chips.values():
        if chip.family == "tpu":
            own = table.setdefault(chip.id, {})
            for dtype in (*chip.peak, "fp32"):
                own.setdefault(dtype, own.get("bf16", asdict(replace(TPU, cycles=_clock_ratio(chip)))))
    table["family:tpu"] = {"any": asdict(TPU)}
    table["family:other"] = {"any": asdict(replace(TPU, matmul=0.80))}
    table["family:gpu"] = {"fp32": vector, "any": lead}
    table["any"] = {"any": lead}


def _clock_ratio(chip: Chip) -> float:
    """The data sheet's clock over the one that the compiler counts with; 1 where it counts with the same.

    Where no product is published the compiler's cycles are taken at the data sheet's clock.
    """
    compiler = tpu_compilers().get(chip.id)
    counted = compiler.sweep.clock_hz if compiler and compiler.sweep else 0.0
    return chip.clock_hz / counted if counted else 1.0


def _vector_units(table: Table, vector: dict[str, float]) -> None:
    """fp32 on chips never measured: the others' shape effects, a share that falls with peak per watt."""
    chips = load().chips
    measured = {c: t["fp32"] for c, t in table.items() if c in chips and "fp32" in t}
    x = np.log([chips[c].peak["fp32"] / chips[c].tdp_w for c in measured])
    y = np.log([entry["matmul"] for entry in measured.values()])
    slope, level = np.polyfit(x, y, 1) if len(measured) >= 4 and np.ptp(x) > 1.0 else VECTOR_LINE
    like = next(iter(measured.values()), vector)
    for chip in chips.values():
        if "fp32" in chip.peak and chip.vendor.lower() == "nvidia" and chip.id not in measured:
            share = np.exp(level + slope * np.log(chip.peak["fp32"] / chip.tdp_w))
            table.setdefault(chip.id, {})["fp32"] = {**like, "matmul": float(np.clip(share, VECTOR_LOW, VECTOR_TOP))}


def _complete(entry: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """A precision that was not measured behaves like its neighbor."""
    for missing, source in (
        ("bf16", "fp16"),
        ("fp16", "bf16"),
        ("tf32", "bf16"),
        ("fp8", "bf16"),
        ("int8", "fp8"),
        ("fp4", "fp8"),
    ):
        if missing not in entry and source in entry:
            entry[missing] = dict(entry[source])
    return entry


def _best_only(table: Table, measured: Sequence[Point], benches: Mapping[str, Mapping[str, float]]) -> None:
    """Chips known only by their best shape: the share that gives its time, the rest from a relative."""
    factor = benches["gemm/best"]["factor"]
    for p in measured:
        if p.kernel.op != "gemm" or p.kernel.bench != "best" or p.kernel.dtype in table.get(p.chip.id, {}):
            continue
        chip, dtype = p.chip, p.kernel.dtype
        design = f"arch:{architecture(chip)}"
        like = (
            asdict(TPU) if chip.mxu else dict(table.get(design, table["family:gpu"]).get(dtype) or table["any"]["any"])
        )
        for _ in range(8):
            seconds = float(gemm_times(chip, dtype, [p], KernelCoefficients(**like))[0]) * factor
            like["matmul"] = float(np.clip(like["matmul"] * seconds / p.row.observed_s, 0.1, 1.0))
        like["attention"] = round(ATTENTION_OF_MATMUL * like["matmul"], 4)
        entry = table.setdefault(chip.id, {})
        entry[dtype] = like
        _complete(entry)
        shared = load().designs.get(chip.design)
        if shared and shared.matmul_share:  # what was measured speaks for its unmeasured siblings
            table[design].update(entry)


def _add_attention(table: Table, measured: Sequence[Point]) -> None:
    """Fused attention of each chip: its share of peak, head-size exponent and ramp."""
    groups: dict[tuple[str, str], list[Point]] = defaultdict(list)
    for p in measured:
        if p.kernel.op == "attention" and p.kernel.bench == "graph":
            groups[p.chip.id, p.kernel.dtype].append(p)
    for (chip_id, dtype), rows in sorted(groups.items()):
        if dtype in table.get(chip_id, {}):
            coefficients = fit_attention(
                load().chips[chip_id], dtype, rows, KernelCoefficients(**table[chip_id][dtype])
            )
            for kin in {"bf16": ("bf16", "fp16", "tf32"), "fp8": ("fp8", "int8", "fp4")}.get(dtype, (dtype,)):
                if kin in table[chip_id]:
                    table[chip_id][kin].update(coefficients)
    for design in load().designs.values():
        leader = table.get(design.leader, {})
        for dtype, entry in table.get(f"arch:{design.id}", {}).items():
            entry.update({k: v for k, v in leader.get(dtype, {}).items() if k.startswith("attention")})


def _prefer_published(table: Table, variants: Mapping[str, Mapping[str, float]]) -> None:
    """Where training runs a published kernel, it is faster than the serving kernel of the tables."""
    for design in load().designs.values():
        published = variants.get(f"{design.trains_with}/{design.id}")
        for name in (design.leader, f"arch:{design.id}"):
            for dtype in ("bf16", "fp16"):
                if published and dtype in table.get(name, {}):
                    table[name][dtype].update(published)


def _rounded(table: Table) -> Table:
    return {
        name: {dtype: {k: float(f"{v:.4g}") for k, v in c.items()} for dtype, c in entry.items()}
        for name, entry in table.items()
    }
