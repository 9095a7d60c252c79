"""The front of a comparison: cost against time over the counts of its finalists, and which of them nothing beats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chipwise.compare.decision import rank
from chipwise.compare.terms import Terms
from chipwise.compare.training.comparer import TrainingComparer
from chipwise.compare.training.counts import keeps
from chipwise.compare.training.row import TrainingRow
from chipwise.predict.estimate import Estimate
from chipwise.present import plots
from chipwise.units import HOUR, format_money, format_seconds

FINALISTS = 3  # chips whose counts are shown
WIDE = 16  # counts are shown up to so many times more and fewer chips than a finalist has


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """So many chips of a finalist."""

    row: TrainingRow
    within: bool  # keeps the deadline and the budget
    best: bool  # no other point is both cheaper and faster
    pick: bool


def front(comparer: TrainingComparer, rows: Sequence[TrainingRow], pick: TrainingRow | None) -> tuple[FrontPoint, ...]:
    """The counts of the finalists, chip by chip and ascending: the pick's first, then the next best rows'."""
    points = [
        row for finalist in finalists(rows, pick, comparer.terms.objective) for row in _counts(comparer, finalist)
    ]
    best = {id(row) for row in undominated(points)}
    return tuple(
        FrontPoint(row, keeps(row, comparer.terms), id(row) in best, row.accelerators == (pick and pick.accelerators))
        for row in points
    )


def finalists(rows: Sequence[TrainingRow], pick: TrainingRow | None, objective: str) -> list[TrainingRow]:
    """The pick and the best others, one of a chip."""
    first = sorted(rows, key=lambda row: (row is not pick, rank(row, objective)))
    chips = {row.accelerators.chip.id: row for row in reversed(first)}
    return [row for row in first if chips[row.accelerators.chip.id] is row][:FINALISTS]


def undominated(rows: Sequence[TrainingRow]) -> list[TrainingRow]:
    """Rows with a price that no other is both cheaper and faster than."""
    best: list[TrainingRow] = []
    for row in sorted((r for r in rows if r.ondemand), key=lambda r: (r.prediction.duration.value, _usd(r).value)):
        if not best or _usd(row).value < _usd(best[-1]).value:
            best.append(row)
    return best


def _usd(row: TrainingRow) -> Estimate:
    assert row.ondemand is not None
    return row.ondemand.usd


def _counts(comparer: TrainingComparer, finalist: TrainingRow) -> list[TrainingRow]:
    """The finalist at every count near its own that an offer supplies and that holds the work."""
    mine = finalist.accelerators
    counts = {acc.count: acc for acc in comparer.buyable(mine.chip)} | {mine.count: mine}
    near = [counts[n] for n in sorted(counts) if mine.count / WIDE <= n <= mine.count * WIDE]
    tried = (finalist if acc == mine else comparer.at(acc) for acc in near)
    return [row for row in tried if isinstance(row, TrainingRow)]


def draw(points: Sequence[FrontPoint], name: str, terms: Terms, target: Path) -> None:
    """Cost against time on logarithmic axes, a line a chip, the pick and the limits marked; written atomically."""
    with plots.drawing(words=False) as pyplot:
        figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
        chips = list(dict.fromkeys(p.row.accelerators.chip.id for p in points))
        for chip, color in zip(chips, plots.CYCLE, strict=False):
            _line(axes, [p for p in points if p.row.accelerators.chip.id == chip and p.row.ondemand], chip, color)
        _limits(axes, terms)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("time to train (hours)")
        axes.set_ylabel("on demand (US dollars)")
        axes.set_title(f"{name}: cost against time over counts", loc="left")
        axes.grid(True)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        plots.save(figure, target)


def _line(axes: Any, points: Sequence[FrontPoint], chip: str, color: str) -> None:
    hours = [p.row.prediction.duration.value / HOUR for p in points]
    usd = [_usd(p.row) for p in points]
    axes.plot(hours, [e.value for e in usd], color=color, marker="o", markersize=4, label=chip)
    for p, x, e in zip(points, hours, usd, strict=True):
        axes.plot([x, x], [e.low, e.high], color=color, alpha=0.35, linewidth=1)
        count = f"{p.row.accelerators.count:,}"
        axes.annotate(count, (x, e.value), textcoords="offset points", xytext=(4, 4), fontsize=7)
        if p.pick:
            ring = {"marker": "o", "markersize": 11, "fillstyle": "none", "linestyle": "none"}
            axes.plot([x], [e.value], color=plots.VERMILION, label="pick", **ring)


def _limits(axes: Any, terms: Terms) -> None:
    if terms.deadline_s is not None:
        label = f"deadline {format_seconds(terms.deadline_s)}"
        axes.axvline(terms.deadline_s / HOUR, color=plots.GREY, linestyle="--", label=label)
    if terms.budget_usd is not None:
        label = f"budget {format_money(terms.budget_usd)}".replace("$", r"\$")
        axes.axhline(terms.budget_usd, color=plots.GREY, linestyle=":", label=label)
