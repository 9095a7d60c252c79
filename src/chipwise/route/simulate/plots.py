"""A replay as a picture: who held which chips of each pool when, and how busy the pools were over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from chipwise.errors import InputError
from chipwise.present import plots
from chipwise.route.simulate.measures import busy
from chipwise.route.simulate.outcome import SUCCEEDED, Outcome, PoolUse
from chipwise.units import DAY, HOUR

MOST_POLICIES = 4  # side by side before nothing can be read
AS_PIXELS = 2000  # boxes from which a vector picture grows into megabytes
BINS = 240  # of the curve of use: about one a pixel or two
NAMED = len(plots.CYCLE) - 2  # colors that are left for names, beside grey for the rest


def ready(target: Path, policies: int) -> None:
    """Refuse a picture that can't be drawn, before the work it would show."""
    plots.ready(target)
    if policies > MOST_POLICIES:
        raise InputError("plot", f"{policies} policies", f"at most {MOST_POLICIES} policies side by side")


def draw(outcomes: Sequence[Outcome], title: str, labels: Sequence[str], target: Path) -> None:
    """Write the picture atomically. `labels` are what jobs are colored by, in the order of the jobs."""
    begin = min(f.arrival for o in outcomes for f in o.fates)
    end = max([r.end for o in outcomes for r in o.runs], default=begin + 1.0)
    unit, name = (DAY, "days") if end - begin > 5 * DAY else (HOUR, "hours")
    colors = _colours(labels)
    pools = outcomes[0].pools
    used = {r.pool for o in outcomes for r in o.runs}
    heights = [*(1.6 + min(2.4, p.chips / 32) if p.name in used else 0.8 for p in pools), 2.0]
    with plots.drawing(words=True) as pyplot:
        figure, grid = pyplot.subplots(
            len(pools) + 1,
            len(outcomes),
            squeeze=False,
            sharex=True,
            sharey="row",
            figsize=(2.2 + 5.2 * len(outcomes), sum(heights) * 0.9),
            height_ratios=heights,
            layout="constrained",
        )
        for k, outcome in enumerate(outcomes):
            for i, pool in enumerate(pools):
                _gantt(grid[i][k], outcome, pool, labels, colors, begin, unit)
                if k == 0:
                    grid[i][k].set_ylabel(f"{pool.name}\nchips")
            _use(grid[-1][k], outcome, begin, end, unit)
            grid[0][k].set_title(outcome.policy)
            grid[-1][k].set_xlabel(f"{name} since the first arrival")
        grid[-1][0].set_ylabel("chips held, %")
        figure.suptitle(title)
        _legend(
            figure, colors, len(set(labels)) > len(colors), any(r.how != SUCCEEDED for o in outcomes for r in o.runs)
        )
        grid[-1][-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, frameon=False)
        plots.save(figure, target)


def boxes(outcome: Outcome, pool: PoolUse) -> list[tuple[int, int, int]]:
    """Which chips each run of a pool held: (run, first chip, chips), several where they don't lie side by side.

    Which chips a job gets is the backend's business; here the lowest that are free.
    """
    runs = sorted((r.start, i) for i, r in enumerate(outcome.runs) if r.pool == pool.name)
    until = np.full(pool.chips, -np.inf)
    out: list[tuple[int, int, int]] = []
    for start, i in runs:
        free = np.flatnonzero(until <= start + 1e-6)[: outcome.runs[i].chips]
        until[free] = outcome.runs[i].end
        breaks = np.flatnonzero(np.diff(free) > 1) + 1
        out += [(i, int(part[0]), len(part)) for part in np.split(free, breaks) if len(part)]
    return out


def _gantt(
    axes: Any,
    outcome: Outcome,
    pool: PoolUse,
    labels: Sequence[str],
    colors: dict[str, str],
    begin: float,
    unit: float,
) -> None:
    from matplotlib.collections import PolyCollection

    corners, fill, edge, wide = [], [], [], []
    for i, first, chips in boxes(outcome, pool):
        run = outcome.runs[i]
        left, right = (run.start - begin) / unit, (run.end - begin) / unit
        corners.append([(left, first), (right, first), (right, first + chips), (left, first + chips)])
        fill.append(colors.get(labels[run.job], plots.GREY))
        edge.append("white" if run.how == SUCCEEDED else plots.BLACK)  # a black edge: it had to stop
        wide.append(0.3 if run.how == SUCCEEDED else 0.9)
    if not corners:
        axes.text(0.5, 0.5, "no job here", transform=axes.transAxes, ha="center", va="center", color=plots.GREY)
    axes.add_collection(
        PolyCollection(corners, facecolors=fill, edgecolors=edge, linewidths=wide, rasterized=len(corners) > AS_PIXELS)
    )
    axes.set_ylim(0, pool.chips)
    axes.yaxis.get_major_locator().set_params(integer=True)


def _use(axes: Any, outcome: Outcome, begin: float, end: float, unit: float) -> None:
    edges = np.linspace(begin, end, BINS + 1)
    for k, pool in enumerate(outcome.pools):
        share = 100 * busy(outcome, pool.name, edges) / max(1, pool.chips)
        axes.step(
            (edges[:-1] - begin) / unit,
            share,
            where="post",
            label=pool.name,
            linewidth=1.1,
            color=plots.CYCLE[k % len(plots.CYCLE)],
        )
    axes.set_ylim(0, 105)
    axes.set_xlim(0, (end - begin) / unit)
    axes.grid(True, axis="y")


def _colours(labels: Sequence[str]) -> dict[str, str]:
    """The commonest names get a color, the others grey."""
    common = [name for name, _ in Counter(labels).most_common(NAMED)]
    return dict(zip(sorted(common), (c for c in plots.CYCLE if c not in (plots.GREY, plots.BLACK)), strict=False))


def _legend(figure: Any, colors: dict[str, str], others: bool, stopped: bool) -> None:
    from matplotlib.patches import Patch

    shown = [Patch(facecolor=color, label=name or "(no owner)") for name, color in colors.items()]
    if others:
        shown.append(Patch(facecolor=plots.GREY, label="others"))
    if stopped:
        shown.append(Patch(facecolor="white", edgecolor=plots.BLACK, label="black edge: stopped early"))
    figure.legend(handles=shown, loc="outside lower center", ncols=4, fontsize=7)
