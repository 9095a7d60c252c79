"""A fleet plan as a picture: chips by supply, and dollars by kind, over the periods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.present import plots

if TYPE_CHECKING:
    from chipwise.fleet.plan import FleetPlan

HATCHES = ("", "///", "...")


def draw(plan: FleetPlan, title: str, target: Path) -> None:
    """Write the picture, atomically."""
    names = [p.name for p in plan.problem.periods]
    with plots.drawing(words=True) as pyplot:
        figure, (chips, usd) = pyplot.subplots(2, 1, figsize=(9, 7.6), sharex=True, layout="constrained")
        _stacked(chips, _chips(plan), "chips, the most at once")
        _stacked(usd, _usd(plan), "US dollars paid, thousands")
        every = -(-len(names) // 12)
        usd.set_xticks(range(0, len(names), every), names[::every], rotation=35, ha="right")
        chips.set_title(f"{title}: ${plan.usd:,.0f}, proved within {plan.gap:.2%}")
        plots.save(figure, target)


def _chips(plan: FleetPlan) -> dict[str, list[float]]:
    pools = {s.id: plan.problem.pool(s.pool) for s in plan.problem.supplies}
    return {name: [float(units * pools[name].chips) for units in plan.units(name)] for name in plan.used()}


def _usd(plan: FleetPlan) -> dict[str, list[float]]:
    """Thousands of dollars paid by kind; what falls after the plan is left out."""
    out: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(plan.problem.periods))
    for cost in plan.costs:
        if cost.period is not None:
            out[cost.kind][cost.period] += cost.usd / 1e3
    return {kind: out[kind] for kind in plan.by_kind() if kind in out}


def _stacked(axes: Any, layers: Mapping[str, Sequence[float]], label: str) -> None:
    height: list[float] = []
    for k, (name, values) in enumerate(layers.items()):
        height = height or [0.0] * len(values)
        axes.bar(
            range(len(values)),
            values,
            bottom=height,
            width=0.8,
            label=name,
            edgecolor="white",
            linewidth=0.4,
            color=plots.CYCLE[k % len(plots.CYCLE)],
            hatch=HATCHES[k // len(plots.CYCLE) % len(HATCHES)],
        )
        height = [a + b for a, b in zip(height, values, strict=True)]
    axes.set_ylabel(label)
    axes.grid(True, axis="y")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
