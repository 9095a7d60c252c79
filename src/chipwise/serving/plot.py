"""Latency against load, as a picture: percentiles with their intervals, and the SLO."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chipwise.present import plots
from chipwise.serving.curve import LoadCurve
from chipwise.serving.describe import LATENCIES, load_unit

COLORS = {"p50": plots.BLUE, "p99": plots.VERMILION}


def draw(curve: LoadCurve, target: Path) -> None:
    """Write the picture, atomically."""
    of = curve.service
    metrics = ("ttft", "tpot") if curve.points[0].served.tpot is not None else ("e2e",)
    with plots.drawing() as pyplot:
        figure, axes = pyplot.subplots(
            len(metrics), 1, figsize=(8, 3.4 * len(metrics)), sharex=True, squeeze=False, layout="constrained"
        )
        for panel, metric in zip(axes[:, 0], metrics, strict=True):
            _panel(panel, curve, metric)
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        work = of.target.workload
        axes[0, 0].set_title(f"{work.name} on {of.chips} {of.target.chip.id}: {of}, {of.target.stack.name}")
        axes[-1, 0].set_xlabel(load_unit(work.serve.arrival))
        plots.save(figure, target)


def _panel(axes: Any, curve: LoadCurve, metric: str) -> None:
    """One latency: a line and a band for each percentile, a dashed line for each bound."""
    from matplotlib.ticker import LogLocator, NullFormatter

    loads = [point.load for point in curve.points]
    for name, color in COLORS.items():
        values = [getattr(getattr(point.served, metric), name) for point in curve.points]
        axes.fill_between(
            loads, [v.low * 1e3 for v in values], [v.high * 1e3 for v in values], color=color, alpha=0.15, linewidth=0
        )
        axes.plot(loads, [v.value * 1e3 for v in values], "o-", color=color, markersize=3, label=name)
    for bound in curve.service.target.workload.serve.slo:
        if bound.metric == metric:
            axes.axhline(bound.seconds * 1e3, color=plots.FAINT, linestyle="--", linewidth=1)
            axes.annotate(
                f"SLO: p{bound.percentile:g} <= {bound.seconds * 1e3:g} ms",
                (loads[0], bound.seconds * 1e3),
                xytext=(0, 3),
                textcoords="offset points",
                fontsize=8,
            )
    if curve.within:
        axes.axvline(curve.within, color=plots.GREEN, linestyle=":", linewidth=1.2, label="largest load within the SLO")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel(f"{LATENCIES[metric]}, ms")
    axes.grid(True)
