"""Loss curves of every recipe with the spread over seeds, and how far each is from fp32, as a picture."""

from __future__ import annotations

import logging
import os
from io import BytesIO
from pathlib import Path
from typing import Any

from chipwise.errors import InputError
from chipwise.numerics.programs import needs
from chipwise.numerics.runs import Run, smoothed
from chipwise.numerics.study import Study
from chipwise.whole import write_whole

SUFFIXES = (".png", ".svg")
_COLOURS = {"fp32": "#000000", "bf16": "#56B4E9", "bf16+master": "#0072B2", "fp16": "#D55E00", "fp16+static": "#E69F00",
            "fp16+dynamic": "#CC79A7", "fp8": "#009E73"}  # told apart by colour-blind readers too (Okabe and Ito)


def ready(target: Path) -> None:
    """Refuse a picture that couldn't be written, before hours of training."""
    if target.suffix.lower() not in SUFFIXES:
        raise InputError("--plot", str(target), "a file that ends in .png or .svg")
    folder = target.resolve().parent
    if target.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError("--plot", str(target), "a file in a folder that exists and can be written to")
    needs("matplotlib")


def draw(found: Study, target: Path) -> None:
    """Write the picture: under a temporary name first, so that it is whole or absent."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context({"svg.hashsalt": "chipwise", "font.size": 9, "axes.spines.top": False,
                            "axes.spines.right": False}):
        figure, (above, below) = pyplot.subplots(
            2, 1, figsize=(9, 7.5), height_ratios=(3, 2), sharex=True, layout="constrained")
        _curves(above, found)
        _differences(below, found)
        drawn = BytesIO()
        figure.savefig(drawn, format=target.suffix[1:].lower(), dpi=130,
                       metadata={"Date": None} if target.suffix.lower() == ".svg" else None)
        pyplot.close(figure)
    write_whole(drawn.getvalue(), target, "--plot")


def _curves(axes: Any, found: Study) -> None:
    rows: list[tuple[str, tuple[Run, ...], str]] = [("fp32", found.reference, "the reference")]
    rows += [(row.recipe.name, row.runs, row.status) for row in found.compared]
    for name, runs, status in rows:
        curves = _smooth(runs)
        _band(axes, curves, _COLOURS[name], f"{name}: {status}", name == "fp32")
    finals = [loss for _, runs, _ in rows for curve in _smooth(runs) for loss in curve if loss == loss]
    if finals and min(finals) > 0 and max(finals) > 20 * min(finals):
        axes.set_yscale("log")
    axes.set_ylabel("training loss (running mean)")
    axes.set_title(f"{found.program.name}, {found.software}: {found.seeds} seeds x {found.steps} steps", loc="left")
    axes.legend(frameon=False)


def _differences(axes: Any, found: Study) -> None:
    base, scale = _smooth(found.reference), found.margins.scale
    top = 0.0
    for row in found.compared:
        curves = [[100 * (a - b) / scale for a, b in zip(mine, theirs, strict=True)]
                  for mine, theirs in zip(_smooth(row.runs), base, strict=True)]
        _band(axes, curves, _COLOURS[row.recipe.name], "", False)
        top = max([top, *(each for curve in curves for each in curve if each == each)])
    allowed = 100 * found.margins.final / scale
    axes.axhspan(-allowed, allowed, color="0.92", zorder=0)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_ylim(-1.6 * allowed, max(1.6 * allowed, min(130.0, 1.05 * top)))  # what explodes leaves the picture
    axes.text(0.995, 0.03, f"margin at the end: {allowed:.1f} %", transform=axes.transAxes, ha="right", color="0.4")
    axes.set_ylabel("loss minus fp32's, same seed\n(% of fp32's loss or fall)")
    axes.set_xlabel("step")


def _smooth(runs: tuple[Run, ...]) -> list[list[float]]:
    return [smoothed(run.losses, max(5, len(run.losses) // 10)) for run in runs]


def _band(axes: Any, curves: list[list[float]], colour: str, label: str, strong: bool) -> None:
    """The mean over seeds, and between the least and the largest of them."""
    steps = range(len(curves[0]))
    mean = [sum(each) / len(each) for each in zip(*curves, strict=True)]
    low, high = ([pick(each) for each in zip(*curves, strict=True)] for pick in (min, max))
    axes.plot(steps, mean, color=colour, label=label or None, linewidth=2.4 if strong else 1.4)
    axes.fill_between(steps, low, high, color=colour, alpha=0.12, linewidth=0)
