"""What a training precision means in bytes and in which products run at which rate."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.catalog.chip import Chip
from chipwise.errors import InputError, PrecisionMissing

FP32_PASSES = 6  # bf16 passes in which XLA runs an fp32 product on a TPU at the highest precision


@dataclass(frozen=True, slots=True)
class Numerics:
    """Bytes per element of everything a training step keeps or moves."""

    compute: str  # precision of the quantized products
    base: str  # precision of the others
    low_bytes: float
    act_bytes: float
    weight_bytes: float  # the working copy of the weights
    gather_bytes: float  # weights on the wire
    grad_bytes: float
    reduce_bytes: float  # gradients on the wire
    dispatch_bytes: float  # tokens on their way to experts
    back_high: bool = False  # the backward products stay in the base precision


def numerics(precision: str, state: str = "fp32", reduce_bytes: float = 2.0) -> Numerics:
    """The bytes behind a precision name.

    >>> numerics("bf16").act_bytes, numerics("fp8").low_bytes
    (2.0, 1.0)
    """
    grad = 4.0 if state == "fp32" else 2.0
    if precision in ("fp32", "tf32"):
        return Numerics(precision, precision, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0)
    if precision in ("bf16", "fp16"):
        return Numerics(precision, precision, 2.0, 2.0, 2.0, 2.0, grad, reduce_bytes, 2.0)
    if precision in ("fp8", "fp4"):
        return Numerics(
            precision, "bf16", 1.0 if precision == "fp8" else 0.5625, 2.0, 2.0, 1.0, grad, reduce_bytes, 1.0
        )
    if precision == "int8":  # AQT: products in int8, the state as in bf16 training
        return Numerics(precision, "bf16", 1.0, 2.0, 2.0, 1.0, grad, reduce_bytes, 2.0)
    raise InputError("precision", precision, "one of fp32, tf32, bf16, fp16, fp8, int8, fp4")


def peaks(chip: Chip, num: Numerics) -> tuple[float, float]:
    """Dense peaks (quantized products, the rest), or a refusal naming what the chip has."""
    low, high = peak_of(chip, num.compute), peak_of(chip, num.base)
    if low is None or high is None:
        missing = num.compute if low is None else num.base
        has = ", ".join(d for d in chip.peak if d != "fp64")
        raise PrecisionMissing(f"{chip.id} has no {missing} matrix rate", f"it has {has}")
    return low, high


def peak_of(chip: Chip, dtype: str) -> float | None:
    """Dense FLOP/s of products in a dtype; None where the chip has none. On TPUs fp32 is six passes in bf16.

    >>> from chipwise.catalog import load
    >>> v5e = load().chips["v5e"]
    >>> peak_of(v5e, "fp32") == v5e.peak["bf16"] / 6, peak_of(v5e, "fp4")
    (True, None)
    """
    if dtype in chip.peak:
        return chip.peak[dtype]
    if dtype == "fp32" and chip.family == "tpu":
        return chip.peak["bf16"] / FP32_PASSES
    return None
