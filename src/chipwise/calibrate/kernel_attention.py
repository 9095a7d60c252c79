"""Fits of fused attention: a chip's own, and the named kernels that benchmarks publish."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from chipwise.calibrate.kernel_fits import Array, Entries, attention_times, least, row_weights, trial
from chipwise.calibrate.kernel_points import Point
from chipwise.catalog import Chip
from chipwise.predict.microbenchmark import predict_kernel
from chipwise.predict.model.kernels import KernelCoefficients
from chipwise.predict.site import architecture

NAMES = ("attention", "attention_head", "attention_ramp", "attention_back")
LAUNCH_S = 5e-6  # of a bare kernel; the tables' operator adds rotary embedding and cache writes to it


def fit_attention(chip: Chip, dtype: str, rows: Sequence[Point], base: KernelCoefficients) -> dict[str, float]:
    """Coefficients of attention; a stream for rotary embedding and cache writes is fitted and dropped."""
    observed, weight = np.log([p.row.observed_s for p in rows]), row_weights(rows)
    kernels = [p.kernel for p in rows]
    written = np.array([4 * k.batch * k.m * k.head_dim * (k.heads + k.kv_heads) for k in kernels])

    def times(x: Array) -> Array:
        c = replace(
            base,
            attention=float(x[0]),
            attention_head=float(x[1]),
            attention_ramp=float(x[2]),
            attention_launch_s=float(x[3]),
        )
        return np.asarray(attention_times(chip, dtype, rows, c) + written / (chip.bandwidth * x[4]))

    start = np.array((0.58, 0.4, 250.0, 10e-6, 0.5))
    spread = np.array((0.5, 0.7, 1.0, 0.5, 0.3))

    def residual(x: Array) -> Array:
        return np.concatenate((weight * (np.log(times(x)) - observed), (np.log(x) - np.log(start)) / spread))

    x = least(residual, start, np.array((0.15, 0.02, 10.0, 3e-6, 0.2)), np.array((0.95, 1.5, 2000.0, 30e-6, 1.2)))
    return {
        "attention": float(x[0]),
        "attention_head": float(x[1]),
        "attention_ramp": float(x[2]),
        "attention_launch_s": LAUNCH_S,
    }


def fit_variants(kernels: Entries, measured: Sequence[Point]) -> dict[str, dict[str, float]]:
    """Coefficients of named attention kernels by design: FlashAttention-2 on Hopper and so on."""
    groups: dict[str, list[Point]] = defaultdict(list)
    for p in measured:
        if p.kernel.op == "attention" and p.kernel.implementation:
            groups[f"{p.kernel.implementation}/{architecture(p.chip)}"].append(p)
    return {
        name: _standard(rows, kernels) if name.startswith("standard") else _named(rows, kernels)
        for name, rows in sorted(groups.items())
    }


def _named(rows: Sequence[Point], kernels: Entries) -> dict[str, float]:
    chip, dtype = rows[0].chip, rows[0].kernel.dtype
    observed, weight = np.log([p.row.observed_s for p in rows]), row_weights(rows)
    base = KernelCoefficients(**kernels.get(chip.id, {}).get(dtype, {}))
    start = np.array((0.5, 0.35, 150.0, 0.8))
    # the backward pass can only be told from the forward one where rows have it
    spread = np.array((0.6, 0.5, 1.0, 0.15 if any(p.kernel.backward for p in rows) else 0.01))

    def residual(x: Array) -> Array:
        c = replace(base, **dict(zip(NAMES, (float(v) for v in x), strict=True)))
        miss = weight * (np.log(attention_times(chip, dtype, rows, c)) - observed)
        return np.concatenate((miss, (np.log(x) - np.log(start)) / spread))

    x = least(residual, start, np.array((0.1, 0.02, 5.0, 0.4)), np.array((0.95, 1.5, 2000.0, 1.2)))
    return {k: float(f"{v:.4g}") for k, v in zip(NAMES, x, strict=True)}


def _standard(rows: Sequence[Point], kernels: Entries) -> dict[str, float]:
    """Unfused attention is bound by memory: the share of it that makes the formula meet the rows."""
    name = f"standard/{architecture(rows[0].chip)}"

    def miss(share: float) -> float:
        calibration = trial(kernels, {}, {"attention": {name: {"memory": share}}})
        ratios = [predict_kernel(p.kernel, p.chip, calibration) / p.row.observed_s for p in rows]
        return float(np.abs(np.log(ratios)).sum())

    return {"memory": round(float(min(np.geomspace(0.2, 1.6, 60), key=miss)), 3)}
