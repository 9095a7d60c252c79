"""The roofline of a bench file: what was measured, under the best that was measured, beside the catalog's peak."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from chipwise.bench.file import BenchFile
from chipwise.bench.measurement import Measurement
from chipwise.bench.show import chip_of
from chipwise.catalog import Chip
from chipwise.errors import ChipwiseError
from chipwise.ops.point import DTYPES
from chipwise.present import plots
from chipwise.present.blocks import Block
from chipwise.present.result import Result
from chipwise.units import format_rate

COLORS = {
    "fp32": plots.BLUE,
    "tf32": plots.GREEN,
    "bf16": plots.VERMILION,
    "fp16": plots.PURPLE,
    "fp8": plots.ORANGE,
    "int8": plots.GREY,
}
MARKERS = "osD^vP*Xph<>"
STREAMS = ("copy", "add")  # their best is the bandwidth measured


@dataclass(frozen=True, slots=True)
class Dot:
    """A measured point: FLOPs per byte it must move, FLOP/s it reached."""

    kind: str
    dtype: str
    framework: str
    intensity: float
    flops_per_s: float


@dataclass(frozen=True, slots=True, repr=False)
class Roofline(Result):
    """Dots and ceilings. `measured` are the best of the file, `stated` the catalog's; by precision, FLOP/s."""

    VERB: ClassVar[str] = "bench roofline"
    title: str
    dots: tuple[Dot, ...]
    bandwidth: float | None  # bytes/s, the best copy or addition
    measured: dict[str, float]
    stated_bandwidth: float | None
    stated: dict[str, float]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        from chipwise.bench.view import roofline_record

        return roofline_record(self)

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: the measured points."""
        return [asdict(dot) for dot in self.dots]

    def blocks(self) -> list[Block]:
        """For people: the ceilings."""
        from chipwise.bench.view import roofline_blocks

        return roofline_blocks(self)


def roofline(file: BenchFile) -> Roofline:
    """Dots of every usable point with arithmetic, and the ceilings above them."""
    usable = [m for m in file.points if m.usable]
    dots = tuple(_dot(m) for m in usable if m.flops and m.moved_bytes and m.point.kind not in STREAMS)
    if not dots:
        raise ChipwiseError(
            "roofline: no usable point of the file has both arithmetic and bytes to move; "
            "measure with `chipwise bench kernels`"
        )
    streams = [m.moved_bytes / _seconds(m) for m in usable if m.point.kind in STREAMS and m.moved_bytes]
    gemms: dict[str, float] = {}
    for m in usable:
        if m.point.kind == "gemm" and m.flops:
            rate = m.flops / _seconds(m)
            gemms[m.point.dtype] = max(rate, gemms.get(m.point.dtype, 0.0))
    chip = chip_of(file)
    used = {dot.dtype for dot in dots}
    return Roofline(
        f"{file.device.name}, measured {file.created[:10]}",
        dots,
        max(streams, default=None),
        gemms,
        chip.bandwidth if chip else None,
        _stated(chip, used),
    )


def _stated(chip: Chip | None, used: set[str]) -> dict[str, float]:
    return {dtype: chip.peak[dtype] for dtype in DTYPES if dtype in used and dtype in chip.peak} if chip else {}


def _dot(m: Measurement) -> Dot:
    return Dot(m.point.kind, m.point.dtype, m.framework, m.flops / m.moved_bytes, m.flops / _seconds(m))


def _seconds(measurement: Measurement) -> float:
    assert measurement.seconds is not None
    return measurement.seconds.median


def draw(chart: Roofline, path: Path) -> None:
    """Write the picture; the name's ending says which kind."""
    plots.ready(path)
    with plots.drawing() as pyplot:
        figure, axes = pyplot.subplots(figsize=(11.5, 5.8), layout="constrained")
        _ceilings(axes, chart)
        _dots(axes, chart)
        axes.set(
            xscale="log",
            yscale="log",
            title=chart.title,
            xlabel="FLOPs per byte that must move through memory",
            ylabel="FLOP/s",
        )
        axes.grid(True, which="major")
        plots.save(figure, path)


def _ceilings(axes: Any, chart: Roofline) -> None:
    xs = [dot.intensity for dot in chart.dots]
    rates = [*chart.measured.values(), *chart.stated.values(), *(dot.flops_per_s for dot in chart.dots)]
    ridge = max(chart.measured.values(), default=0.0) / chart.bandwidth if chart.bandwidth else 0.0
    low, high = min(xs) / 3, max(*xs, ridge, 1.0) * 8
    axes.set_xlim(low, high)
    axes.set_ylim(min(dot.flops_per_s for dot in chart.dots) / 4, max(rates) * 2.5)
    if chart.bandwidth:
        top = max(chart.measured.values(), default=max(rates))
        _slope(axes, chart.bandwidth, low, top, "-", f"{format_rate(chart.bandwidth, 'B/s')} measured")
    if chart.stated_bandwidth:
        top = max(chart.stated.values(), default=max(rates))
        _slope(axes, chart.stated_bandwidth, low, top, "--", f"{format_rate(chart.stated_bandwidth, 'B/s')} stated")
    for peaks, bandwidth, style in (
        (chart.measured, chart.bandwidth, "-"),
        (chart.stated, chart.stated_bandwidth, "--"),
    ):
        for dtype, peak in peaks.items():
            start = max(low, peak / bandwidth) if bandwidth else low
            axes.plot([start, high], [peak, peak], style, color=COLORS[dtype], linewidth=1.4, zorder=1)


def _ceiling_words(chart: Roofline, dtype: str) -> str:
    """A precision with its ceilings, for the legend: beside the lines they would lie on each other."""
    both = (("measured", chart.measured), ("stated", chart.stated))
    ceilings = [f"{format_rate(peaks[dtype], 'FLOP/s')} {kind}" for kind, peaks in both if dtype in peaks]
    return f"{dtype}: {', '.join(ceilings)}" if ceilings else dtype


def _slope(axes: Any, bandwidth: float, low: float, top: float, style: str, words: str) -> None:
    """The line of a bandwidth, with its words in the legend: along the line they would lie on the dots."""
    axes.plot(
        [low, top / bandwidth], [low * bandwidth, top], style, color=plots.INK, linewidth=1.4, zorder=1, label=words
    )


def _dots(axes: Any, chart: Roofline) -> None:
    kinds = list(dict.fromkeys(dot.kind for dot in chart.dots))
    frameworks = list(dict.fromkeys(dot.framework for dot in chart.dots))
    for dot in chart.dots:
        filled = dot.framework == frameworks[0]
        color = COLORS[dot.dtype]
        axes.scatter(
            dot.intensity,
            dot.flops_per_s,
            s=34,
            marker=MARKERS[kinds.index(dot.kind) % len(MARKERS)],
            facecolors=color if filled else "white",
            edgecolors=color,
            linewidths=1.1,
            alpha=0.85,
            zorder=3,
        )
    for i, kind in enumerate(kinds):
        axes.scatter([], [], marker=MARKERS[i % len(MARKERS)], color=plots.FAINT, label=kind)
    for dtype in dict.fromkeys(dot.dtype for dot in chart.dots):
        axes.plot([], [], "-", color=COLORS[dtype], linewidth=2.5, label=_ceiling_words(chart, dtype))
    if len(frameworks) > 1:
        axes.scatter([], [], marker="o", color=plots.FAINT, label=f"filled: {frameworks[0]}")
        axes.scatter(
            [], [], marker="o", facecolors="white", edgecolors=plots.FAINT, label=f"hollow: {', '.join(frameworks[1:])}"
        )
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8)
