"""How long one kernel takes on one chip: matrix products, attention, memory streams. All arrays.

A GPU runs a matrix product as tiles over its cores in waves; a TPU pads it to its systolic arrays, as its compiler's
own cycles say where they were swept (`predict.model.systolic`). Both are bounded by memory. The few coefficients
(`KernelCoefficients`) come from calibration files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from chipwise.predict.model.shapes import Attention, Products
from chipwise.predict.model.systolic import CycleTable, systolic_seconds

Array = NDArray[np.float64]

# (rows, columns) of the output tiles that BLAS libraries choose from, and the ways they split the reduction
TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (32, 64), (16, 64))
SPLITS = (1, 2, 4, 8)
AT_ONCE = 4_096  # products tried with every tile at once: bounds memory and keeps it in the cache
REDUCE_STEP = 64  # a tile walks the reduction in steps of this many elements
WIDE = 32 / 256 + 32 / 128  # operand traffic per output of the widest tile: 1/rows + 1/columns, x32
TAIL = 0.3  # share of a wave of attention tiles that idles at the end, at best one wave
BLEND = 4.0  # how sharply the slower of compute and memory wins


@dataclass(frozen=True, slots=True)
class KernelCoefficients:
    """What calibration found for one chip and one precision."""

    matmul: float = 0.80  # share of the dense peak that a large product reaches
    small_tile: float = 0.6  # loss of small tiles: rate / (1 + this x extra operand traffic)
    wave_s: float = 1.5e-6  # start-up of a wave of tiles
    launch_s: float = 2.0e-6  # floor of one kernel
    memory: float = 0.85  # share of the memory bandwidth that streams reach
    attention: float = 0.60  # share of the dense peak of fused attention at head size 128
    attention_back: float = 0.80  # its backward pass, relative to forward
    attention_head: float = 0.35  # exponent of the head size: small heads are bound by the softmax
    attention_ramp: float = 250.0  # keys' worth of time it takes to start and finish a row of tiles
    attention_launch_s: float = 5.0e-6  # floor of one fused attention kernel
    cycles: float = 1.0  # seconds of real products over the compiler's cycles at the chip's clock (TPUs)


@dataclass(frozen=True, slots=True)
class ComputeSpec:
    """The figures of a chip that kernels depend on, for one precision."""

    peak: float
    bandwidth: float
    cores: float
    mxu: int
    coefficients: KernelCoefficients
    devices: float = 1.0  # that share the rows of a product
    table: CycleTable | None = None  # what the chip's compiler says of products


def matmul_seconds(
    spec: ComputeSpec, products: Products, out_bytes: Array | float = 2.0, cached: Array | float = 0.0
) -> Array:
    """Seconds of products with the launch, results of `out_bytes` a value; `cached` of the traffic stays on chip."""
    c, p = spec.coefficients, products
    traffic = p.batch * (p.in_bytes * p.m * p.k + p.weight_bytes * p.n * p.k + out_bytes * p.m * p.n)
    memory = traffic * (1 - cached) / (spec.bandwidth * c.memory)
    if spec.table is not None:  # the compiler's cycles know of memory and of their start
        share = replace(products, m=p.m / spec.devices)
        peak, bandwidth = spec.peak / spec.devices, spec.bandwidth / spec.devices
        compiled = systolic_seconds(spec.table, peak, bandwidth, spec.mxu, share) * c.cycles
        return np.asarray(np.maximum(compiled, memory))
    compute = _systolic(spec, p) if spec.mxu else _tiled(spec, p.m, p.n, p.k, p.batch)
    return np.asarray((compute**BLEND + memory**BLEND) ** (1 / BLEND) + c.launch_s)


def _tiled(spec: ComputeSpec, m: Array, n: Array, k: Array, batch: Array | float) -> Array:
    shape = np.broadcast_shapes(np.shape(m), np.shape(n), np.shape(k), np.shape(batch))
    size = prod(shape)
    if size <= AT_ONCE:
        return _fastest_tile(spec, m, n, k, batch)
    flat = [np.broadcast_to(x, shape).ravel() for x in (m, n, k, batch)]
    parts = [slice(first, first + AT_ONCE) for first in range(0, size, AT_ONCE)]
    return np.concatenate([_fastest_tile(spec, *(x[part] for x in flat)) for part in parts]).reshape(shape)


def _fastest_tile(spec: ComputeSpec, m: Array, n: Array, k: Array, batch: Array | float) -> Array:
    """Seconds with the best tile and split: tiles lie on a leading axis, splits follow one another."""
    c = spec.coefficients
    axes = max(np.ndim(x) for x in (m, n, k, batch))
    rows, cols = np.array(TILES, float).T.reshape(2, -1, *(1,) * axes)
    tiles = batch * np.ceil(m / rows) * np.ceil(n / cols)
    slow = 1 + c.small_tile * (32 / rows + 32 / cols - WIDE)
    per_depth = 2 * rows * cols * slow / (spec.peak * c.matmul / spec.cores)
    best = np.asarray(np.inf)
    for split in SPLITS:
        depth = np.maximum(np.ceil(k / (split * REDUCE_STEP)), 1.0) * REDUCE_STEP
        waves = tiles * split
        waves /= spec.cores
        np.ceil(waves, out=waves)
        each = per_depth * depth
        each += c.wave_s
        waves *= each
        t = waves.min(axis=0)
        if split > 1:  # partial sums go through memory once more
            t = t + c.wave_s + 2.0 * split * batch * m * n / spec.bandwidth
        best = np.minimum(best, t)
    return best


def _systolic(spec: ComputeSpec, p: Products) -> Array:
    c, w = spec.coefficients, spec.mxu
    padded = 2 * p.batch * _pad(p.m, 8) * _pad(p.n, w) * _pad(p.k, w)
    return np.asarray(padded / (spec.peak * c.matmul) + c.wave_s)


def _pad(x: Array, to: int) -> Array:
    return np.ceil(x / to) * to


def attention_seconds(spec: ComputeSpec, shape: Attention, backward: bool = False) -> Array:
    """Seconds of fused attention, forward or backward."""
    c, dims = spec.coefficients, shape.qk_dim + shape.v_dim
    flops = 2 * shape.batch * shape.heads * shape.queries * shape.visible * dims
    rate = spec.peak * c.attention * head_factor(0.5 * dims, spec.mxu, c.attention_head)
    if backward:
        flops = 2.5 * flops  # five products instead of two
        rate = rate * c.attention_back
    units = shape.batch * shape.heads * np.ceil(shape.queries / 128)
    # the last wave of work units leaves cores idle; long sequences hide the start of the pipeline
    tail = 1 + TAIL * spec.cores / np.maximum(units, spec.cores * 0.5)
    ramp = 1 + c.attention_ramp / np.maximum(shape.visible, 64)
    compute = flops * tail * ramp / rate
    elements = shape.batch * shape.queries * (shape.heads * dims + shape.kv_heads * dims)
    memory = 2 * elements * (3 if backward else 1) / (spec.bandwidth * c.memory)
    return np.asarray((compute**BLEND + memory**BLEND) ** (1 / BLEND) + c.attention_launch_s)


def head_factor(head_dim: float, mxu: int, exponent: float = 0.35) -> float:
    """Rate of attention at a head size, relative to 128: small heads are bound by the softmax."""
    if mxu:
        return float(head_dim / (np.ceil(head_dim / mxu) * mxu))  # both products pad to the array
    return float((min(head_dim, 256.0) / 128) ** exponent)


def stream_seconds(spec: ComputeSpec, traffic: Array) -> Array:
    """Seconds to move `traffic` bytes through memory."""
    return np.asarray(traffic / (spec.bandwidth * spec.coefficients.memory))
