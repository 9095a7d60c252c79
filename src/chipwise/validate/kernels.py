"""Predicts one published kernel measurement."""

from __future__ import annotations

from math import exp

from chipwise.catalog.calibration import Calibration
from chipwise.predict.estimate import Estimate
from chipwise.predict.microbenchmark import predict_kernel
from chipwise.validate.kernel_rows import KernelRow
from chipwise.validate.kernel_widths import bounds_of, distance_of, regime_of


def predict_kernel_row(row: KernelRow, calibration: Calibration) -> Estimate:
    """Seconds of the row's kernel with the interval that kernels as far from what was measured had."""
    seconds = predict_kernel(row.kernel, row.chip, calibration)
    learned = calibration.training.intervals["kernels"]
    distance = distance_of(row.kernel, row.chip, row.source, learned["measured"])
    regime = regime_of(row.kernel, seconds)
    low, high = bounds_of(learned["widths"], row.kernel.op, regime, distance)
    why = f"errors on published {row.kernel.op} rows ({regime}) of sources left out"
    return Estimate(seconds, seconds * exp(low), seconds * exp(high), "modelled", why, distance)
