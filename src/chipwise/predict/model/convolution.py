"""Convolutions as products that read each value once, and what stacks fuse around them.

A convolution is an implicit product: its windows overlap, but what they share is read from memory once and gathered
on the chip. The gradient of its input is such a product as well, over windows of the results' gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from chipwise.ops.operations import Matmul, Stream, StreamKind
from chipwise.predict.model.shapes import Array
from chipwise.predict.model.systolic import LANES, SUBLANES

# Groups of few channels are multiplied side by side, as one block with zeros beside its diagonal: up to the narrowest
# tile of a GPU here, or the lanes of a TPU
BLOCK = 64


class Fusion(StrEnum):
    """Where the norms, activations and additions around products are computed."""

    SEPARATE = "separate"  # each in a kernel of its own
    TOGETHER = "together"  # one kernel for a norm, its activation and the addition before it
    PRODUCTS = "products"  # in the products beside them


# Passes over the values of a map, forward and backward: every kernel reads what it needs and writes what it makes.
# SEPARATE: a norm reads twice and writes, its activation reads and writes; backward the activation reads the gradient
#   and its result and writes, the norm reads gradient and input for two sums, and once more to write. An addition reads
#   two and writes; backward two gradients are added where the branches part.
# TOGETHER: the activation's passes go; an addition is one more map to read, and one more gradient to write.
# PRODUCTS: the sums are taken by the product that writes the map, and the next product reads it through the norm.
PASSES: dict[tuple[StreamKind, Fusion], tuple[float, float]] = {
    (StreamKind.NORM, Fusion.SEPARATE): (5, 8),
    (StreamKind.NORM, Fusion.TOGETHER): (3, 5),
    (StreamKind.NORM, Fusion.PRODUCTS): (0, 2),
    (StreamKind.JOIN, Fusion.SEPARATE): (3, 3),
    (StreamKind.JOIN, Fusion.TOGETHER): (1, 4),
    (StreamKind.JOIN, Fusion.PRODUCTS): (2, 2),
}
FUSED = (StreamKind.NORM, StreamKind.JOIN)


@dataclass(frozen=True, slots=True)
class Shape:
    """One product of a pass: (m x k) by (k x n), `share` of the left operand read from memory."""

    batch: Array
    m: Array
    n: Array
    k: Array
    share: float = 1.0


def plain_shapes(batch: Array, rows: Array, n: Array, k: Array) -> tuple[Shape, Shape, Shape]:
    """The products of a linear layer: forward, for its input's gradient, for its weights'."""
    return Shape(batch, rows, n, k), Shape(batch, rows, k, n), Shape(batch, k, n, rows)


def convolution_shapes(op: Matmul, rows: Array, lanes: bool) -> tuple[Shape, Shape, Shape]:
    """The products of a convolution over `rows` output positions; with `lanes`, as a systolic array is fed them."""
    w = op.window
    assert w is not None
    c_in, c_out = op.k / w.taps, op.n
    merged = 1.0
    while merged < w.groups and merged * min(c_in, c_out) < (LANES if lanes else BLOCK):
        merged *= 2
    merged = min(merged, w.groups)
    batch, c_in, c_out = w.groups / merged + 0 * rows, c_in * merged, c_out * merged

    def deep(channels: float, taps: float) -> Array:
        # the channels of every tap fill whole lanes; few of them are laid out together with the taps
        padded = np.ceil(channels / LANES) * LANES if lanes and channels > SUBLANES else channels
        return np.asarray(padded * taps + 0 * rows)

    k = deep(c_in, w.taps)
    forward = Shape(batch, rows, c_out + 0 * rows, k, float(c_in * w.covered / k.flat[0]))
    k = deep(c_out, w.shared)
    back = Shape(batch, rows * w.covered, c_in + 0 * rows, k, float(c_out / w.covered / k.flat[0]))
    weights = Shape(batch, c_in * w.taps + 0 * rows, c_out + 0 * rows, rows, 1 / w.shared)
    return forward, back, weights


def traffic(stream: Stream, fusion: Fusion) -> tuple[float, float]:
    """Bytes a row of a stream moves, forward and backward, at two bytes a value."""
    if stream.kind not in FUSED:
        return stream.bytes_per_row, 2 * stream.bytes_per_row
    one = stream.bytes_per_row / PASSES[stream.kind, Fusion.SEPARATE][0]
    forward, backward = PASSES[stream.kind, fusion]
    return one * forward, one * backward
