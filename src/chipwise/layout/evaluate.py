"""Step time and memory of every layout of a grid, through the functions of `predict`, part by part.

Times are those that are answered: with what measurements and published steps near each layout say.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from chipwise.layout.grid import Grid, rows
from chipwise.predict.model.components import Components
from chipwise.predict.setup import Setup

Array = NDArray[np.float64]
PART = 16_384  # layouts scheduled at once: their temporaries stay in the second-level cache


def evaluate(work: Setup, grid: Grid) -> tuple[Array, Array]:
    """Seconds of one step and bytes per chip, shaped like the grid."""
    states, modes, total = grid.shape
    parts = work.components(grid.layouts)
    seconds, need = np.empty(grid.shape), np.empty(grid.shape)
    wires = None if work.measured is None else np.empty(grid.shape)
    step = max(1, PART // (states * modes))
    for first in range(0, total, step):
        last = min(first + step, total)
        times = work.schedule(_part(parts, first, last, total))
        seconds[..., first:last] = times.total
        if wires is not None:
            wires[..., first:last] = times.collectives
        need[..., first:last] = work.memory(grid.part(first, last)).total
    return work.corrected(grid.layouts, seconds, wires), need


def memory_need(work: Setup, grid: Grid) -> Array:
    """Bytes per chip alone, shaped like the grid."""
    return np.asarray(np.broadcast_to(work.memory(grid.layouts).total, grid.shape))


def _part(c: Components, first: int, last: int, total: int) -> Components:
    return Components(*(rows(getattr(c, f.name), first, last, total) for f in fields(c)))
