"""Seconds of one kernel on its own, as benchmarks publish it: a product, attention, a copy, a collective.

The formulas of `kernels` and `fabric` with the chip's calibrated coefficients, times what calibration found
about shapes (`residuals`) and about how a benchmark measures (a `Bench`: eager launches, best-of searches).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from chipwise.catalog import Accelerators, Chip, load, wraps
from chipwise.catalog.calibration import Calibration
from chipwise.errors import PrecisionMissing, Refusal
from chipwise.predict.learn.kernel_residuals import kernel_factor
from chipwise.predict.model.fabric import (
    Wires,
    distinct,
    exchange_seconds,
    gather_seconds,
    reduce_seconds,
)
from chipwise.predict.model.kernels import (
    Array,
    ComputeSpec,
    KernelCoefficients,
    attention_seconds,
    matmul_seconds,
    stream_seconds,
)
from chipwise.predict.model.precision import peak_of
from chipwise.predict.model.shapes import Attention, Products
from chipwise.predict.model.systolic import CycleTable
from chipwise.predict.site import architecture, kernel_coefficients, slice_for, table_of, wires

BYTES = {"fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5625, "": 2.0}
POOL = {
    "bf16": "half",
    "fp16": "half",
    "fp8": "byte",
    "int8": "byte",
    "fp4": "fp4",
    "fp32": "fp32",
    "tf32": "fp32",
}
NARROWEST = 32.0  # rows of the narrowest vector-unit tile: 16 rows of fp32 take as long as 32 (P100, DeepBench)
CACHED = 0.6  # of a product's traffic stays on chip when its operands fit there and the benchmark repeats it

# DeepEP's low-latency kernels: fixed cost and full wires explain all six published dispatch times
# (deepseek-ai/DeepEP README, 2025-02: 77 us on 8 chips ... 194 us on 256)
LOW_LATENCY_BASE_S = 44e-6

# DeepEP's normal kernels: shares of both kinds of wires, fitted on its four published rows (README, 2025-02)
NORMAL_UP, NORMAL_OUT, NORMAL_BASE_S = 0.68, 0.90, 20e-6

STANDARD_PASSES = 5.0  # times unfused attention moves its score matrix: two products, scaling and softmax

# Boxes whose cards are linked in pairs by NVLink bridges: 600 GB/s both ways (NVIDIA A100 and H100 PCIe
# datasheets, 2021 and 2022); shares of it and of PCIe fitted on microsoft/vidur's four-card boxes, 2026-11
NODE_OF_PAIRS, BRIDGE, BRIDGE_SHARE, PCIE_SHARE = 4, 300e9, 0.72, 0.78

# How a source measures; "" where it times the kernel alone, without what a framework adds
BenchName = Literal["", "best", "deepbench", "vidur", "synchronous", "deepgemm", "torch-nccl", "torch", "graph"]
Implementation = Literal["", "fa2", "fa3", "cudnn", "standard"]  # published attention kernels; "": none is named


@dataclass(frozen=True, slots=True)
class Bench:
    """What a way of measuring does to a time: a factor, and seconds of host work per call."""

    factor: float = 1.0
    add_s: float = 0.0
    floor_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel as a benchmark ran it."""

    op: str  # gemm, attention, copy, reduce, gather or exchange
    dtype: str = "bf16"
    m: float = 1.0  # rows of a product (of each group); the sequence of attention
    n: float = 1.0
    k: float = 1.0
    batch: float = 1.0  # groups of a grouped product, sequences of attention
    heads: float = 1.0
    kv_heads: float = 0.0  # 0: as many as heads
    head_dim: float = 128.0
    causal: bool = False
    backward: bool = False
    data: float = 0.0  # bytes: of the buffer reduced, received by a chip, copied, sent to experts
    copies: float = 1.0  # experts a token goes to
    groups: float = 0.0  # most nodes a token may go to; 0: no limit
    chips: int = 1
    devices: int = 1  # of a chip, that the work ran on
    pairs: bool = False  # only pairs of chips are linked, the rest goes over PCIe
    in_dtype: str = ""  # of the inputs, where it isn't that of the arithmetic
    bench: BenchName = ""
    implementation: Implementation = ""  # of attention
    topology: tuple[int, ...] = ()  # of the TPU slice a collective ran on; (): its most cubic one
    group: float = 0.0  # chips that gather together; 0: all
    over_slices: bool = False  # a collective joins TPU slices over the data-center network
    in_switch: bool = True  # NVSwitch may add up on the way; else a ring does
    nvls_off: bool = False  # the benchmark switched that off; else its library chose the ring
    low_latency: bool = False  # DeepEP's kernels for decoding

    def sized(self, **changes: Any) -> Kernel:
        """The same kernel with other sizes."""
        return replace(self, **changes)

    def bottleneck_bytes(self, node: int) -> float:
        """Bytes DeepEP counts for its bottleneck bandwidth: once to each chip, or to each node."""
        places = self.chips if self.chips <= node else self.chips / node
        if self.chips > node and self.groups:
            hit = min(self.groups, float(places))
        else:
            hit = float(distinct(_array(places), self.copies))
        return self.data / self.copies * hit


def _array(value: float) -> Array:
    return np.asarray(value, dtype=np.float64)


def attention_flops(kernel: Kernel) -> float:
    """Arithmetic of attention as FlashAttention counts it: half under a causal mask, x3.5 with backward."""
    full = 4 * kernel.batch * kernel.heads * kernel.m**2 * kernel.head_dim
    return full * (0.5 if kernel.causal else 1.0) * (3.5 if kernel.backward else 1.0)


def predict_kernel(kernel: Kernel, chip: Chip, calibration: Calibration) -> float:
    """Seconds of `kernel` on `chip` (on `kernel.chips` of them)."""
    residuals = calibration.training.kernel_residuals
    seconds = _FORMULAS[kernel.op](kernel, chip, calibration) if kernel.op in _FORMULAS else None
    if seconds is None:
        raise Refusal(f"no model of {kernel.op!r}", f"modelled are {', '.join(_FORMULAS)}")
    bench = Bench(**residuals.get("benches", {}).get(f"{kernel.op}/{kernel.bench}", {}))
    table = residuals.get("shapes", {}).get(pool_of(kernel), {})
    factor = kernel_factor(table, chip.id, architecture(chip), shape_of(kernel)) if table else 1.0
    return max(seconds * factor * bench.factor + bench.add_s, bench.floor_s)


def shape_of(kernel: Kernel) -> tuple[float, ...]:
    """The sizes that residuals are fitted over."""
    if kernel.op == "gemm":
        return (*sorted((kernel.m, kernel.n)), kernel.k)
    if kernel.op == "attention":
        return (kernel.batch * kernel.heads, kernel.m, kernel.head_dim)
    return (max(kernel.data, 1.0), float(kernel.chips))


def pool_of(kernel: Kernel) -> str:
    """The name of the residuals that apply to a kernel."""
    if kernel.op == "attention" and (kernel.backward or kernel.implementation):
        return "none"  # measured variants have coefficients of their own
    return f"{kernel.op}/{POOL.get(kernel.dtype, 'half')}" if kernel.op in ("gemm", "attention") else kernel.op


def device_compute_spec(
    chip: Chip, dtype: str, devices: int, coefficients: KernelCoefficients, table: CycleTable | None = None
) -> ComputeSpec:
    """The part of a chip that `devices` of its devices are."""
    peak = peak_of(chip, dtype)
    if peak is None:
        has = ", ".join(d for d in chip.peak if d != "fp64")
        raise PrecisionMissing(f"{chip.id} has no {dtype} rate", f"it has {has}")
    share = min(devices / chip.devices, 1.0)
    used = max(share * chip.devices, 1.0)
    return ComputeSpec(peak * share, chip.bandwidth * share, chip.cores * share, chip.mxu, coefficients, used, table)


def cached_share(traffic: Any, onchip_bytes: float) -> Any:
    """Share of the traffic that a repeated product finds in the cache."""
    return CACHED * np.clip(1.5 - 2 * traffic / onchip_bytes, 0.0, 1.0)


def _gemm(kernel: Kernel, chip: Chip, calibration: Calibration) -> float:
    spec = device_compute_spec(
        chip,
        kernel.dtype,
        kernel.devices,
        kernel_coefficients(chip, kernel.dtype, calibration),
        table_of(chip, kernel.dtype, calibration),
    )
    each = BYTES[kernel.in_dtype or kernel.dtype]
    out = 4.0 if kernel.dtype == "fp32" and not kernel.in_dtype else 2.0
    rows, cols = sorted((kernel.m, kernel.n))  # tiles are listed with the narrow side as rows
    if kernel.batch > 1:
        rows, cols = kernel.m, kernel.n
    traffic = each * (rows + cols) * kernel.k + out * rows * cols
    cached = 0.0 if spec.mxu else float(cached_share(kernel.batch * traffic, chip.onchip_bytes))
    if kernel.dtype == "fp32" and not spec.mxu:
        rows = max(rows, NARROWEST)
    products = Products(_array(rows), _array(cols), _array(kernel.k), kernel.batch, each, each)
    return float(matmul_seconds(spec, products, out, cached))


def attention_coefficients(kernel: Kernel, chip: Chip, calibration: Calibration) -> KernelCoefficients:
    """The chip's coefficients, with what is known of the variant that ran."""
    base = kernel_coefficients(chip, kernel.dtype, calibration)
    name, arch = kernel.implementation, architecture(chip)
    found = calibration.training.kernel_residuals.get("attention", {}).get(f"{name}/{arch}")
    if found:
        return replace(base, **found)
    design = load().designs.get(arch)
    share = design.attention.values.get(name) if design else None
    return base if share is None else replace(base, attention=share)


def _attention(kernel: Kernel, chip: Chip, calibration: Calibration) -> float:
    coefficients = attention_coefficients(kernel, chip, calibration)
    spec = device_compute_spec(chip, kernel.dtype, kernel.devices, coefficients)
    if kernel.implementation == "standard":
        return _standard(kernel, spec)
    batch, heads, seq = (_array(x) for x in (kernel.batch, kernel.heads, kernel.m))
    visible = _array(kernel.m / 2 if kernel.causal else kernel.m)
    kv = _array(kernel.kv_heads or kernel.heads)
    shape = Attention(batch, heads, kv, kernel.head_dim, kernel.head_dim, seq, visible)
    seconds = float(attention_seconds(spec, shape))
    return seconds + float(attention_seconds(spec, shape, backward=True)) if kernel.backward else seconds


def _standard(kernel: Kernel, spec: ComputeSpec) -> float:
    """Unfused attention: the score matrix goes through memory many times, masked halves included."""
    scores = kernel.batch * kernel.heads * kernel.m**2
    passes = STANDARD_PASSES * (3.0 if kernel.backward else 1.0) + (2.0 if kernel.causal else 0.0)
    products = 4 * scores * kernel.head_dim * (3.5 if kernel.backward else 1.0)
    moved = float(stream_seconds(spec, _array(passes * scores * BYTES[kernel.dtype])))
    return products / (spec.peak * spec.coefficients.matmul) + moved


def _copy(kernel: Kernel, chip: Chip, calibration: Calibration) -> float:
    coefficients = kernel_coefficients(chip, "bf16", calibration)
    traffic = 2 * kernel.data * chip.devices  # published sizes are those of one device
    return traffic / (chip.bandwidth * coefficients.memory) + coefficients.launch_s


def _paired(links: Wires) -> Wires:
    """The wires of a box whose chips are NVLinked in pairs and otherwise joined by PCIe."""
    return replace(
        links,
        fabric=replace(
            links.fabric,
            kind="pcie",
            domain=NODE_OF_PAIRS,
            scale_up=links.fabric.host_link,
            link=links.fabric.host_link,
        ),
    )


def _wires(kernel: Kernel, chip: Chip, calibration: Calibration) -> Wires:
    links = wires(slice_for(chip, kernel.chips), calibration)
    if kernel.topology and chip.family == "tpu":
        return replace(links, shape=kernel.topology, wraps=wraps(chip, kernel.topology))
    return links


def _reduce(kernel: Kernel, chip: Chip, calibration: Calibration) -> float:
    links, size, one = _wires(kernel, chip, calibration), _array(kernel.chips), _array(1.0)
    if kernel.over_slices:  # every chip of one slice with its twin in the other, half of the matrix each
        return float(reduce_seconds(links, _array(2.0), _array(links.domain), _array(kernel.data / 2)))
    coefficients = links.coefficients
    if kernel.pairs and kernel.chips > 2:
        links = replace(_paired(links), coefficients=replace(coefficients, up=PCIE_SHARE, spread=0.0, in_switch=0.0))
    elif kernel.pairs:
        bridge = min(links.fabric.scale_up, BRIDGE)
        links = replace(
            links,
            fabric=replace(links.fabric, domain=2, scale_up=bridge, link=bridge),
            coefficients=replace(coefficients, up=BRIDGE_SHARE, in_switch=0.0),
        )
    elif not kernel.in_switch:
        links = replace(links, coefficients=replace(coefficients, in_switch=0.0))
    return float(reduce_seconds(links, size, one, _array(kernel.data)))


def _gather(kernel: Kernel, chip: Chip, calibration: Calibration) -> float:
    """An all-gather; `data` is what each chip receives."""
    size = min(kernel.group or float(kernel.chips), float(kernel.chips))
    if size < 2:
        raise Refusal("an all-gather over one chip", "state two or more")
    links = _wires(kernel, chip, calibration)
    whole = kernel.data * size / (size - 1)
    return float(gather_seconds(links, _array(size), _array(1.0), _array(whole)))


def _exchange(kernel: Kernel, chip: Chip, calibration: Calibration) -> float:
    links, size, one = wires(Accelerators(chip, kernel.chips), calibration), _array(kernel.chips), _array(1.0)
    coefficients = links.coefficients
    data = _array(kernel.data)
    if kernel.low_latency:
        plain = replace(
            coefficients,
            up=1.0,
            out=1.0,
            base_s=LOW_LATENCY_BASE_S,
            hop_s=0.0,
            out_base_s=0.0,
            ramp_s=0.0,
            spread=0.0,
        )
        return float(exchange_seconds(replace(links, coefficients=plain), size, one, data))
    bulk = replace(coefficients, up=NORMAL_UP, out=NORMAL_OUT, base_s=NORMAL_BASE_S, ramp_s=0.0, spread=0.0)
    return float(
        exchange_seconds(replace(links, coefficients=bulk), size, one, data, kernel.copies, kernel.groups or np.inf)
    )


_FORMULAS = {
    "gemm": _gemm,
    "attention": _attention,
    "copy": _copy,
    "reduce": _reduce,
    "gather": _gather,
    "exchange": _exchange,
}
