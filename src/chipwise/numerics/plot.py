"""Loss curves of every recipe with the spread over seeds, and how far each is from fp32, as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chipwise.numerics.runs import Run, smoothed
from chipwise.numerics.study import Study
from chipwise.present import plots

_COLORS = {
    "fp32": plots.BLACK,
    "bf16": plots.SKY,
    "bf16+master": plots.BLUE,
    "fp16": plots.VERMILION,
    "fp16+static": plots.ORANGE,
    "fp16+dynamic": plots.PURPLE,
    "fp8": plots.GREEN,
}


def draw(study: Study, target: Path) -> None:
    """Write the picture, atomically."""
    with plots.drawing() as pyplot:
        figure, (above, below) = pyplot.subplots(
            2, 1, figsize=(9, 7.5), height_ratios=(3, 2), sharex=True, layout="constrained"
        )
        _curves(above, study)
        _differences(below, study)
        plots.save(figure, target)


def _curves(axes: Any, study: Study) -> None:
    rows: list[tuple[str, tuple[Run, ...], str]] = [("fp32", study.reference, "the reference")]
    rows += [(row.recipe.name, row.runs, row.status) for row in study.compared]
    for name, runs, status in rows:
        curves = _smooth(runs)
        _band(axes, curves, _COLORS[name], f"{name}: {status}", name == "fp32")
    finals = [loss for _, runs, _ in rows for curve in _smooth(runs) for loss in curve if loss == loss]
    if finals and min(finals) > 0 and max(finals) > 20 * min(finals):
        axes.set_yscale("log")
    axes.set_ylabel("training loss (running mean)")
    axes.set_title(f"{study.program.name}, {study.software}: {study.seeds} seeds x {study.steps} steps", loc="left")
    axes.legend(loc="upper right")


def _differences(axes: Any, study: Study) -> None:
    base, scale = _smooth(study.reference), study.margins.scale
    top = 0.0
    for row in study.compared:
        curves = [
            [100 * (a - b) / scale for a, b in zip(mine, theirs, strict=True)]
            for mine, theirs in zip(_smooth(row.runs), base, strict=True)
        ]
        _band(axes, curves, _COLORS[row.recipe.name], "", False)
        top = max([top, *(value for curve in curves for value in curve if value == value)])
    allowed = 100 * study.margins.final / scale
    axes.axhspan(-allowed, allowed, color="0.92", zorder=0)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_ylim(-1.6 * allowed, max(1.6 * allowed, min(130.0, 1.05 * top)))  # what explodes leaves the picture
    axes.text(0.995, 0.03, f"margin at the end: {allowed:.1f} %", transform=axes.transAxes, ha="right", color="0.4")
    axes.set_ylabel("loss minus fp32's, same seed\n(% of fp32's loss or fall)")
    axes.set_xlabel("step")


def _smooth(runs: tuple[Run, ...]) -> list[list[float]]:
    return [smoothed(run.losses, max(5, len(run.losses) // 10)) for run in runs]


def _band(axes: Any, curves: list[list[float]], color: str, label: str, strong: bool) -> None:
    """The mean over seeds, and between the least and the largest of them."""
    steps = range(len(curves[0]))
    mean = [sum(values) / len(values) for values in zip(*curves, strict=True)]
    low, high = ([pick(values) for values in zip(*curves, strict=True)] for pick in (min, max))
    axes.plot(steps, mean, color=color, label=label or None, linewidth=2.4 if strong else 1.4)
    axes.fill_between(steps, low, high, color=color, alpha=0.12, linewidth=0)
