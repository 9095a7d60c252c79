"""Charts from plain numbers: bars with intervals, stacks, curves, a front, a tornado. Each becomes a `Figure`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from typing import Any

from chipwise.present import plots
from chipwise.report.inline import inline
from chipwise.report.parts import Figure

WIDTH = 7.0  # inches: what A4 leaves between its margins
BAR = 0.27  # inches of a bar and the gap beneath it
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oo", "--")
LABELLED = 12  # dots of a front that get their names


@dataclass(frozen=True, slots=True)
class Bar:
    """A value with its interval."""

    label: str
    value: float
    low: float
    high: float
    strong: bool = False
    weak: bool = False  # on bounded evidence


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


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through points, with the range around it where there is one."""

    label: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    strong: bool = False
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Swing:
    """What an answer becomes when one input is at its low and at its high end."""

    label: str
    low: float
    high: float
    low_words: str = ""
    high_words: str = ""


def money(usd: float) -> str:
    """US dollars on an axis.

    >>> money(1_250_000), money(300_000), money(2_500), money(12.5), money(0), money(-2_000_000)
    ('$1.25M', '$300K', '$2.5K', '$12.5', '$0', '-$2M')
    """
    sign, usd = ("-", -usd) if usd < 0 else ("", usd)
    for suffix, factor in (("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if usd >= factor:
            return f"{sign}${usd / factor:.4g}{suffix}"
    return f"{sign}${usd:.3g}"


def amount(usd: float) -> str:
    """US dollars beside a bar, in three digits.

    >>> amount(1_004_349), amount(12.5), amount(-2_345_678), amount(0.0123)
    ('$1.00M', '$12.5', '-$2.35M', '$0.0123')
    """
    sign, usd = ("-", -usd) if usd < 0 else ("", usd)
    for suffix, factor in (("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if usd >= 0.9995 * factor:
            value = usd / factor
            return f"{sign}${value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f}{suffix}"
    return f"{sign}${usd:.3g}"


def bars(
    name: str,
    caption: str,
    description: str,
    rows: Sequence[Bar],
    axis: str,
    show: Callable[[float], str] = money,
    label: Callable[[float], str] = amount,
) -> Figure:
    """Horizontal bars with their 90 % intervals, best first; an interval that has no end ends in an arrow."""
    with _chart(max(1.4, 0.75 + BAR * len(rows))) as (figure, axes):
        ends = [b.high for b in rows if isfinite(b.high)] + [b.value for b in rows]
        top = min(max(ends), 4 * max(b.value for b in rows))
        places = range(len(rows))
        for i, b in enumerate(rows):
            colour = plots.BLUE if b.strong else "#9fb8c8"
            axes.barh(
                i, b.value, height=0.62, color=colour, hatch="////" if b.weak else "", edgecolor="white", linewidth=0
            )
            high = min(b.high, top * 1.02)
            _interval(axes, i, b, high)
            axes.annotate(
                label(b.value),
                (max(high, b.value), i),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                fontweight="bold" if b.strong else "normal",
            )
        axes.set_yticks(places, [b.label for b in rows])
        for tick, b in zip(axes.get_yticklabels(), rows, strict=True):
            tick.set_fontweight("bold" if b.strong else "normal")
        axes.invert_yaxis()
        axes.set_xlim(0, top * 1.18)
        _values(axes.xaxis, show)
        axes.set_xlabel(axis)
        axes.grid(True, axis="x")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        return _made(figure, name, caption, description)


def _interval(axes: Any, at: int, b: Bar, high: float) -> None:
    if b.low == b.high:
        return
    cut = b.high > high
    axes.plot([b.low, high], [at, at], color=plots.INK, linewidth=1.2, solid_capstyle="butt")
    axes.plot([b.low], [at], "|", color=plots.INK, markersize=6)
    axes.plot([high], [at], ">" if cut else "|", color=plots.INK, markersize=4 if cut else 6)


def stacks(
    name: str,
    caption: str,
    description: str,
    columns: Sequence[str],
    terms: Mapping[str, Sequence[float]],
    axis: str,
    show: Callable[[float], str] = money,
    label: Callable[[float], str] = amount,
    strong: int | None = None,
) -> Figure:
    """Horizontal bars, each the sum of the same terms; amounts below zero go to the left."""
    with _chart(max(1.9, 1.25 + BAR * 1.25 * len(columns))) as (figure, axes):
        right, left = [0.0] * len(columns), [0.0] * len(columns)
        for k, (term, amounts) in enumerate(terms.items()):
            begin = [right[i] if a >= 0 else left[i] + a for i, a in enumerate(amounts)]
            axes.barh(
                range(len(columns)),
                [abs(a) for a in amounts],
                left=begin,
                height=0.62,
                label=term,
                color=plots.CYCLE[k % len(plots.CYCLE)],
                edgecolor="white",
                linewidth=0.5,
                hatch=HATCHES[k % len(HATCHES)] if k >= 6 else "",
            )
            for i, a in enumerate(amounts):
                right[i], left[i] = (right[i] + a, left[i]) if a >= 0 else (right[i], left[i] + a)
        for i, (more, less) in enumerate(zip(right, left, strict=True)):
            axes.annotate(
                label(more + less),
                (more, i),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                fontweight="bold" if i == strong else "normal",
            )
        axes.set_yticks(range(len(columns)), list(columns))
        if strong is not None:
            axes.get_yticklabels()[strong].set_fontweight("bold")
        axes.invert_yaxis()
        axes.set_xlim(min(0.0, min(left) * 1.05), max(right) * 1.16 or 1.0)
        _values(axes.xaxis, show)
        axes.set_xlabel(axis)
        axes.grid(True, axis="x")
        axes.tick_params(axis="y", length=0)
        figure.legend(loc="outside lower center", ncols=min(4, len(terms)), fontsize=8)
        return _made(figure, name, caption, description)


def front(
    name: str,
    caption: str,
    description: str,
    dots: Sequence[Dot],
    x_axis: str,
    y_axis: str,
    show_x: Callable[[float], str],
    show_y: Callable[[float], str] = money,
) -> Figure:
    """Choices by two measures, both better to the lower left, with the front of those that nothing beats."""
    best = _undominated(dots)
    with _chart(3.9) as (figure, axes):
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
            colour = plots.VERMILION if d.strong else plots.BLUE if d in best else "#8a9aa5"
            faint = 1.0 if d.strong else 0.55
            axes.plot([d.x_low, min(d.x_high, 50 * d.x)], [d.y, d.y], color=colour, linewidth=1, alpha=faint)
            axes.plot([d.x, d.x], [d.y_low, min(d.y_high, 50 * d.y)], color=colour, linewidth=1, alpha=faint)
            axes.plot([d.x], [d.y], "D" if d.strong else "o", color=colour, markersize=7 if d.strong else 5, zorder=3)
        axes.plot([], [], "D", color=plots.VERMILION, label="the pick")
        axes.plot([], [], "-", color="#8a9aa5", label="90 % interval")
        _values(axes.xaxis, show_x)
        _values(axes.yaxis, show_y)
        axes.set_xlabel(x_axis)
        axes.set_ylabel(y_axis)
        axes.grid(True)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
        _name_dots(figure, axes, dots, best)
        return _made(figure, name, caption, description)


def curves(
    name: str,
    caption: str,
    description: str,
    lines: Sequence[Curve],
    x_axis: str,
    y_axis: str,
    show_x: Callable[[float], str],
    show_y: Callable[[float], str] = money,
    marks: Sequence[tuple[float, float, str]] = (),
    top: float | None = None,
) -> Figure:
    """Lines with bands where they have ranges, and named points where they cross."""
    styles = ("-", "--", "-.", ":")
    with _chart(3.6) as (figure, axes):
        plain = [line for line in lines if not line.strong]
        for line in lines:
            i = 0 if line.strong else 1 + plain.index(line)
            colour = plots.CYCLE[i % len(plots.CYCLE)]
            axes.plot(
                line.xs, line.ys, styles[i % 4], color=colour, linewidth=2.4 if line.strong else 1.5, label=line.label
            )
            if line.low:
                axes.fill_between(line.xs, line.low, line.high, color=colour, alpha=0.15, linewidth=0)
        for i, (x, y, words) in enumerate(sorted(marks)):
            axes.plot([x], [y], "o", color=plots.INK, markersize=5, zorder=4)
            aside = (5, 6) if i % 2 == 0 else (-5, -12)  # in turn above and below: neighbours lie close
            axes.annotate(
                words,
                (x, y),
                xytext=aside,
                textcoords="offset points",
                fontsize=8,
                ha="left" if i % 2 == 0 else "right",
            )
        axes.set_ylim(0, top or 1.08 * max(max(line.ys) for line in lines))
        axes.set_xlim(min(min(line.xs) for line in lines), max(max(line.xs) for line in lines))
        _values(axes.xaxis, show_x)
        _values(axes.yaxis, show_y)
        axes.set_xlabel(x_axis)
        axes.set_ylabel(y_axis)
        axes.grid(True)
        figure.legend(loc="outside lower center", ncols=2, fontsize=8)
        return _made(figure, name, caption, description)


def tornado(
    name: str,
    caption: str,
    description: str,
    centre: float,
    rows: Sequence[Swing],
    axis: str,
    show: Callable[[float], str] = money,
) -> Figure:
    """What each input does to the answer between the ends of its range, the largest first."""
    with _chart(max(1.6, 1.0 + BAR * 1.2 * len(rows))) as (figure, axes):
        span = max([abs(end - centre) for r in rows for end in (r.low, r.high)] + [abs(centre) * 1e-6, 1e-9])
        for i, r in enumerate(rows):
            for end, words, colour in ((r.low, r.low_words, plots.BLUE), (r.high, r.high_words, plots.ORANGE)):
                axes.barh(i, end - centre, left=centre, height=0.62, color=colour)
                aside = -4 if end < centre else 4
                axes.annotate(
                    words,
                    (end, i),
                    xytext=(aside, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=7.5,
                    ha="right" if end < centre else "left",
                )
        axes.axvline(centre, color=plots.INK, linewidth=1)
        axes.set_yticks(range(len(rows)), [r.label for r in rows])
        axes.invert_yaxis()
        axes.set_xlim(centre - 1.45 * span, centre + 1.45 * span)
        axes.barh([0], [0], color=plots.BLUE, label="input at its low end (p10)")
        axes.barh([0], [0], color=plots.ORANGE, label="input at its high end (p90)")
        _values(axes.xaxis, show)
        axes.set_xlabel(axis)
        axes.grid(True, axis="x")
        axes.tick_params(axis="y", length=0)
        figure.legend(loc="outside lower center", ncols=2, fontsize=8)
        return _made(figure, name, caption, description)


def over_time(
    name: str,
    caption: str,
    description: str,
    periods: Sequence[str],
    layers: Mapping[str, Sequence[float]],
    axis: str,
    show: Callable[[float], str],
    lines: Mapping[str, Sequence[float]] | None = None,
) -> Figure:
    """Columns by period, stacked; `lines` lie over them as steps."""
    with _chart(3.3) as (figure, axes):
        height, depth = [0.0] * len(periods), [0.0] * len(periods)
        for k, (layer, amounts) in enumerate(layers.items()):
            begin = [height[i] if a >= 0 else depth[i] for i, a in enumerate(amounts)]
            axes.bar(
                range(len(periods)),
                amounts,
                bottom=begin,
                width=0.82,
                label=layer,
                color=plots.CYCLE[k % len(plots.CYCLE)],
                hatch=HATCHES[k // len(plots.CYCLE)],
                edgecolor="white",
                linewidth=0.4,
            )
            for i, a in enumerate(amounts):
                height[i], depth[i] = (height[i] + a, depth[i]) if a >= 0 else (height[i], depth[i] + a)
        for k, (label, values) in enumerate((lines or {}).items()):
            axes.step(
                [i - 0.5 for i in range(len(periods))] + [len(periods) - 0.5],
                [*values, values[-1]],
                where="post",
                color=plots.INK if k == 0 else plots.VERMILION,
                linewidth=1.8,
                linestyle="-" if k == 0 else "--",
                label=label,
            )
        every = -(-len(periods) // 12)
        axes.set_xticks(
            range(0, len(periods), every),
            [periods[i] for i in range(0, len(periods), every)],
            rotation=35 if max(map(len, periods)) > 5 and len(periods) > 6 else 0,
            ha="right" if max(map(len, periods)) > 5 and len(periods) > 6 else "center",
        )
        axes.set_xlim(-0.6, len(periods) - 0.4)
        top = max([*height, *(v for values in (lines or {}).values() for v in values), 1e-9])
        axes.set_ylim(min(0.0, min(depth)) * 1.05, 1.06 * top)
        _values(axes.yaxis, show)
        axes.set_ylabel(axis)
        axes.grid(True, axis="y")
        figure.legend(loc="outside lower center", ncols=3 if max(map(len, layers), default=0) < 24 else 2, fontsize=8)
        return _made(figure, name, caption, description)


@contextmanager
def _chart(height: float) -> Iterator[tuple[Any, Any]]:
    with plots.drawing(words=True) as pyplot:
        yield pyplot.subplots(figsize=(WIDTH, height), layout="constrained")


def _values(axis: Any, show: Callable[[float], str]) -> None:
    """Ticks in words; few of them, also on a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    if axis.get_scale() == "log":
        low, high = sorted(axis.get_view_interval())
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 200 * low else (1.0,)))
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(7, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: show(value)))


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


def _made(figure: Any, name: str, caption: str, description: str) -> Figure:
    return Figure(name, caption, description, inline(plots.drawn(figure, "svg").decode("utf-8"), name))
