"""From bench files to what predictions read of a chip: tables, coefficients, and the error of points left out.

Several files of one chip are taken together, and a point that more than one of them has counts once. A kernel takes the
median of its times. A step takes the least: its eager parts wait for the host, and what else a shared host does adds to
them (the same step took 3.1 and 6.6 ms within a minute on one H200 machine, 2026-11-15).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from chipwise.bench.file import BenchFile
from chipwise.bench.measurement import Measurement
from chipwise.calibrate.bench_kernels import kernel_table
from chipwise.calibrate.bench_steps import step_fit
from chipwise.catalog import Chip, load
from chipwise.errors import NOTHING, InputError, Refusal
from chipwise.ops.point import Point
from chipwise.predict.learn.bench_calibration import BenchCalibration, PointTable, Step
from chipwise.predict.learn.point_memory import training_peak, way
from chipwise.predict.learn.points import KERNELS, point_id, step_name, terms

FEWEST = 3  # points from which a table or a step is fitted
ENOUGH = 4  # from which the host's own time is fitted too
FEWEST_IMAGES = 1  # a vision model's time has one shape: what is expected of it is scaled to fit
MARGIN = 0.05  # by which the interval of memory is wider than what was measured
MODELS = ("train", "prefill", "decode")
HALF = ("bf16", "fp16")  # the same kernels at the same rates


def fit_bench(files: Mapping[str, BenchFile], framework: str, chip_id: str = "") -> BenchCalibration:
    """The calibration by the usable points of one framework, in files given by their names."""
    chip = chip_of(files, chip_id)
    runs = [m for file in files.values() for m in file.points if m.framework == framework and m.usable]
    if not runs:
        raise InputError("framework", framework, f"one with usable points in {', '.join(files)}")
    newest = max(files.values(), key=lambda file: file.created)
    measurements = pooled(runs)
    tables = _tables(measurements, chip)
    bare = BenchCalibration(
        chip.id, framework, newest.created[:10], ", ".join(files), newest.frameworks.get(framework, {}), tables, {}
    )
    steps, left_out = _steps(measurements, chip, bare)
    return replace(
        bare,
        steps=steps,
        left_out=left_out,
        peaks=_peaks(measurements),
        measured={
            point_id(m.point): {"seconds": m.seconds.median, "low": m.seconds.p25, "high": m.seconds.p75}
            for m in measurements
            if m.seconds is not None
        },
    )


def pooled(runs: Sequence[Measurement]) -> list[Measurement]:
    """One measurement a point, as wide as its times lie apart."""
    groups: dict[str, list[Measurement]] = defaultdict(list)
    for m in runs:
        groups[point_id(m.point)].append(m)
    return [some[0] if len(some) == 1 else _middle(some) for some in groups.values()]


def _middle(some: Sequence[Measurement]) -> Measurement:
    every = [m.seconds for m in some if m.seconds is not None]
    middle = median if some[0].point.kind in KERNELS else min
    seconds = replace(
        every[0],
        median=middle([s.median for s in every]),
        p25=min(s.p25 for s in every),
        p75=max(s.p75 for s in every),
        low=min(s.low for s in every),
        high=max(s.high for s in every),
        samples=sum(s.samples for s in every),
        samples_s=(),
    )
    peaks = [m.peak_bytes for m in some if m.peak_bytes]
    return replace(some[0], seconds=seconds, peak_bytes=median(peaks) if peaks else None)


def chip_of(files: Mapping[str, BenchFile], chip_id: str) -> Chip:
    """The chip that every file was measured on; a file of another, or of a CPU, is refused."""
    chips = load().chips
    first = next(iter(files.values())).device
    for name, file in files.items():
        if file.device.platform == "cpu":
            raise InputError("bench file", name, f"one measured on an accelerator (it is of a CPU, {file.device.name})")
        if file.device.name != first.name:
            raise InputError(
                "bench file", name, f"one of the same device as the others, {first.name} (it is of {file.device.name})"
            )
    named = chip_id or next((file.chip for file in files.values() if file.chip), "")
    if not named:
        device = next(iter(files.values())).device.name
        raise InputError("chip", NOTHING, f"the catalog's name of {device!r}: it isn't known by that name")
    if named not in chips:
        raise InputError("chip", named, "a chip of the catalog (`chipwise chips`)")
    for name, file in files.items():
        if file.chip and file.chip != named:
            raise InputError("chip", named, f"{file.chip}: {name} was measured on a {file.device.name}")
    return chips[named]


def _seconds(m: Measurement) -> float:
    assert m.seconds is not None
    return m.seconds.median


def _tables(measurements: Sequence[Measurement], chip: Chip) -> dict[str, PointTable]:
    groups: dict[tuple[str, str], list[tuple[Point, float]]] = defaultdict(list)
    for m in measurements:
        if m.point.kind in KERNELS:
            groups[m.point.kind, m.point.dtype].append((m.point, _seconds(m)))
    if not groups:
        return {}
    floor = min(seconds for some in groups.values() for _, seconds in some)
    out = {}
    for (kind, dtype), some in groups.items():
        twins = [pair for other in HALF if dtype in HALF and other != dtype for pair in groups.get((kind, other), ())]
        if len(some) + len(twins) >= FEWEST:
            out[f"{kind}/{dtype}"] = kernel_table(kind, dtype, some, chip, floor, twins)
    return out


def _steps(
    measurements: Sequence[Measurement], chip: Chip, bench: BenchCalibration
) -> tuple[dict[str, Step], dict[str, str]]:
    """Coefficients of steps, and those that could not be fitted with the reason; their points are kept all the same."""
    groups: dict[str, list[Measurement]] = defaultdict(list)
    for m in measurements:
        if m.point.kind not in KERNELS and m.point.suite != "collectives":
            groups[step_name(m.point)].append(m)
    out: dict[str, Step] = {}
    left_out: dict[str, str] = {}
    for name, some in sorted(groups.items(), key=lambda group: -len(group[1])):  # the best known first
        kind = some[0].point.kind if some[0].point.kind in MODELS else "images"
        fewest = FEWEST if kind in MODELS else FEWEST_IMAGES
        if len(some) < fewest:
            left_out[name] = f"{len(some)} of the {fewest} points that it takes"
            continue
        kind += "/compiled" if some[0].point.compile and kind in MODELS else ""
        try:
            parts = [terms(m.point, chip, bench) for m in some]
        except Refusal as refusal:  # its kernels were not measured
            left_out[name] = refusal.reason
            continue
        layers = np.array([float(m.point.sizes.get("layers", 50)) for m in some])
        host = None if len(some) >= ENOUGH else _host(some[0].point, out)
        out[name] = step_fit(kind, parts, np.array([_seconds(m) for m in some]), layers, host)
    return out, left_out


def _host(point: Point, steps: Mapping[str, Step]) -> float:
    """The host's time for a layer where too few points tell it: as in another precision; nothing once compiled."""
    same = [step.host_s for name, step in steps.items() if name.startswith(f"{point.kind}/")]
    return same[0] if same and not point.compile else 0.0


def _peaks(measurements: Sequence[Measurement]) -> dict[str, tuple[float, float, float]]:
    """What training steps held at most over what bookkeeping counts."""
    groups: dict[str, list[float]] = defaultdict(list)
    for m in measurements:
        if m.point.kind == "train" and m.peak_bytes:
            groups[way(m.point)].append(m.peak_bytes / training_peak(m.point))
    return {name: (median(some), min(some) * (1 - MARGIN), max(some) * (1 + MARGIN)) for name, some in groups.items()}
