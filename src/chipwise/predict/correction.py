"""What the step model still misses, learnt from published steps: a smooth factor, 1 far away from them.

A Gaussian process over sizes and names. It never sees a chip's figures, so a faster chip stays faster, and it
leaves the ranking of layouts to the formulas: it corrects the answer that is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog import Accelerators, Chip, Stack
from chipwise.catalog.calibration import Calibration
from chipwise.predict.layouts import RECOMPUTE, Layout
from chipwise.predict.site import RELEASE, architecture
from chipwise.workload.model import Workload

Array = NDArray[np.float64]

# Scales of the sizes (octaves, years, stages) and penalties of unlike names, chosen by cross-validation over
# whole groups of rows (`make calibration` prints the errors), 2026-11-15.
AMPLITUDE = 0.2  # standard deviation of the correction, as a logarithm
NAME_PENALTY = (2.0, 0.7, 1.2, 0.6, 2.0, 2.0, 2.0)  # stack, chip, design, precision, experts, LoRA, family
LIMIT = 0.5  # the largest correction, as a logarithm


def sizes(workload: Workload, chips: int, layout: Layout, release: float) -> list[float]:
    """The numbers a step is compared by, on comparable scales."""
    m, t = workload.model, workload.train
    head = m.d_model / m.heads if m.heads else 64.0
    return [
        round(v, 3)
        for v in (
            log2(max(m.d_model, 1)) / 1.5,
            log2(max(m.layers, 1)),
            log2(t.sequence) / 1.5,
            log2(max(layout.micro_batch, 0.1)) / 1.5,
            log2(layout.tp),
            log2(layout.pp),
            log2(layout.cp),
            log2(layout.ep) / 1.5,
            log2(chips) / 3,
            (release - RELEASE) / 0.7,
            log2(head),
            (0.0, 1.0, 2.0, 3.0)[RECOMPUTE.index(layout.recompute)],
            layout.zero / 1.5,
        )
    ]


def names(workload: Workload, chip: Chip, stack: Stack | None) -> list[str]:
    """The names a step is compared by."""
    m, t = workload.model, workload.train
    return [
        stack.id if stack else "",
        chip.id,
        architecture(chip),
        t.precision,
        "moe" if m.experts else "dense",
        "lora" if t.lora_rank else "",
        m.family,
    ]


def covariance(x: Array, n: NDArray[np.str_], y: Array, o: NDArray[np.str_]) -> Array:
    """How alike two sets of steps are: 1 for the same, falling to 0."""
    square = (x**2).sum(1)[:, None] + (y**2).sum(1)[None, :] - 2 * x @ y.T
    for i, penalty in enumerate(NAME_PENALTY):
        square = square + 2 * penalty * (n[:, i][:, None] != o[:, i][None, :])
    return np.asarray(np.exp(-0.5 * np.maximum(square, 0.0)))


def learnt_factors(
    calibration: Calibration,
    workload: Workload,
    acc: Accelerators,
    stack: Stack | None,
    release: float,
    layouts: Sequence[Layout],
) -> Array:
    """The factors on the steps of some layouts at a place; 1 where the calibration learnt none."""
    table = calibration.correction.get("steps")
    if not table:
        return np.ones(len(layouts))
    x = np.array([sizes(workload, acc.count, layout, release) for layout in layouts])
    near = covariance(x, np.array([names(workload, acc.chip, stack)]), *_arrays(table))
    learnt = AMPLITUDE**2 * near @ np.asarray(table["alpha"])
    return np.asarray(np.exp(np.clip(learnt, -LIMIT, LIMIT)))


_held: dict[int, tuple[Any, Array, NDArray[np.str_]]] = {}  # arrays of the tables used so far, by identity


def _arrays(table: Mapping[str, Any]) -> tuple[Array, NDArray[np.str_]]:
    raw = table["sizes"]
    found = _held.get(id(raw))
    if found is None or found[0] is not raw:
        found = _held[id(raw)] = (raw, np.asarray(raw, float), np.asarray(table["names"]))
    return found[1], found[2]
