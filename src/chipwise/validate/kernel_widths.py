"""How wide the interval of a kernel is: by its kind, by whether it fills the chip, and by what else was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from chipwise.catalog import Chip, load
from chipwise.predict.estimate import Distance
from chipwise.predict.microbenchmark import POOL, Kernel

# Rows and columns of the square tile at which GPUs' products reach their rate; a systolic array is as wide or wider
FULL_TILE = 128
# The longest of the host's work per call that benchmarks through a framework show (`calibrate.kernel_shapes.FLOORS`)
HOST_S = 50e-6
ANY = "any"  # operations that no source has errors of

Sources = Mapping[str, Mapping[str, Sequence[str]]]  # kind of kernel -> chip -> who measured it


class Regime(StrEnum):
    """What bounds a kernel: the chip, or what it takes to start and fill it."""

    BULK = "bulk"
    OVERHEAD = "overhead"  # a product narrower than a full tile, or work as short as a host's calls


def regime_of(kernel: Kernel, seconds: float) -> Regime:
    """The regime of a kernel that is predicted to take `seconds`.

    >>> square = Kernel("gemm", m=4096, n=4096, k=4096)
    >>> str(regime_of(square, 2e-4)), str(regime_of(square.sized(n=16), 2e-4)), str(regime_of(square, 1e-6))
    ('bulk', 'overhead', 'overhead')
    """
    narrow = kernel.op == "gemm" and min(kernel.m, kernel.n) < FULL_TILE
    return Regime.OVERHEAD if narrow or seconds < HOST_S else Regime.BULK


def kind_of(kernel: Kernel) -> str:
    """Kernels that share coefficients: an operation, of arithmetic in a class of precisions.

    >>> kind_of(Kernel("gemm", "fp16")), kind_of(Kernel("reduce", "fp16"))
    ('gemm/half', 'reduce')
    """
    return f"{kernel.op}/{POOL.get(kernel.dtype, 'half')}" if kernel.op in ("gemm", "attention") else kernel.op


def distance_of(kernel: Kernel, chip: Chip, source: str, measured: Sources) -> Distance:
    """How far the nearest kernels of its kind that were measured are; `source` is who measured this one."""
    chips = measured.get(kind_of(kernel), {})
    if chip.id in chips:
        return Distance.SOURCE if source in chips[chip.id] else Distance.CHIP
    others = [load().chips[name] for name in chips]
    if any(other.design == chip.design for other in others):
        return Distance.DESIGN
    return Distance.VENDOR if any(other.vendor == chip.vendor for other in others) else Distance.NOBODY


def bounds_of(widths: Mapping[str, Any], op: str, regime: Regime, distance: Distance) -> tuple[float, float]:
    """Bounds of log(observed / predicted)."""
    low, high, *_ = widths.get(op, widths[ANY])[regime][distance]
    return low, high
