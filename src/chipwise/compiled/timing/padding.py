"""What of a product is padding: dimensions that don't fill the systolic array, and which to change.

A TPU multiplies in a square array of `width` x `width`: the contraction and one other dimension are padded to
multiples of it, the third streams through in rows of eight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from chipwise.compiled.timing.schedule import Op, Schedule
from chipwise.compiled.timing.timing import ClockRates, op_seconds

SUBLANES = 8  # rows of a register (jax.dev, "Pallas TPU pipelining": registers are 8 x 128; 2025-06)
WORTH = 0.10  # less padding than this is not worth a word


@dataclass(frozen=True, slots=True)
class Waste:
    """Padding in one product of the compiled program, over all its runs and its copies at the same line."""

    name: str
    source: str
    op_name: str
    dims: tuple[tuple[str, int], ...]  # rows, columns, contraction (or head) with their sizes
    share: float  # of the array's work that is padding
    seconds: float  # of the step spent on it
    dimension: str  # the one to change
    size: int
    padded: int  # what that dimension is padded to
    multiple: int  # of which it would need no padding
    times: float

    @property
    def words(self) -> str:
        """What to change.

        >>> Waste("f", "m.py:3", "", (("head", 64),), 0.75, 0.01, "head", 64, 256, 256, 1).words
        'head 64 is padded to 256: make it a multiple of 256, or pack heads together'
        """
        pack = ", or pack heads together" if self.dimension == "head" else ""
        return f"{self.dimension} {self.size} is padded to {self.padded}: make it a multiple of {self.multiple}{pack}"


def padding(schedule: Schedule, rates: ClockRates) -> tuple[Waste, ...]:
    """Products with padding, those that waste most time first; none on chips without a systolic array."""
    if not rates.mxu:
        return ()
    wastes: dict[tuple[str, tuple[tuple[str, int], ...]], Waste] = {}
    for op, times in schedule.ops():
        waste = _attention(op, rates, times) if op.attention else _products(op, rates, times)
        if waste is None or waste.share < WORTH:
            continue
        alike = waste.source, waste.dims  # the same product at the same line: one row
        before = wastes.get(alike)
        wastes[alike] = (
            waste
            if before is None
            else replace(before, seconds=before.seconds + waste.seconds, times=before.times + waste.times)
        )
    return tuple(sorted(wastes.values(), key=lambda w: -w.seconds))


def filled(m: int, n: int, k: int, width: int) -> tuple[float, Sequence[tuple[str, int, int]]]:
    """The share of the array's work that is useful, and each dimension with the multiple it is padded to.

    The compiler chooses which operand rests in the array; the better of the two is taken.

    >>> filled(4096, 4096, 64, 256)[0], filled(4096, 4096, 64, 128)[0], filled(1, 4096, 4096, 128)[0]
    (0.25, 0.5, 0.125)
    """
    options = []
    for rows, columns in ((SUBLANES, width), (width, SUBLANES)):
        sizes = [("rows", m, rows), ("columns", n, columns), ("contraction", k, width)]
        useful = 1.0
        for _, size, multiple in sizes:
            useful *= size / _up(size, multiple)
        options.append((useful, sizes))
    return max(options, key=lambda option: option[0])


def _products(op: Op, rates: ClockRates, times: float) -> Waste | None:
    if not op.products:
        return None
    largest = max(op.products, key=lambda p: p.flops)
    useful, sizes = filled(largest.m, largest.n, largest.k, rates.mxu)
    return _waste(op, useful, sizes, rates, times)


def _attention(op: Op, rates: ClockRates, times: float) -> Waste | None:
    _, rows, keys, head = (int(value) for value in op.attention[:4])
    sizes = [("rows", rows, 1), ("keys", keys, 1), ("head", head, rates.mxu)]
    return _waste(op, head / _up(head, rates.mxu), sizes, rates, times)


def _waste(op: Op, useful: float, sizes: Sequence[tuple[str, int, int]], rates: ClockRates, times: float) -> Waste:
    name, size, multiple = max(sizes, key=lambda dimension: _up(dimension[1], dimension[2]) / dimension[1])
    seconds = op_seconds(op, rates)
    moving = op.hbm / rates.bandwidth  # memory would take this long anyway
    lost = min(seconds * (1 - useful), max(seconds - moving, 0.0))
    dims = tuple((dimension, value) for dimension, value, _ in sizes)
    return Waste(
        op.name, op.source, op.op_name, dims, 1 - useful, lost * times, name, size, _up(size, multiple), multiple, times
    )


def _up(size: int, multiple: int) -> int:
    return max(ceil(size / multiple), 1) * multiple
