"""Latency against load, as a picture: percentiles with their intervals, and the SLO."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.present import plots

if TYPE_CHECKING:
    from chipwise.serving.service import Served, Service

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # of the most that is carried
COUNT = 2000  # requests of a point, at least
COLOURS = {"p50": plots.BLUE, "p99": plots.VERMILION}


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A service at one load."""

    load: float
    served: Served


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A service at loads from light to nearly all it carries."""

    service: Service
    within: float  # the largest load that keeps the SLO; 0: none
    points: tuple[Point, ...]


def curve(of: Service, seed: int, progress: Callable[[int, int, str], None]) -> Curve:
    """The service at shares of what it carries: of what the queue bears, or in a closed loop of what the SLO allows."""
    from chipwise.cli.replicas import carried
    from chipwise.serving.capacity import capacity_of, trial_requests
    from chipwise.serving.service import run

    serve = of.target.workload.serve
    within = capacity_of(of, trial_requests(of.target, seed)).load.value
    closed = serve.arrival.kind == "closed"
    most = max(within if serve.slo else 0.0, float(serve.arrival.users)) if closed else carried(of, seed)
    loads = [share * most for share in SHARES]
    if closed:
        loads = sorted({float(max(1, round(load))) for load in loads})
    points = []
    for i, load in enumerate(loads):
        progress(i, len(loads), f"{load:.3g}")
        served = (
            run(of, count=max(COUNT, 20 * round(load)), seed=seed, users=round(load))
            if closed
            else run(of, count=max(COUNT, COUNT * of.replicas // 2), seed=seed, rate=load)
        )
        points.append(Point(load, served))
    return Curve(of, within if serve.slo else 0.0, tuple(points))


def draw(found: Curve, target: Path) -> None:
    """Write the picture, whole or not at all."""
    from chipwise.cli.replicas import words_of

    metrics = ("ttft", "tpot") if found.points[0].served.tpot is not None else ("e2e",)
    with plots.drawing() as pyplot:
        figure, axes = pyplot.subplots(
            len(metrics), 1, figsize=(8, 3.4 * len(metrics)), sharex=True, squeeze=False, layout="constrained"
        )
        for each, metric in zip(axes[:, 0], metrics, strict=True):
            _panel(each, found, metric)
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        work = found.service.target.workload
        axes[0, 0].set_title(
            f"{work.name} on {found.service.chips} {found.service.target.chip.id}: "
            f"{words_of(found.service)}, {found.service.target.stack.name}"
        )
        axes[-1, 0].set_xlabel("users" if work.serve.arrival.kind == "closed" else "requests/s")
        plots.save(figure, target)


def _panel(axes: Any, found: Curve, metric: str) -> None:
    """One latency: a line and a band for each percentile, a dashed line for each bound."""
    from matplotlib.ticker import LogLocator, NullFormatter

    from chipwise.cli.serving_words import METRICS

    loads = [p.load for p in found.points]
    for name, colour in COLOURS.items():
        values = [getattr(getattr(p.served, metric), name) for p in found.points]
        axes.fill_between(
            loads, [v.low * 1e3 for v in values], [v.high * 1e3 for v in values], color=colour, alpha=0.15, linewidth=0
        )
        axes.plot(loads, [v.value * 1e3 for v in values], "o-", color=colour, markersize=3, label=name)
    for bound in found.service.target.workload.serve.slo:
        if bound.metric == metric:
            axes.axhline(bound.seconds * 1e3, color=plots.FAINT, linestyle="--", linewidth=1)
            axes.annotate(
                f"SLO: p{bound.percentile:g} <= {bound.seconds * 1e3:g} ms",
                (loads[0], bound.seconds * 1e3),
                xytext=(0, 3),
                textcoords="offset points",
                fontsize=8,
            )
    if found.within:
        axes.axvline(found.within, color=plots.GREEN, linestyle=":", linewidth=1.2, label="the most within the SLO")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel(f"{METRICS[metric]}, ms")
    axes.grid(True)
