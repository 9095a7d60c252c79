"""What the formulas miss: how benchmarks measure, and smooth residuals over shapes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.kernel_fits import COUNTED_S, Array, Entries, bounded, trial
from chipwise.calibrate.kernel_points import Point
from chipwise.catalog import load
from chipwise.predict.learn import gp
from chipwise.predict.learn.kernel_residuals import PRIOR
from chipwise.predict.microbenchmark import pool_of, predict_kernel, shape_of
from chipwise.predict.site import architecture

# factor and added seconds where no chip was measured in two ways. "best" is a search for the fastest shape:
# what it finds beats the formula for that shape by this on the chips that have tables (2026-11)
ASSUMED = {
    "gemm/best": (0.88, 0.0),
    "gemm/synchronous": (1.0, 20e-6),
    "gemm/vidur": (1.0, 3e-6),
    "reduce/torch-nccl": (1.0, 15e-6),
}
FLOORS = {"gemm": (0.0,), "reduce": (0.0, 25e-6, 30e-6, 35e-6, 40e-6, 45e-6, 50e-6)}  # host work, tried
SIGNAL, NOISE = 0.02, 0.012  # variances of the smooth part and of the rest, as logarithms
PER_CHIP = 60  # points kept for each chip and precision of a table
ALL_OF = 200  # chips with fewer shapes keep every one


def fit_benches(
    measured: Sequence[Point],
    kernels: Entries,
    links: Mapping[str, Mapping[str, float]],
    compiled: Mapping[str, Any] | None = None,
) -> dict[str, dict[str, float]]:
    """Factor and added seconds of each way of measuring, on chips that were measured in another way too."""
    plain = trial(kernels, links, {}, compiled)
    tables = {(p.chip.id, p.kernel.op) for p in measured if p.kernel.bench in ("graph", "")}
    out: dict[str, dict[str, float]] = {}
    for name, (factor, add) in ASSUMED.items():
        floor = 0.0
        rows = [
            p
            for p in measured
            if f"{p.kernel.op}/{p.kernel.bench}" == name and not p.kernel.pairs and (p.chip.id, p.kernel.op) in tables
        ]
        if len(rows) >= 5:
            formula = np.array([predict_kernel(p.kernel, p.chip, plain) for p in rows])
            observed = np.array([p.row.observed_s for p in rows])
            floors = FLOORS[name.split("/")[0]]
            tried = [_bench(formula, observed, factor, add, floor) for floor in floors]
            factor, add, floor = tried[int(np.argmin([_miss(formula, observed, *candidate) for candidate in tried]))]
        out[name] = {"factor": round(factor, 4), "add_s": float(f"{add:.3g}"), "floor_s": floor}
    return out


def _bench(formula: Array, observed: Array, factor: float, add: float, floor: float) -> tuple[float, float, float]:
    """Factor and added seconds, for a given floor."""
    start = np.array((np.log(factor), add * 1e6))

    def residual(x: Array) -> Array:
        times = np.maximum(formula * np.exp(x[0]) + x[1] * 1e-6, floor)
        return np.append(np.log(times / observed), 0.3 * (x - start) / np.array((0.1, 10.0)))

    top = 80.0 if add > 0 else 1e-6
    x = bounded(residual, start, (-0.4, 0.0), (0.4, top))
    return float(np.exp(x[0])), float(x[1]) * 1e-6, floor


def _miss(formula: Array, observed: Array, factor: float, add: float, floor: float) -> float:
    counted = observed > COUNTED_S
    times = np.maximum(formula * factor + add, floor)
    return float(np.abs(times / observed - 1)[counted].mean())


def fit_shapes(
    measured: Sequence[Point],
    kernels: Entries,
    links: Mapping[str, Mapping[str, float]],
    residuals: Mapping[str, Any],
    compiled: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Weights of the smooth residuals, by kind of kernel: a Gaussian process on a subset of the points."""
    fitted = trial(kernels, links, residuals, compiled)
    pools: dict[str, list[tuple[Point, float]]] = defaultdict(list)
    for p in measured:
        if p.chip.family != "gpu" or p.kernel.bench == "best" or p.kernel.pairs:
            continue
        pool = pool_of(p.kernel)
        if pool.split("/")[0] in ("gemm", "reduce"):
            formula = predict_kernel(p.kernel, p.chip, fitted)
            pools[pool].append((p, float(np.log(p.row.observed_s / formula))))
    return {pool: _process(rows) for pool, rows in sorted(pools.items())}


def _process(rows: Sequence[tuple[Point, float]]) -> dict[str, Any]:
    chips = sorted({p.chip.id for p, _ in rows})
    designs = sorted({architecture(load().chips[c]) for c in chips})
    x = np.log2(np.array([shape_of(p.kernel) for p, _ in rows]))
    chip = np.array([chips.index(p.chip.id) for p, _ in rows])
    design = np.array([designs.index(architecture(p.chip)) for p, _ in rows])
    residual = np.array([r for _, r in rows])
    seconds = np.array([p.row.observed_s for p, _ in rows])
    noise = NOISE * np.where(seconds > COUNTED_S, 1.0, 4.0)
    kept = _kept(x, chip)
    every = gp.Points(x, np.column_stack((chip, design)))
    weights = PRIOR.fit_sparse(every.take(kept), every, residual, noise, SIGNAL)
    points = [
        [*(round(float(v), 2) for v in x[i]), int(chip[i]), int(design[i]), float(f"{w:.3g}")]
        for i, w in zip(kept, weights, strict=True)
    ]
    return {"chips": chips, "designs": designs, "points": points}


def _kept(x: Array, chip: NDArray[np.int64]) -> list[int]:
    """One point of each shape and chip; of chips with large tables an even sample."""
    out: list[int] = []
    for c in np.unique(chip):
        mine = np.flatnonzero(chip == c)
        _, first = np.unique(np.round(x[mine], 1), axis=0, return_index=True)
        mine = mine[np.sort(first)]
        if len(mine) > ALL_OF:
            mine = mine[np.unique(np.linspace(0, len(mine) - 1, PER_CHIP).astype(int))]
        out.extend(int(i) for i in mine)
    return out
