"""Matrix products on systolic arrays as the TPU compiler schedules them: a formula and a smooth factor over shapes.

The formula counts what every generation does: sizes padded to the array, rows streamed past weights that must first
be loaded (`fill`), results drained for every output tile (`drain`), operands and results moved unless an operand fits
on chip ahead of the product, and a start. The factor is what the compiler's own cycles say beside it, a grid over the
logarithms of m, n and k, interpolated in between. `calibrate.tpu_tables` fits both on a sweep through the compiler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.predict.model.shapes import Products

Array = NDArray[np.float64]

LOWEST = (3.0, 4.0, 4.0)  # log2 of the smallest m, n and k of the grid
POINTS = (15, 14, 14)  # octaves of each from there on
UNIT = 1e-3  # the grid is stored in thousandths, as logarithms
SUBLANES, LANES = 8, 128  # rows are streamed by eight; values lie in tiles of 8 x 128 in memory
RESULT_BYTES = 2.0
TUNED_FROM = 2048.0**3  # m x n x k from which products run with the options of tuned recipes
FULL_SHARE = 0.99  # of the peak: no product is faster, whatever the factor says


@dataclass(frozen=True, slots=True, eq=False)
class CycleTable:
    """What the compiler's cycles say of one chip in one precision. Compared by identity: one a calibration."""

    share: float  # of the peak, of large products
    fill: float  # rows' worth of time to load weights into the array
    drain: float  # contraction's worth of time to take results out
    start: float  # seconds (or cycles, where the rates are a cycle's)
    step: float  # the same, of one of the steps that a product is cut into: memory runs a step ahead of arithmetic
    reads: float  # share of the memory bandwidth
    writes: float  # the same for results, of two bytes each whatever their type: what a result costs isn't its bytes
    room: float  # bytes of on-chip memory filled ahead of a product: the larger operand if it fits, else the smaller
    room_tuned: float  # the same under tuned recipes
    ragged: Array | float | None = None  # on the arithmetic where k is no multiple of the lanes
    batched: float = 0.0  # what batches of products differ by, as a logarithm
    factors: Array = field(default_factory=lambda: np.zeros(POINTS))  # logarithms, on the grid


def table_from(entry: Mapping[str, Any], dtype: str, clock: float) -> CycleTable:
    """A table from its JSON form."""
    grid = np.asarray(entry["factors"], dtype=np.float64).reshape(POINTS) * UNIT + entry["classes"].get(dtype, 0.0)
    times = {name: entry["formula"][name] / clock for name in ("start", "step")}
    ragged = entry.get("ragged", {}).get(dtype)
    return CycleTable(
        **{**entry["formula"], **times}, ragged=ragged, batched=entry["classes"].get("batched", 0.0), factors=grid
    )


def systolic_seconds(table: CycleTable, peak: float, bandwidth: float, width: int, p: Products) -> Array:
    """Seconds of products on one device, by the compiler's account of arithmetic and memory."""
    factor = factor_at(table.factors, p.m, p.n, p.k)
    if table.batched:
        factor = factor + np.where(np.asarray(p.batch) > 1, table.batched, 0.0)
    seconds = formula(table, peak, bandwidth, width, p) * np.exp(factor)
    return np.asarray(np.maximum(seconds, 2 * p.batch * p.m * p.n * p.k / (peak * FULL_SHARE)))


def formula(table: CycleTable, peak: Array | float, bandwidth: float, width: int, p: Products,
            room: Array | None = None) -> Array:  # fmt: skip
    """The part that needs no grid; `peak` and `bandwidth` may be those of a cycle.

    `room` is given where it is known; large products are taken to run under tuned recipes otherwise.
    """
    compute = 2 * p.batch * work(p.m, p.n, p.k, width, table.fill, table.drain) / (peak * table.share)
    if table.ragged is not None:
        compute = compute * np.where(p.k % LANES > 0, table.ragged, 1.0)
    left, right = p.batch * p.in_bytes * tiles(p.m, p.k), p.batch * p.weight_bytes * tiles(p.k, p.n)
    large, small = np.maximum(left, right), np.minimum(left, right)
    if room is None:
        room = np.where(p.m * p.n * p.k >= TUNED_FROM, table.room_tuned, table.room)
    ahead = np.where(large <= room, large, np.where(small <= room, small, 0.0))
    moved = (large + small - ahead) / (bandwidth * table.reads)
    moved = moved + p.batch * RESULT_BYTES * tiles(p.m, p.n) / (bandwidth * table.writes)
    longer = np.cbrt(np.sqrt(compute**6 + moved**6))
    alone = np.minimum(compute, moved) * table.step / (table.step + longer)  # what the first step can't overlap
    return np.asarray(longer + alone + table.start)


def work(m: Array, n: Array, k: Array, width: int, fill: float, drain: float) -> Array:
    """Multiply-adds' worth of time of one product: either operand may be the one that stays in the array."""
    first = (_pad(m, SUBLANES) + fill) * _pad(n, width)
    second = (_pad(n, SUBLANES) + fill) * _pad(m, width)
    return np.asarray((_pad(k, width) + drain) * np.minimum(first, second))


def tiles(rows: Array, columns: Array) -> Array:
    """Values that a matrix takes in memory, padding included: either side may lie along the lanes."""
    along, across = _pad(rows, SUBLANES) * _pad(columns, LANES), _pad(columns, SUBLANES) * _pad(rows, LANES)
    return np.asarray(np.minimum(along, across))


def factor_at(factors: Array, m: Array, n: Array, k: Array) -> Array:
    """The grid between its points, linear in the logarithms; beyond it as at its edge."""
    index, part = [], []
    for size, low, count in zip((m, n, k), LOWEST, POINTS, strict=True):
        at = np.clip(np.log2(size) - low, 0.0, count - 1)
        whole = np.minimum(at.astype(np.intp), count - 2)
        index.append(whole)
        part.append(at - whole)
    flat = factors.ravel()
    strides = (POINTS[1] * POINTS[2], POINTS[2], 1)
    origin = index[0] * strides[0] + index[1] * strides[1] + index[2]
    x, y, z = part

    def line(start: Any) -> Any:
        return flat[start] * (1 - z) + flat[start + 1] * z

    def plane(start: Any) -> Any:
        return line(start) * (1 - y) + line(start + strides[1]) * y

    return np.asarray(plane(origin) * (1 - x) + plane(origin + strides[0]) * x)


def _pad(x: Array, to: int) -> Array:
    return np.ceil(x / to) * to
