"""Bench files made by hand, for tests of what reads them."""

from bench_numpy import copy, gemm

from chipwise.bench.file import BenchFile, Telemetry
from chipwise.bench.frameworks.interface import Device
from chipwise.bench.measurement import Measurement, Watched
from chipwise.bench.method import summarize
from chipwise.ops.point import Point


def timed(point, *seconds, framework="torch", status="ok", **more):
    return Measurement(point, framework, status, summarize(seconds, 4), **more)


def spread(middle, count=11):
    """Samples around a middle, 2 % wide."""
    return [middle * (0.99 + 0.02 * i / (count - 1)) for i in range(count)]


def bench_file(*points, **more):
    fields = {
        "created": "2026-11-15T08:00:00Z",
        "chipwise": "0.1.0",
        "command": ("chipwise", "bench", "kernels"),
        "device": Device("cuda", "NVIDIA H200", 1.5e11, 1, cache_bytes=5e7),
        "chip": "h200",
        "environment": {"os": "Linux", "cores": 8},
        "frameworks": {"torch": {"torch": "2.13.0"}},
        "telemetry": Telemetry("nvml", "", 10.0, {"power_limit_w": 700.0}),
        "complete": True,
    }
    return BenchFile(**{**fields, **more, "points": points})


EVERYTHING = bench_file(
    timed(
        gemm(4096, 4096, 4096, "bf16"),
        *spread(2e-4),
        flops=1.4e11,
        moved_bytes=1e8,
        error=3e-3,
        peak_bytes=2.0**30,
        watched=Watched(600.0, 0.12, 0.99, 1e10, 61.0, 1.9e9, ("power cap",), 5),
    ),
    timed(copy(2**28), *spread(1.3e-4), moved_bytes=2.0**29),
    timed(gemm(64, 64, 64, "bf16"), *spread(1e-5), status="unstable", reason="the samples scatter"),
    Measurement(gemm(8, 8, 8, "fp8"), "torch", "unsupported", reason="no fp8 here"),
    timed(
        Point(
            "train",
            "train",
            "bf16",
            {"b": 1, "s": 2, "layers": 3, "d": 4, "h": 5, "hk": 5, "f": 6, "vocab": 7},
            compile=True,
            remat=True,
            model="gpt2",
        ),
        *spread(0.1),
        flops=1e13,
        items=2.0,
        params=100,
    ),
    timed(
        Point("kernels", "sdpa_fwd", "bf16", {"b": 1, "h": 2, "hk": 2, "s": 64, "d": 8}, causal=False),
        *spread(1e-4),
        flops=1e9,
        moved_bytes=1e6,
    ),
    timed(Point("kernels", "adamw", "fp32", {"count": 1000}), *spread(1e-4), moved_bytes=2.8e4),
    timed(Point("collectives", "all_reduce", "bf16", {"bytes": 1024, "devices": 8}), *spread(1e-4), moved_bytes=1024.0),
    notes=("a note",),
)
