"""How far compiled steps are from published ones: the intervals of `compiled` estimates.

Nothing is fitted to training steps here: the schedules kept under ``validation/compiled`` are timed as they are, and
the spread of what remains gives the interval. A row is scored by the interval of the other groups' rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

from chipwise.catalog.calibration import Calibration
from chipwise.errors import Refusal
from chipwise.predict.estimate import quantile_pair
from chipwise.validate import training_rows
from chipwise.validate.compiled import compiled_row
from chipwise.validate.score import read_rows

LEVEL = 0.90


def compiled_errors(root: Path, calibration: Calibration) -> list[tuple[str, float]]:
    """(group, log observed / predicted) of every published row with a kept schedule."""
    kept = {k: v for k, v in calibration.training.compiled.items() if k not in ("intervals", "without")}
    bare = replace(calibration, training=replace(calibration.training, compiled=kept))
    out = []
    for row in read_rows(root / "rows" / "training.csv")[1]:
        if "tpu" not in row.get("accelerator", "").lower() or not training_rows.eligible(row):
            continue
        parsed = training_rows.read(row)
        try:
            step = compiled_row(parsed, row, bare, compile_missing=None).step
        except Refusal:
            continue  # no schedule is kept of it: the reference programs don't cover it, or it wasn't compiled
        out.append((parsed.group, log(parsed.observed_s / step.estimate.value)))
    return out


def compiled_intervals(errors: Sequence[tuple[str, float]]) -> dict[str, Any]:
    """The interval from all rows, and for each group the one from the others."""

    def interval(some: Sequence[float]) -> dict[str, Any]:
        low, high = quantile_pair(some, LEVEL)
        return {"tpu": [min(low, 0.0), max(high, 0.0)], "rows": len(some)}

    groups = sorted({group for group, _ in errors})
    return {
        "intervals": interval([e for _, e in errors]),
        "without": {g: interval([e for group, e in errors if group != g]) for g in groups},
    }
