"""What the formulas miss, learnt from measured kernels: a smooth factor over shapes, 1 far away from them.

A Gaussian process over log2 of the sizes, shared in part between all chips, chips of one design and one chip.
It depends on shapes and names only, never on a chip's figures, so a faster chip stays faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Octaves over which residuals stay alike. Left-out (n, k) families above 20 us, 2026-11: mean error
# 9.9 -> 9.0 % in 16 bits, 12.8 -> 11.8 % in 8 bits, 28 -> 20 % in 4 bits, 12.9 -> 11.0 % in fp32
LENGTH = 2.0
SHARES = (0.35, 0.25, 0.40)  # of the variance: common to all chips, to one design, to one chip
LIMIT = 0.5  # the largest correction, as a logarithm


def covariance(
    x: Array,
    chips: NDArray[np.int64],
    designs: NDArray[np.int64],
    y: Array,
    other_chips: NDArray[np.int64],
    other_designs: NDArray[np.int64],
) -> Array:
    """How alike two sets of points are, 1 for the same shape on the same chip."""
    square = (x**2).sum(1)[:, None] + (y**2).sum(1)[None, :] - 2 * x @ y.T
    near = np.exp(-0.5 * np.maximum(square, 0.0) / LENGTH**2)
    same_design = designs[:, None] == other_designs[None, :]
    same_chip = chips[:, None] == other_chips[None, :]
    return np.asarray(near * (SHARES[0] + SHARES[1] * same_design + SHARES[2] * same_chip))


def correction(table: Mapping[str, Any], chip: str, design: str, sizes: Sequence[float]) -> float:
    """The factor on the formula's seconds at `sizes` of a kernel on `chip`; 1 without a table.

    >>> correction({}, "h100", "hopper", [1, 1, 1])
    1.0
    """
    if not table:
        return 1.0
    points = np.asarray(table["points"], dtype=np.float64)  # sizes..., chip, design, weight
    x = np.log2(np.asarray(sizes, dtype=np.float64))[None, :]
    chips, designs = table["chips"], table["designs"]
    me = np.array([chips.index(chip) if chip in chips else -1])
    kin = np.array([designs.index(design) if design in designs else -1])
    near = covariance(x, me, kin, points[:, :-3], points[:, -3].astype(np.int64), points[:, -2].astype(np.int64))
    return float(np.exp(np.clip(near @ points[:, -1], -LIMIT, LIMIT)[0]))
