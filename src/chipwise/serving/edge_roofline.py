"""Roofline time of one edge inference: what runs where, the bound no schedule beats, and a plain estimate above it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.catalog.edge import EdgeDevice
from chipwise.catalog.edge_models import EdgeModel
from chipwise.errors import PrecisionMissing

SCENARIOS = ("single", "multi", "offline")
SAMPLES = {"single": 1, "multi": 8, "offline": 32}  # at once; 8 a query by MLPerf's rules from round v2.0, 2022
BYTES = {"fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5, "int4": 0.5}
EDGE_PRECISIONS = ("int8", "fp16", "bf16", "fp32", "fp8", "fp4")
DATAFLOW = "hailo"  # a design whose chips hold the whole model, or load it in parts
VENDOR = "vendor"  # the vendor's own runtime: TensorRT, HailoRT, Edge TPU, Cloud AI SDK
# The plain estimate, fitted once to all published rows of cards and modules (least squares of logarithms, 2026-11):
# 1 / share of the peak that kernels reach; shares of weights and activations that caches don't hold; seconds a kernel
COMPUTE, CACHED, ACTIVATIONS = 2.2, 0.35, 0.2
STREAMED = 1.3  # bandwidth of the data sheet over that of reading large weights again and again, measured in general
KERNEL_SECONDS: Mapping[str, float] = {"gpu": 7e-6, "soc": 18e-6, "asic": 14e-6}
OFFLINE = 256  # samples at once that kernels and weights are shared by, where a submission doesn't say its batch


@dataclass(frozen=True, slots=True)
class EdgePoint:
    """One inference set-up: what runs where and how. `round`, `submitter` are of published rows, "" for others."""

    device: EdgeDevice
    model: EdgeModel
    precision: str
    scenario: str = "single"
    batch: int = 0  # samples at once; 0: as the scenario has it
    chips: int = 1
    mode: str = ""  # a published power setting such as MaxQ; "" for the full clock
    runtime: str = VENDOR
    round: str = ""
    submitter: str = ""
    fits: bool = True  # all weights stay on chip, where there is no other memory
    clock: float = 1.0  # share of the full clock

    @property
    def at_once(self) -> int:
        """Samples at once on a chip; a stick runs programs compiled for one."""
        if self.device.link and self.device.design != DATAFLOW:
            return 1
        return self.batch or SAMPLES[self.scenario]

    @property
    def key(self) -> str:
        """The scenario as labels have it; tables of dataflow chips give throughput at a batch."""
        return f"batch{self.at_once}" if self.device.design == DATAFLOW else self.scenario


def peak_of(device: EdgeDevice, precision: str) -> float:
    """Dense FLOP/s in a precision; fp32 runs as tf32 on matrix units that have it, fp8 as int8 where that is meant."""
    names = {"fp32": ("tf32", "fp32"), "bf16": ("bf16", "fp16")}.get(precision, (precision,))
    rates = [device.peak[name] for name in names if name in device.peak]
    if not rates:
        have = ", ".join(device.peak) or "no peak that a source gives"
        raise PrecisionMissing(f"{device.name} has no published {precision} rate", f"it has {have}")
    return max(rates)


def weight_bytes(point: EdgePoint) -> float:
    """Bytes of all weights."""
    return point.model.params * BYTES[point.precision]


def stays(point: EdgePoint) -> bool:
    """Whether all weights stay on chip: by its size where that is published, else as the point says."""
    return weight_bytes(point) <= point.device.onchip_bytes if point.device.onchip_bytes else point.fits


def reload_seconds(point: EdgePoint) -> float:
    """Loading weights that don't stay on chip, once a batch; 0 for devices with memory of their own."""
    device = point.device
    if not device.link:
        return 0.0
    if device.onchip_bytes:
        return max(0.0, weight_bytes(point) - device.onchip_bytes) / device.link
    return 0.0 if point.fits else weight_bytes(point) / device.link


def lower_bound(point: EdgePoint) -> float:
    """Seconds a sample on one chip that no schedule beats: operations at the peak, weights read once a batch."""
    device, model = point.device, point.model
    dla = device.dla_int8 if point.precision == "int8" else 0.0
    compute = model.ops / ((peak_of(device, point.precision) + dla) * point.clock)
    resident = device.onchip_bytes if device.onchip_bytes > weight_bytes(point) / 2 else 0.0
    read = max(0.0, weight_bytes(point) - resident) * model.passes / point.at_once
    return max(compute, read / device.bandwidth if device.bandwidth else 0.0)


def roofline(point: EdgePoint) -> float:
    """Seconds a sample on one chip before any effect: operations and bytes at usual rates, and a time a kernel."""
    device, model = point.device, point.model
    compute = COMPUTE * model.ops / (peak_of(device, point.precision) * point.clock)
    if device.design == DATAFLOW:  # layers run side by side: neither kernels nor activations wait for memory
        return compute + reload_seconds(point) / point.at_once
    shared = point.scenario == "offline" and not point.batch and not device.link
    batch = OFFLINE if shared else point.at_once
    passes = model.passes / point.at_once * STREAMED if model.passes > 1 else 0.0
    reads = max(passes, model.reads / batch * CACHED) * weight_bytes(point)
    traffic = reads + 2 * ACTIVATIONS * BYTES[point.precision] * model.activations
    waits = traffic / device.bandwidth if device.bandwidth else 0.0
    kernels = model.steps * KERNEL_SECONDS[device.kind] / (batch * point.clock)
    tail = model.tail if point.scenario == "single" else 1.0
    return tail * (compute + waits + kernels) + reload_seconds(point) / point.at_once
