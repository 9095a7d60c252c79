"""What a measurement means: its rates, its share of the chip's peak, and its name in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.bench.file import BenchFile
from chipwise.bench.measurement import Measurement
from chipwise.catalog import Chip
from chipwise.ops.point import Point
from chipwise.units import format_bytes, format_count, format_rate

# Kinds of work whose rate people know in items: tokens of models, images of vision.
UNITS = {
    "train": "tokens",
    "prefill": "tokens",
    "decode": "tokens",
    "resnet50_train": "images",
    "resnet50_infer": "images",
    "vit_train": "images",
    "vit_infer": "images",
}


@dataclass(frozen=True, slots=True)
class Figures:
    """What a usable measurement says; None where it says nothing."""

    flops_per_s: float | None
    bytes_per_s: float | None
    items_per_s: float | None
    peak_share: float | None  # of the catalog's dense peak of the precision
    bandwidth_share: float | None  # of the catalog's bandwidth
    tokens_per_j: float | None  # items, where their unit is known, per joule


def figures(m: Measurement, chip: Chip | None) -> Figures:
    """Rates of a measurement, and what part of the chip's they are."""
    if m.seconds is None:
        return Figures(None, None, None, None, None, None)
    flops, moved, items = (value / m.seconds.median if value else None for value in (m.flops, m.moved_bytes, m.items))
    peak = chip.peak.get(m.point.dtype) if chip is not None else None
    joules = m.watched.energy_j
    return Figures(
        flops,
        moved,
        items,
        flops / peak if flops and peak else None,
        moved / chip.bandwidth if moved and chip is not None else None,
        m.items / joules if joules and m.point.kind in UNITS else None,
    )


def chip_of(file: BenchFile) -> Chip | None:
    """The catalog's chip that a file was measured on."""
    from chipwise.catalog import load

    return load().chips.get(file.chip)


def rate(measurement: Measurement) -> str:
    """The figure that people know this kind of work by.

    >>> from chipwise.bench.measurement import Summary
    >>> from chipwise.ops.point import Point
    >>> once = Summary(1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1, 1)
    >>> rate(Measurement(Point("kernels", "gemm", "bf16", {"m": 1, "n": 1, "k": 1}), "torch", "ok", once, flops=4e11))
    '400 TFLOP/s'
    """
    if measurement.seconds is None:
        return ""
    unit = UNITS.get(measurement.point.kind)
    if unit and measurement.items:
        return f"{format_count(measurement.items / measurement.seconds.median)} {unit}/s"
    if measurement.flops and measurement.point.kind not in ("rmsnorm", "softmax", "adamw", "add"):
        return format_rate(measurement.flops / measurement.seconds.median, "FLOP/s")
    if measurement.moved_bytes:
        return format_rate(measurement.moved_bytes / measurement.seconds.median, "B/s")
    return f"{format_count(1 / measurement.seconds.median)} calls/s"


def sizes(point: Point) -> str:
    """The sizes of a point in short.

    >>> sizes(Point("kernels", "gemm", "bf16", {"m": 4096, "n": 4096, "k": 1024}))
    '4096x4096x1024'
    >>> sizes(Point("kernels", "copy", "bf16", {"bytes": 2**28}))
    '256 MiB'
    """
    given: Mapping[str, int] = point.sizes
    if set(given) <= {"m", "n", "k"}:
        return "x".join(str(given[name]) for name in ("m", "n", "k") if name in given)
    words = []
    for name, value in given.items():
        if name == "bytes":
            words.append(format_bytes(float(value)))
        elif name == "count":
            words.append(f"{format_count(float(value))} parameters")
        elif name == "devices":
            words.append(f"over {value}")
        else:
            words.append(f"{name}={value}")
    if point.model:
        words = [point.model, *(word for word in words if word.startswith(("b=", "s=")))]
    return " ".join(words)


def variant(point: Point) -> str:
    """How the work is done, where there is a choice."""
    choices = [
        ("compiled", point.compile),
        ("remat", point.remat),
        ("full", point.kind.startswith("sdpa") and not point.causal),
    ]
    return ",".join(word for word, holds in choices if holds)


def name(point: Point) -> str:
    """A point in a few words, for progress lines."""
    more = variant(point)
    return f"{point.kind} {point.dtype} {sizes(point)}" + (f" ({more})" if more else "")
