"""Predicts one published kernel measurement."""

from __future__ import annotations

from math import exp

from chipwise.catalog.calibration import Calibration
from chipwise.predict.estimate import Estimate
from chipwise.predict.microbenchmark import predict_kernel
from chipwise.validate.kernel_rows import KernelRow


def predict_kernel_row(row: KernelRow, calibration: Calibration) -> Estimate:
    """Seconds of the row's kernel with the interval that kernels of its kind had."""
    seconds = predict_kernel(row.kernel, row.chip, calibration)
    table = calibration.training.intervals["kernels"]
    low, high = table.get(row.kernel.op, table["any"])
    return Estimate(
        seconds, seconds * exp(low), seconds * exp(high), "modelled", f"errors on published {row.kernel.op} rows"
    )
