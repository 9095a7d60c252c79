"""Where work runs: a chip with its calibrated kernels and wires, in one precision, under one stack."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log, prod

from chipwise.catalog import Accelerators, Chip, Stack, adapter_stack, default_stack, load, plain_stack, wraps
from chipwise.catalog.calibration import Calibration
from chipwise.predict.model.components import ExecutionTarget, Traits
from chipwise.predict.model.convolution import Fusion
from chipwise.predict.model.fabric import LinkCoefficients, Wires
from chipwise.predict.model.kernels import ComputeSpec, KernelCoefficients
from chipwise.predict.model.precision import numerics, peaks
from chipwise.predict.model.schedule import StepCoefficients
from chipwise.predict.model.systolic import CycleTable, table_from

RELEASE = 2024.0  # software releases are counted from here, in years

FLASH2 = 2023.54  # FlashAttention-2 (arXiv 2307.08691, July 2023); fused attention was slower before

OVERLAPS = tuple(name for name in StepCoefficients.__slots__ if name.startswith("overlap"))


def architecture(chip: Chip) -> str:
    """The label calibration shares between chips of one design: ``hopper``, ``blackwell``, ``v5e``..."""
    return chip.design


def kernel_coefficients(chip: Chip, dtype: str, calibration: Calibration) -> KernelCoefficients:
    """Coefficients of the chip and precision; of its nearest relative where it was never measured."""
    table = calibration.training.kernels
    for name in (chip.id, "arch:" + architecture(chip), "family:" + chip.family, "any"):
        entry = table.get(name, {})
        found = entry.get(dtype) or (entry.get("any") if name in ("any", "family:" + chip.family) else None)
        if found:
            return KernelCoefficients(**found)
    return KernelCoefficients()


def compute_spec(chip: Chip, dtype: str, peak: float, calibration: Calibration) -> ComputeSpec:
    """The chip's figures and coefficients for one precision."""
    return ComputeSpec(
        peak,
        chip.bandwidth,
        float(chip.cores),
        chip.mxu,
        kernel_coefficients(chip, dtype, calibration),
        float(chip.devices),
        table_of(chip, dtype, calibration),
    )


def table_of(chip: Chip, dtype: str, calibration: Calibration) -> CycleTable | None:
    """What the chip's compiler says of products, where it was swept."""
    entry = calibration.training.compiled.get("tables", {}).get("chips", {}).get(chip.id)
    return table_from(entry, dtype, chip.clock_hz) if entry else None


def wires(acc: Accelerators, calibration: Calibration) -> Wires:
    """The links between these chips."""
    table = calibration.training.links
    chip = acc.chip
    found = table.get(chip.id) or table.get("arch:" + architecture(chip)) or table.get("family:" + chip.family)
    coefficients = LinkCoefficients(**found) if found else LinkCoefficients()
    shape = acc.shape
    return Wires(chip.fabric, acc.count, shape, wraps(chip, shape) if shape else (), coefficients)


def traits(stack: Stack, chip: Chip, precision: str, release: float) -> Traits:
    """What a release of the stack does on a chip that changes the arithmetic of a step."""
    fused = release >= stack.flash_since and precision not in ("fp32", "tf32")  # fused attention takes 16 bits
    return Traits(
        flash=fused,
        sequence_parallel=stack.sequence_parallel,
        compiled=stack.compiled,
        xla=stack.frameworks[:1] == ("jax",),
        fused_softmax=stack.fused_softmax,
        score_bytes=stack.score_bytes,
        fusion=fusion(stack, chip),
    )


def fusion(stack: Stack, chip: Chip) -> Fusion:
    """What becomes of the norms around convolutions: XLA for TPUs computes them in the convolutions."""
    if chip.family == "tpu":
        return Fusion.PRODUCTS
    return Fusion.TOGETHER if stack.compiled else Fusion.SEPARATE


def execution_target(
    acc: Accelerators,
    precision: str,
    calibration: Calibration,
    stack: Stack | None = None,
    state: str = "fp32",
    release: float | None = None,
) -> ExecutionTarget:
    """Everything about the place that a step's time depends on; the stack's own release unless given."""
    stack = stack or stack_for(acc.chip)
    num = numerics(precision, state, stack.reduce_bytes)
    low, high = peaks(acc.chip, num)
    return ExecutionTarget(
        compute_spec(acc.chip, num.compute, low, calibration),
        compute_spec(acc.chip, num.base, high, calibration),
        wires(acc, calibration),
        num,
        traits(stack, acc.chip, precision, stack.release if release is None else release),
        acc.chip.fabric.host_link,
        acc.chip.devices if acc.chip.family == "tpu" else 1,
    )


def stack_for(chip: Chip, family: str = "decoder", adapters: bool = False, base: str = "") -> Stack:
    """The stack assumed when none is named: one made for language models or for adapters, or a plain one for others.

    `base` is the format of 4 bits in which the frozen weights beside adapters are held.
    """
    if family == "decoder":
        return adapter_stack(chip, base) if adapters else default_stack(chip, "train")
    return plain_stack(chip, "train")


def labels(chip: Chip, stack: Stack | None, precision: str, release: float | None = None) -> dict[str, float]:
    """The labels, with weights, whose effects add up to this chip's, stack's and precision's coefficients."""
    arch, name = architecture(chip), stack.id if stack else "unknown"
    design = load().designs.get(arch)
    when = release if release is not None else stack.release if stack else RELEASE
    return {
        "base": 1.0,
        f"family:{chip.family}": 1.0,
        f"arch:{arch}": 1.0,
        f"dtype:{precision}": 1.0,
        f"stack:{name}": 1.0,
        f"arch:{arch}/dtype:{precision}": 1.0,
        "eager": float(stack is None or not stack.compiled),
        "flash1": float(stack is not None and chip.family == "gpu" and stack.flash_since <= when < FLASH2),
        "flash2": float(stack is not None and stack.flash2 and design is not None and design.asynchronous),
        "untuned": float(chip.family == "tpu" and (stack is None or "tpu" not in stack.tuned)),
        "power": power_pressure(chip),
        "release": when - RELEASE,
    }


def power_pressure(chip: Chip) -> float:
    """How much more arithmetic a watt must carry than on the reference chip of the design (log)."""
    design = load().designs.get(architecture(chip))
    reference = flops_per_watt(load().chips[design.power_reference]) if design and design.power_reference else 0.0
    own = flops_per_watt(chip)
    return log(own / reference) if own and reference else 0.0


def flops_per_watt(chip: Chip) -> float:
    """16-bit peak over TDP; 0 where the chip has no such rate."""
    return (chip.peak.get("bf16") or chip.peak.get("fp16") or 0.0) / chip.tdp_w


def step_coefficients(effects: Mapping[str, Mapping[str, float]], names: Mapping[str, float]) -> StepCoefficients:
    """Coefficients from the effects of their labels: log-additive, overlaps on the logit scale."""
    if not effects:
        return StepCoefficients()
    out: dict[str, float] = {}
    for key in StepCoefficients.__slots__:
        total = sum(weight * effects[key].get(label, 0.0) for label, weight in names.items())
        out[key] = 1 / (1 + exp(-total)) if key in OVERLAPS else exp(total)
    return StepCoefficients(**out)


def slice_for(chip: Chip, chips: int, slices: int = 1) -> Accelerators:
    """These chips in their most cubic slice; a count without a legal slice takes the largest that divides it."""
    if chip.family != "tpu":
        return Accelerators(chip, chips)
    legal = load().slices[chip.id]
    per = max(chips // slices, 1)
    shape = legal.shape_for(per)
    if shape is None:
        per = max(n for n in legal.chip_counts() if n <= per)
        shape = legal.shape_for(per) or (1,) * chip.fabric.dims
    return Accelerators(chip, chips, shape, max(chips // prod(shape), 1))
