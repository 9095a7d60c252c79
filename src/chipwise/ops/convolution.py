"""Convolutions and the memory-bound work around them as operations."""

from __future__ import annotations

from chipwise.ops.operations import Matmul, Stream, StreamKind, Window
from chipwise.workload.model import Conv

NORM_PASSES = 5  # the statistics read, the norm reads and writes, and so does the activation behind it
JOIN_PASSES = 3  # both branches read, their sum written


def convolution(c: Conv, first: bool, quantized: bool = True) -> Matmul:
    """A convolution as the product it is; `first`: it reads the images."""
    window = Window(float(c.kernel**2), float(c.stride**2), float(c.groups), of_data=first)
    k = c.c_in // c.groups * c.kernel * c.kernel
    place = "stem" if first else "layer"
    rows, n = float(c.out * c.out), c.c_out // c.groups
    return Matmul(c.name, rows, n, k, c.count, "", place=place, quantized=quantized, window=window)


def norm(name: str, rows: float, channels: float, count: float) -> Stream:
    """A norm and the activation behind it, in kernels of their own."""
    return Stream(name, rows, 2 * NORM_PASSES * channels, count, 2, False, kind=StreamKind.NORM)


def join(name: str, rows: float, channels: float, count: float) -> Stream:
    """A branch added to another, in a kernel of its own."""
    return Stream(name, rows, 2 * JOIN_PASSES * channels, count, 1, False, kind=StreamKind.JOIN)
