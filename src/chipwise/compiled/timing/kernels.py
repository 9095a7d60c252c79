"""Kernels the compiler has no time for: an honest range from what they read, write and could multiply.

Vendors' library calls (cuBLAS) state their product, so that their range is narrow. Of a kernel of the user's own
(Pallas) only the shapes are known: at least its bytes over the bandwidth, at most the product that its three largest
arrays could form, at half of the peak.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod, sqrt
from typing import Any

from chipwise.compiled.hlo import Computation, Instruction, parse
from chipwise.compiled.timing.schedule import Op, Schedule
from chipwise.compiled.timing.timing import LAUNCH_S, ClockRates, Timing, op_seconds

STREAMS = 5.0  # times its bytes over the bandwidth: what a kernel bound by memory takes at most
HALF = 0.5  # of the peak: what a kernel bound by arithmetic reaches at least
_LIBRARY = (0.55, 0.9)  # of the peak: what a library's large products reach


@dataclass(frozen=True, slots=True)
class Range:
    """Seconds of one run of a kernel."""

    low: float
    high: float
    stated: bool = False  # the call says what it computes

    @property
    def middle(self) -> float:
        """As far from the low end as from the high, by factors."""
        return sqrt(self.low * self.high)


@dataclass(frozen=True, slots=True)
class Kernels:
    """All kernels of a schedule, seconds of one call of the program."""

    low: float = 0.0
    middle: float = 0.0
    high: float = 0.0
    unknown: tuple[str, ...] = ()  # those that don't state what they compute
    seconds: Mapping[str, float] = field(default_factory=dict)  # of one run, as the timing counts it, by name


def timed(schedule: Schedule, timing: Timing, rates: ClockRates, text: str) -> tuple[Timing, Kernels]:
    """The timing with its kernels at the middle of their ranges, and the ranges together."""
    ops = [(op, times) for op, times in schedule.ops() if op.kind == "kernel" and not op.pair]
    if not ops or not text:
        return timing, Kernels(timing.unknown, timing.unknown, STREAMS * timing.unknown, tuple(schedule.unknown))
    ranges = _ranges(text, rates)
    kinds, sources = dict(timing.by_kind), dict(timing.by_source)
    low = middle = high = before = 0.0
    unknown: dict[str, None] = {}
    each: dict[str, float] = {}
    for op, times in ops:
        was = op_seconds(op, rates)
        span = _range(op, ranges, was)
        low, middle, high = low + span.low * times, middle + span.middle * times, high + span.high * times
        before += was * times
        each[op.name] = span.middle
        more = (span.middle - was) * times
        kinds["kernel"] = kinds.get("kernel", 0.0) + more
        if op.source:
            sources[op.source] = sources.get(op.source, 0.0) + more
        if not span.stated:
            unknown[op.name] = None
    order = dict(sorted(sources.items(), key=lambda pair: -pair[1]))
    retimed = replace(timing, seconds=timing.seconds + middle - before, by_kind=kinds, by_source=order, unknown=middle)
    return retimed, Kernels(low, middle, high, tuple(unknown), each)


def _range(op: Op, ranges: Mapping[str, Range], bytes_s: float) -> Range:
    span = ranges.get(op.name) or next(
        (candidate for name, candidate in ranges.items() if name.startswith(op.name)), None
    )
    if span is None:
        return Range(bytes_s, STREAMS * bytes_s)
    return Range(max(span.low, bytes_s), max(span.high, bytes_s), span.stated)


def _ranges(text: str, rates: ClockRates) -> dict[str, Range]:
    """By the instruction's name, and by its target for names that say nothing."""
    out: dict[str, Range] = {}
    for computation in parse(text).computations.values():
        for instruction in computation:
            if instruction.opcode == "custom-call":
                span = _of(instruction, computation, rates)
                out[instruction.name] = span
                target = instruction.custom_call_target
                if target not in out or out[target].high < span.high:
                    out[target] = span
    return out


def _of(instruction: Instruction, computation: Computation, rates: ClockRates) -> Range:
    inputs = [leaf for name in instruction.operands for leaf in computation[name].shape.leaves()]
    outputs = list(instruction.shape.leaves())
    moved = sum(leaf.bytes for leaf in (*inputs, *outputs)) / rates.bandwidth
    cycles = float(instruction.estimated_cycles or 0) * rates.cycles / rates.clock
    if cycles:
        return Range(cycles + LAUNCH_S, cycles + LAUNCH_S, True)
    stated = _library_flops(instruction, computation)
    if stated:
        slow, fast = (stated / (rates.peak * share) for share in _LIBRARY)
        return Range(max(fast, moved) + LAUNCH_S, max(slow, moved) + LAUNCH_S, True)
    largest = [*sorted((leaf.size for leaf in inputs), reverse=True)[:2], max(leaf.size for leaf in outputs)]
    most = 2.0 * sqrt(prod(float(size) for size in largest)) if len(largest) == 3 else 0.0
    return Range(LAUNCH_S, max(STREAMS * moved, most / (HALF * rates.peak)) + LAUNCH_S)


def _library_flops(instruction: Instruction, computation: Computation) -> float:
    """Arithmetic of a cuBLAS call, from the dimensions it states; 0 for anything else."""
    if not instruction.custom_call_target.startswith("__cublas"):
        return 0.0
    config: Any = instruction.backend_config
    numbers = config.get("gemm_backend_config", {}).get("dot_dimension_numbers", {}) if isinstance(config, dict) else {}
    contract = [int(axis) for axis in numbers.get("lhs_contracting_dimensions", ())]
    left = computation[instruction.operands[0]].shape
    k = prod(left.dims[axis] for axis in contract)
    return 2.0 * next(instruction.shape.leaves()).size * k
