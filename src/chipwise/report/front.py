"""The Pareto front of choices by two measures, with names beside its dots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from chipwise.present import plots
from chipwise.report.charts import Labels, chart, made, money, value_ticks
from chipwise.report.parts import Figure

LABELLED = 12  # dots of a front that get their names


@dataclass(frozen=True, slots=True)
class Dot:
    """A choice by two measures that are both better when smaller, each with its interval."""

    label: str
    x: float
    x_low: float
    x_high: float
    y: float
    y_low: float
    y_high: float
    strong: bool = False


def front(
    labels: Labels,
    dots: Sequence[Dot],
    x_axis: str,
    y_axis: str,
    show_x: Callable[[float], str],
    show_y: Callable[[float], str] = money,
) -> Figure:
    """Choices by two measures, both better to the lower left, with the front of those that nothing beats."""
    best = _undominated(dots)
    with chart(3.9) as (figure, axes):
        for scale, low, high in (
            (axes.set_xscale, min(d.x for d in dots), max(d.x for d in dots)),
            (axes.set_yscale, min(d.y for d in dots), max(d.y for d in dots)),
        ):
            if high > 6 * low > 0:
                scale("log")
        line = sorted(best, key=lambda d: d.x)
        axes.plot(
            [d.x for d in line],
            [d.y for d in line],
            color=plots.FAINT,
            linewidth=1,
            linestyle="--",
            label="front: nothing is both cheaper and faster",
            zorder=1,
        )
        for d in dots:
            color = plots.VERMILION if d.strong else plots.BLUE if d in best else "#8a9aa5"
            faint = 1.0 if d.strong else 0.55
            axes.plot([d.x_low, min(d.x_high, 50 * d.x)], [d.y, d.y], color=color, linewidth=1, alpha=faint)
            axes.plot([d.x, d.x], [d.y_low, min(d.y_high, 50 * d.y)], color=color, linewidth=1, alpha=faint)
            axes.plot([d.x], [d.y], "D" if d.strong else "o", color=color, markersize=7 if d.strong else 5, zorder=3)
        axes.plot([], [], "D", color=plots.VERMILION, label="the pick")
        axes.plot([], [], "-", color="#8a9aa5", label="90 % interval")
        value_ticks(axes.xaxis, show_x)
        value_ticks(axes.yaxis, show_y)
        axes.set_xlabel(x_axis)
        axes.set_ylabel(y_axis)
        axes.grid(True)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
        _name_dots(figure, axes, dots, best)
        return made(figure, labels)


def _undominated(dots: Sequence[Dot]) -> list[Dot]:
    """Dots that no other beats by one measure without losing by the other."""
    return [d for d in dots if not any((o.x <= d.x and o.y < d.y) or (o.x < d.x and o.y <= d.y) for o in dots)]


def _name_dots(figure: Any, axes: Any, dots: Sequence[Dot], best: Sequence[Dot]) -> None:
    """Names beside dots, where they lie on no other name and no dot; those that matter first."""
    first = [d for d in dots if d.strong] + [d for d in best if not d.strong]
    named = (first + [d for d in dots if d not in first])[: max(LABELLED, len(first))]
    figure.canvas.draw()  # the layout decides where dots are
    renderer, taken = figure.canvas.get_renderer(), []
    for d in dots:
        x, y = axes.transData.transform((d.x, d.y))
        taken.append((x - 7, y - 7, x + 7, y + 7))
    whole = axes.get_window_extent(renderer)
    for d in named:
        placed = None
        for dx, dy, ha in (
            (9, 5, "left"),
            (9, -11, "left"),
            (-9, 5, "right"),
            (-9, -11, "right"),
            (9, 14, "left"),
            (-9, 14, "right"),
            (9, -20, "left"),
            (-9, -20, "right"),
        ):
            text = axes.annotate(
                d.label,
                (d.x, d.y),
                xytext=(dx, dy),
                textcoords="offset points",
                ha=ha,
                fontsize=8,
                fontweight="bold" if d.strong else "normal",
            )
            box = text.get_window_extent(renderer)
            edge = (box.x0, box.y0, box.x1, box.y1)
            inside = box.x0 >= whole.x0 and box.x1 <= figure.bbox.x1 and box.y0 >= whole.y0 and box.y1 <= whole.y1
            if inside and not any(_meet(edge, other) for other in taken):
                placed = edge
                break
            text.remove()
        if placed is not None:
            taken.append(placed)


def _meet(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
