"""What a serving precision means: bytes of weights and activations, and in which arithmetic products run."""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose

from chipwise.catalog import Chip
from chipwise.errors import PrecisionMissing
from chipwise.predict.model.precision import peak_of
from chipwise.workload.model import Model

# stored bytes of a weight with its scales: 4-bit formats keep a scale for 16 (NVFP4) or 32 to 128 weights
WEIGHT_BYTES = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int8w": 1.0,
    "int4": 0.53,
    "fp4": 0.5625,
}
KV_BYTES = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0}
ARITHMETIC = {"fp8": "fp8", "int8": "int8", "fp4": "fp4", "fp32": "fp32"}  # the others: 16 bits


@dataclass(frozen=True, slots=True)
class Format:
    """Bytes and arithmetic of one kind of products."""

    arithmetic: str  # dtype of the matrix units
    weight_bytes: float
    in_bytes: float
    stored: str  # the name of the precision


@dataclass(frozen=True, slots=True)
class Formats:
    """What a precision means for a model on a chip."""

    base: Format  # attention, output layer and router where they aren't quantized
    dense: Format  # quantized products outside experts
    experts: Format
    kv_bytes: float
    act_bytes: float
    fallback: bool  # the chip lacks the arithmetic, so weights alone are stored in the precision


def only_experts(model: Model, precision: str) -> bool:
    """Whether the precision is that of the experts alone.

    Mixture-of-experts models in 4 bits keep everything else in 16 (gpt-oss, Kimi-K2, DeepSeek-R1-NVFP4: their
    published quantization configs, 2025-2026).
    """
    return model.experts is not None and precision in ("fp4", "int4")


def timed_as(chip: Chip, model: Model, precision: str) -> str:
    """The precision whose published rows a precision is timed by: fp8's for int8 on chips that have both at one rate.

    Their bytes are the same, too. No published row of a language model on such a chip is in int8
    (validation/rows, 2026-11): without this, int8 would be spared what serving in fp8 was found to cost. It is not
    faster: on an H200, PyTorch 2.11's int8 products reach 0.52 to 0.66 of its fp8 ones (512 to 8,192 rows, 2026-11-19).
    """
    alike = precision == "int8" and isclose(chip.peak.get("int8", 0.0), chip.peak.get("fp8", 1.0), rel_tol=0.01)
    return "fp8" if alike and model.writes else precision


def half(chip: Chip) -> str:
    """The 16-bit arithmetic of a chip; its widest float where it has none."""
    return next((d for d in ("bf16", "fp16", "tf32", "fp32") if d in chip.peak), "fp32")


def formats(chip: Chip, model: Model, precision: str, kv_precision: str) -> Formats:
    """The formats of a model's products on a chip."""
    wide = "fp32" if precision == "fp32" else half(chip)
    if peak_of(chip, wide) is None:
        raise PrecisionMissing(f"{chip.id} has no {wide} matrix rate", f"it has {', '.join(chip.peak)}")
    act = 4.0 if wide == "fp32" else 2.0
    base = Format(wide, act, act, wide)
    wanted = ARITHMETIC.get(precision, wide)
    fallback = wanted not in chip.peak and wanted != wide
    low = Format(
        wide if fallback else wanted,
        WEIGHT_BYTES[precision],
        act if fallback or wanted == wide else WEIGHT_BYTES[precision],
        precision,
    )
    return Formats(base, base if only_experts(model, precision) else low, low, KV_BYTES[kv_precision], act, fallback)


def in_short(chip: Chip, model: Model, precision: str) -> str:
    """A precision as a chip really serves it: its name where the chip has it, else what stands in for it.

    >>> from chipwise.catalog import load
    >>> from chipwise.workload import preset
    >>> llama = preset("llama-3.1-8b")
    >>> in_short(load().chips["t4"], llama, "bf16"), in_short(load().chips["a100-80gb"], llama, "fp8")
    ('fp16', 'fp8 weights, bf16 products')
    """
    fmt = formats(chip, model, precision, "bf16")
    if fmt.fallback:
        return f"{precision} weights, {fmt.experts.arithmetic} products"
    return fmt.base.stored if _stands_in(chip, precision, fmt) else precision


def _stands_in(chip: Chip, precision: str, fmt: Formats) -> bool:
    """Whether other 16 bits stand in for those asked for; matrix units of GPUs that have bf16 have fp16 at its rate."""
    if precision == "fp16" and chip.family == "gpu":
        return fmt.base.stored not in ("bf16", "fp16")
    return precision in ("bf16", "fp16") and fmt.base.stored != precision


def in_words(chip: Chip, model: Model, precision: str) -> str:
    """What a precision means where that isn't what its name says; "" where it is."""
    fmt = formats(chip, model, precision, "bf16")
    if fmt.fallback:
        return (
            f"{chip.id} has no {precision} arithmetic: weights are stored in {precision}, products run in "
            f"{fmt.experts.arithmetic}"
        )
    if _stands_in(chip, precision, fmt):
        return f"{chip.id} has no {precision} arithmetic: {fmt.base.stored} stands in for it"
    if (other := timed_as(chip, model, precision)) != precision:
        return (
            f"{precision} on {chip.id} is timed as {other}, of the same rate: nothing published is in {precision} there"
        )
    if only_experts(model, precision):
        return f"{precision} is that of the experts; everything else stays in {fmt.base.stored}"
    return ""
