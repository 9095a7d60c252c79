"""How long a point takes on a chip that was measured, and what it holds: kernels by tables, steps by their terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog import Chip
from chipwise.errors import Refusal
from chipwise.ops.point import Point
from chipwise.predict.estimate import Estimate
from chipwise.predict.learn.bench_calibration import BenchCalibration, PointTable, Step
from chipwise.predict.learn.point_terms import (
    Seconds,
    base_seconds,
    decode_terms,
    decoder_terms,
    features,
    image_terms,
)
from chipwise.predict.model.schedule import SHARP

Array = NDArray[np.float64]
KERNELS = ("gemm", "copy", "add", "rmsnorm", "softmax", "sdpa_fwd", "sdpa_fwdbwd", "gather", "adamw")
LEVEL_SPREADS = 1.645  # spreads of a normal distribution that hold 90 %
ALIKE = {"fp16": "bf16", "bf16": "fp16"}  # precisions that run at the same rates
# Precisions whose tables and coefficients stand in where there are none: said so, with an interval this much wider
NEAR = {"tf32": ("fp32", "bf16"), "fp32": ("tf32", "bf16"), "fp16": ("bf16",), "bf16": ("fp16",)}
WIDER = 2.0


def step_name(point: Point) -> str:
    """The coefficients that a step's time takes."""
    return f"{point.kind}/{point.dtype}" + ("/compiled" if point.compile else "")


def kernel_seconds(
    bench: BenchCalibration, chip: Chip, kind: str, points: Sequence[Point], floor: bool = True
) -> Array:
    """Seconds of kernels of one kind and precision; without the floor, as they run inside a queue of work."""
    table, _ = _table(bench, kind, points[0].dtype)
    base = base_seconds(chip, kind, points[0].dtype, table.coefficients, points)
    seconds = base * np.exp(table.process.at(features(kind, points, chip)))
    return np.asarray(np.maximum(seconds, table.floor_s)) if floor else seconds


def _table(bench: BenchCalibration, kind: str, dtype: str) -> tuple[PointTable, str]:
    """The table of a kind, and the precision it is of; products of another rate have none to stand in."""
    for near in (dtype, ALIKE.get(dtype, dtype), *(NEAR.get(dtype, ()) if kind != "gemm" else ())):
        if f"{kind}/{near}" in bench.tables:
            return bench.tables[f"{kind}/{near}"], near
    raise Refusal(
        f"{kind} in {dtype} was not measured on {bench.chip} with {bench.framework}",
        "measure it with `chipwise bench kernels` and calibrate again",
    )


def terms(point: Point, chip: Chip, bench: BenchCalibration) -> dict[str, float]:
    """The terms of a step by this chip's tables."""
    if point.kind == "decode":
        return decode_terms(point, chip)
    if point.kind.startswith(("resnet", "vit")):
        return image_terms(point, chip)

    def seconds(kind: str) -> Seconds:
        return lambda points: kernel_seconds(bench, chip, kind, points, floor=False)

    return decoder_terms(point, chip, seconds("gemm"), seconds("sdpa_fwd"), seconds("sdpa_fwdbwd"))


def summed(step: Step, parts: dict[str, float], layers: int) -> float:
    """Seconds of a step from its terms: the device's work, or the host's where that is longer."""
    device = sum(step.coefficients.get(name, 0.0) * value for name, value in parts.items())
    host = step.host_s * layers
    return float((device**SHARP + host**SHARP) ** (1 / SHARP))


def predict_point(point: Point, chip: Chip, bench: BenchCalibration) -> Estimate:
    """Seconds of a point: as measured where the very point was, otherwise by tables and coefficients."""
    found = bench.measured.get(point_id(point))
    if found is not None:
        return Estimate(
            found["seconds"],
            found["low"],
            found["high"],
            "measured",
            f"by {found.get('source', bench.source)} with {bench.framework}",
        )
    if point.kind in KERNELS:
        value = float(kernel_seconds(bench, chip, point.kind, [point])[0])
        table, of = _table(bench, point.kind, point.dtype)
        low, high = -LEVEL_SPREADS * table.process.spread, LEVEL_SPREADS * table.process.spread
        points, error, mode = table.points, f"{table.error:.1%} off when left out", point.compile
    else:
        step, of, mode = _step(bench, point)
        value = summed(step, terms(point, chip, bench), point.sizes.get("layers", 50))
        (low, high), points = step.spread, step.points
        error = "too few to tell the error" if step.error is None else f"{step.error:.1%} off when left out"
    if of not in (point.dtype, ALIKE.get(point.dtype)):
        low, high, error = WIDER * low, WIDER * high, f"{error}; of {of}, since none of {point.dtype} was calibrated"
    if mode != point.compile:
        ways = ("compiled", "eager") if mode else ("eager", "compiled")
        low, high, error = (
            WIDER * low,
            WIDER * high,
            f"{error}; of {ways[0]} steps, since no {ways[1]} one was calibrated",
        )
    return Estimate(
        value,
        value * exp(low),
        value * exp(high),
        "modelled",
        f"{points} measured points of {point.kind} ({bench.framework}, {bench.date}), {error}",
    )


def _step(bench: BenchCalibration, point: Point) -> tuple[Step, str, bool]:
    """The coefficients of a step, the precision they are of, and whether of a compiled one."""
    for mode in (point.compile, not point.compile):
        for dtype in (point.dtype, *NEAR.get(point.dtype, ())):
            name = step_name(replace(point, dtype=dtype, compile=mode))
            if name in bench.steps:
                return bench.steps[name], dtype, mode
    raise Refusal(
        f"{step_name(point)} was not measured on {bench.chip} with {bench.framework}",
        "measure it with `chipwise bench` and calibrate again",
    )


def point_id(point: Point) -> str:
    """A name that is the same for the same point, whatever measured it.

    >>> point_id(Point("kernels", "gemm", "bf16", {"n": 2, "m": 1, "k": 3}))
    'gemm bf16 k=3 m=1 n=2'
    """
    sizes = " ".join(f"{name}={value}" for name, value in sorted(point.sizes.items()))
    flags = (" compile" if point.compile else "") + (" remat" if point.remat else "")
    return f"{point.kind} {point.dtype} {sizes}{flags}" + ("" if point.causal else " full")
