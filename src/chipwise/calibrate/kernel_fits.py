"""What every kernel fit shares: robust least squares, weights, the formulas over lists of measured rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.kernel_points import Point
from chipwise.catalog import Chip
from chipwise.catalog.calibration import Calibration, TrainingCalibration
from chipwise.predict.microbenchmark import BYTES, NARROWEST, cached_share, device_compute_spec
from chipwise.predict.model.kernels import KernelCoefficients, attention_seconds, matmul_seconds
from chipwise.predict.model.shapes import Attention, Products
from chipwise.predict.model.systolic import CycleTable

Array = NDArray[np.float64]

Entries = Mapping[str, Mapping[str, Mapping[str, float]]]

COUNTED_S = 20e-6  # shorter kernels are mostly launch: they count less


def trial(
    kernels: Entries,
    links: Mapping[str, Mapping[str, float]],
    residuals: Mapping[str, Any],
    compiled: Mapping[str, Any] | None = None,
) -> Calibration:
    """A calibration for trying out coefficients."""
    return Calibration(
        TrainingCalibration(kernels=kernels, links=links, kernel_residuals=residuals, compiled=compiled or {})
    )


def bounded(residual: Callable[[Array], Array], start: Any, low: Any, high: Any) -> Array:
    """Bounded robust least squares; deterministic."""
    from scipy.optimize import least_squares  # type: ignore[import-untyped, unused-ignore]

    solution = least_squares(
        residual, start, bounds=(low, high), loss="soft_l1", f_scale=0.1, diff_step=1e-3, max_nfev=200
    )
    return np.asarray(solution.x, dtype=np.float64)


def least(residual: Callable[[Array], Array], start: Any, low: Array, high: Array) -> Array:
    """The same over logarithms, for coefficients that are all positive."""
    lo, hi = np.log(low), np.log(high)
    x0 = np.clip(np.log(np.asarray(start)), lo + 1e-3, hi - 1e-3)
    return np.asarray(np.exp(bounded(lambda x: residual(np.exp(x)), x0, lo, hi)))


def gemm_times(
    chip: Chip, dtype: str, rows: Sequence[Point], c: KernelCoefficients, table: CycleTable | None = None
) -> Array:
    """The formula's seconds of products on one chip in one precision."""
    spec = device_compute_spec(chip, dtype, rows[0].kernel.devices, c, table)
    sizes = np.array([(*sorted((p.kernel.m, p.kernel.n)), p.kernel.k, p.rotated) for p in rows])
    m, n, k, rotated = sizes.T
    in_bytes = np.array([BYTES[p.kernel.in_dtype or dtype] for p in rows])
    out = np.array([4.0 if dtype == "fp32" and not p.kernel.in_dtype else 2.0 for p in rows])
    traffic = in_bytes * (m + n) * k + out * m * n
    cached = 0.0 if spec.mxu else cached_share(traffic + (rotated - 1) * in_bytes * n * k, chip.onchip_bytes)
    if dtype == "fp32" and not spec.mxu:
        m = np.maximum(m, NARROWEST)
    # element sizes differ by row, so the traffic is scaled to rows of one size
    plain = BYTES[dtype]
    same = plain * (m + n) * k + 2.0 * m * n
    return matmul_seconds(spec, Products(m, n, k, 1.0, plain, plain), cached=1 - (1 - cached) * traffic / same)


def row_weights(rows: Sequence[Point]) -> Array:
    """How much each row counts in a fit."""
    seconds = np.array([p.row.observed_s for p in rows])
    return np.sqrt(np.where(seconds > COUNTED_S, 1.0, 0.3))


def attention_times(chip: Chip, dtype: str, rows: Sequence[Point], c: KernelCoefficients) -> Array:
    """The formula's seconds of attention, forward (and backward where the row has it)."""
    spec = device_compute_spec(chip, dtype, chip.devices, c)
    out = np.zeros(len(rows))
    for dim in sorted({p.kernel.head_dim for p in rows}):
        some = np.array([p.kernel.head_dim == dim for p in rows])
        picked = [p.kernel for p, yes in zip(rows, some, strict=True) if yes]
        sizes = [(k.batch, k.heads, k.kv_heads or k.heads, k.m, k.causal, k.backward) for k in picked]
        batch, heads, kv, seq, causal, back = np.array(sizes, dtype=np.float64).T
        visible = np.where(causal > 0, seq / 2, seq)
        shape = Attention(batch, heads, kv, dim, dim, seq, visible)
        seconds, behind = attention_seconds(spec, shape), attention_seconds(spec, shape, backward=True)
        out[some] = seconds + np.where(back > 0, behind, 0.0)
    return out
