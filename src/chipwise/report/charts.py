"""Charts from plain numbers: bars with intervals, stacks, curves, a tornado. Each becomes a `Figure`."""

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


@dataclass(frozen=True, slots=True)
class Labels:
    """What a figure is called: its name in the page, its caption, and its content in words."""

    name: str
    caption: str
    description: str


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
    labels: Labels,
    rows: Sequence[Bar],
    axis: str,
    show: Callable[[float], str] = money,
    label: Callable[[float], str] = amount,
) -> Figure:
    """Horizontal bars with their 90 % intervals, best first; an interval that has no end ends in an arrow."""
    with chart(max(1.4, 0.75 + BAR * len(rows))) as (figure, axes):
        ends = [b.high for b in rows if isfinite(b.high)] + [b.value for b in rows]
        top = min(max(ends), 4 * max(b.value for b in rows))
        places = range(len(rows))
        for i, b in enumerate(rows):
            color = plots.BLUE if b.strong else "#9fb8c8"
            axes.barh(
                i, b.value, height=0.62, color=color, hatch="////" if b.weak else "", edgecolor="white", linewidth=0
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
        value_ticks(axes.xaxis, show)
        axes.set_xlabel(axis)
        axes.grid(True, axis="x")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        return made(figure, labels)


def _interval(axes: Any, at: int, b: Bar, high: float) -> None:
    if b.low == b.high:
        return
    cut = b.high > high
    axes.plot([b.low, high], [at, at], color=plots.INK, linewidth=1.2, solid_capstyle="butt")
    axes.plot([b.low], [at], "|", color=plots.INK, markersize=6)
    axes.plot([high], [at], ">" if cut else "|", color=plots.INK, markersize=4 if cut else 6)


def stacks(
    labels: Labels,
    columns: Sequence[str],
    terms: Mapping[str, Sequence[float]],
    axis: str,
    show: Callable[[float], str] = money,
    label: Callable[[float], str] = amount,
    strong: int | None = None,
) -> Figure:
    """Horizontal bars, each the sum of the same terms; amounts below zero go to the left."""
    with chart(max(1.9, 1.25 + BAR * 1.25 * len(columns))) as (figure, axes):
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
        value_ticks(axes.xaxis, show)
        axes.set_xlabel(axis)
        axes.grid(True, axis="x")
        axes.tick_params(axis="y", length=0)
        figure.legend(loc="outside lower center", ncols=min(4, len(terms)), fontsize=8)
        return made(figure, labels)


def curves(
    labels: Labels,
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
    with chart(3.6) as (figure, axes):
        plain = [line for line in lines if not line.strong]
        for line in lines:
            i = 0 if line.strong else 1 + plain.index(line)
            color = plots.CYCLE[i % len(plots.CYCLE)]
            axes.plot(
                line.xs, line.ys, styles[i % 4], color=color, linewidth=2.4 if line.strong else 1.5, label=line.label
            )
            if line.low:
                axes.fill_between(line.xs, line.low, line.high, color=color, alpha=0.15, linewidth=0)
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
        value_ticks(axes.xaxis, show_x)
        value_ticks(axes.yaxis, show_y)
        axes.set_xlabel(x_axis)
        axes.set_ylabel(y_axis)
        axes.grid(True)
        figure.legend(loc="outside lower center", ncols=2, fontsize=8)
        return made(figure, labels)


def tornado(
    labels: Labels,
    centre: float,
    rows: Sequence[Swing],
    axis: str,
    show: Callable[[float], str] = money,
) -> Figure:
    """What each input does to the answer between the ends of its range, the largest first."""
    with chart(max(1.6, 1.0 + BAR * 1.2 * len(rows))) as (figure, axes):
        span = max([abs(end - centre) for r in rows for end in (r.low, r.high)] + [abs(centre) * 1e-6, 1e-9])
        for i, r in enumerate(rows):
            for end, words, color in ((r.low, r.low_words, plots.BLUE), (r.high, r.high_words, plots.ORANGE)):
                axes.barh(i, end - centre, left=centre, height=0.62, color=color)
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
        value_ticks(axes.xaxis, show)
        axes.set_xlabel(axis)
        axes.grid(True, axis="x")
        axes.tick_params(axis="y", length=0)
        figure.legend(loc="outside lower center", ncols=2, fontsize=8)
        return made(figure, labels)


def over_time(
    labels: Labels,
    periods: Sequence[str],
    layers: Mapping[str, Sequence[float]],
    axis: str,
    show: Callable[[float], str],
    lines: Mapping[str, Sequence[float]] | None = None,
) -> Figure:
    """Columns by period, stacked; `lines` lie over them as steps."""
    with chart(3.3) as (figure, axes):
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
        value_ticks(axes.yaxis, show)
        axes.set_ylabel(axis)
        axes.grid(True, axis="y")
        figure.legend(loc="outside lower center", ncols=3 if max(map(len, layers), default=0) < 24 else 2, fontsize=8)
        return made(figure, labels)


@contextmanager
def chart(height: float) -> Iterator[tuple[Any, Any]]:
    """A figure as wide as the page, and its axes."""
    with plots.drawing(words=True) as pyplot:
        yield pyplot.subplots(figsize=(WIDTH, height), layout="constrained")


def value_ticks(axis: Any, show: Callable[[float], str]) -> None:
    """Ticks in words; few of them, also on a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    if axis.get_scale() == "log":
        low, high = sorted(axis.get_view_interval())
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 200 * low else (1.0,)))
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(7, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: show(value)))


def made(figure: Any, labels: Labels) -> Figure:
    """The drawing as a part of a report."""
    svg = inline(plots.drawn(figure, "svg").decode("utf-8"), labels.name)
    return Figure(labels.name, labels.caption, labels.description, svg)
