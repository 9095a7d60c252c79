"""Tables of kernels from measured points: a formula's coefficients, and a process over what it misses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.cross_validation import k_folds
from chipwise.catalog import Chip
from chipwise.ops.point import Point
from chipwise.predict.learn.bench_calibration import PointTable
from chipwise.predict.learn.gp import Process, fit
from chipwise.predict.learn.point_terms import base_seconds, features
from chipwise.predict.model.kernels import KernelCoefficients

Array = NDArray[np.float64]
Measured = Sequence[tuple[Point, float]]  # with seconds

FEW = 4  # points from which their neighborhood is fitted, beside the formula
# Coefficients searched for each kind, with the ranges they may take
_SEARCHED: dict[str, dict[str, tuple[float, float]]] = {
    "gemm": {
        "matmul": (0.2, 1.0),
        "small_tile": (0.05, 3.0),
        "wave_s": (1e-7, 2e-5),
        "memory": (0.3, 1.0),
        "launch_s": (1e-7, 2e-5),
    },
    "sdpa": {
        "attention": (0.02, 0.95),
        "attention_back": (0.2, 1.2),
        "attention_head": (0.01, 1.5),
        "attention_ramp": (1.0, 2000.0),
        "attention_launch_s": (1e-7, 1e-4),
    },
    "": {"memory": (0.02, 1.0), "launch_s": (1e-7, 1e-4)},
}
_STEPS = (2.0, 1.3, 1.08, 1.02)  # factors by which a coefficient is tried up and down


def kernel_table(
    kind: str, dtype: str, measured: Measured, chip: Chip, floor: float, twins: Measured = ()
) -> PointTable:
    """The table of one kind in one precision, with its error on points left out.

    `floor` is the shortest time of any kernel; `twins` are points of a precision that runs at the same rate.
    """
    table = _fitted(kind, dtype, [*measured, *twins], floor, chip)
    off: list[float] = []
    for out in k_folds(len(measured)):
        kept = [pair for pair, left in zip(measured, out, strict=True) if not left]
        shapes = {tuple(sorted(point.sizes.items())) for (point, _), left in zip(measured, out, strict=True) if left}
        others = [pair for pair in twins if tuple(sorted(pair[0].sizes.items())) not in shapes]
        if not kept and not others:
            continue
        part = _fitted(kind, dtype, [*kept, *others], floor, chip, table.coefficients)
        points = [point for (point, _), left in zip(measured, out, strict=True) if left]
        seconds = np.array([t for (_, t), left in zip(measured, out, strict=True) if left])
        predicted = base_seconds(chip, kind, dtype, part.coefficients, points) * np.exp(
            part.process.at(features(kind, points, chip))
        )
        off.extend(np.abs(np.maximum(predicted, floor) / seconds - 1))
    return replace(table, points=len(measured), error=float(np.mean(off)) if off else 0.0)


def _fitted(
    kind: str, dtype: str, measured: Measured, floor: float, chip: Chip, start: KernelCoefficients | None = None
) -> PointTable:
    points, seconds = [point for point, _ in measured], np.array([t for _, t in measured])

    def loss(coefficients: KernelCoefficients) -> float:
        return float(np.mean(np.abs(np.log(base_seconds(chip, kind, dtype, coefficients, points) / seconds))))

    searched = _SEARCHED["sdpa" if kind.startswith("sdpa") else kind if kind == "gemm" else ""]
    best = search(loss, start or KernelCoefficients(), searched)
    missed = np.log(seconds / base_seconds(chip, kind, dtype, best, points))
    where = features(kind, points, chip)
    process = fit(where, missed) if len(points) >= FEW else Process.constant(missed, where.shape[1])
    return PointTable(best, process, floor, len(points), 0.0)


def search(
    loss: Callable[[KernelCoefficients], float], start: KernelCoefficients, ranges: dict[str, tuple[float, float]]
) -> KernelCoefficients:
    """Coefficients that lower the loss, one at a time, in smaller and smaller steps."""
    best, least = start, loss(start)
    for step in _STEPS:
        moved = True
        while moved:
            moved = False
            for name, (low, high) in ranges.items():
                for factor in (step, 1 / step):
                    value = float(np.clip(getattr(best, name) * factor, low, high))
                    tried = replace(best, **{name: value})
                    now = loss(tried)
                    if now < least - 1e-6:
                        best, least, moved = tried, now, True
    return best
