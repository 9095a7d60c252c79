"""What a fleet plan costs, which limits cost money, and what changes when demand, prices or speeds do."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.fleet.plan import COSTS, Alternative, FleetAnswer, FleetPlan
from chipwise.fleet.tables import limits, sensitivity
from chipwise.present.blocks import Table
from chipwise.present.columns import table
from chipwise.present.numbers import dollars, percent
from chipwise.report import charts
from chipwise.report.parts import Figure, Part, Points, Prose, Section
from chipwise.units import format_money


def became(plan: FleetPlan, other: FleetPlan | None, why: str) -> str:
    """The cost of a changed plan beside that of the plan, in words."""
    if other is None:
        return f"no plan ({why})"
    change = other.usd / plan.usd - 1 if plan.usd else 0.0
    return f"{format_money(other.usd)} ({change * 100:+.0f} %)".replace("-", "−")


def costs_section(answer: FleetAnswer, plan: FleetPlan) -> Section:
    """What is paid when, and the plans side by side."""
    periods = plan.problem.periods
    kinds = list(plan.by_kind())
    layers = {
        kind: [sum(c.usd for c in plan.costs if c.kind == kind and c.period == t) for t in range(len(periods))]
        for kind in kinds
    }
    words = "; ".join(f"{kind} {dollars(usd)}" for kind, usd in plan.by_kind().items())
    parts: list[Part] = [
        charts.over_time(
            charts.Labels("fig-paid", "What is paid in each period, by kind", f"Over the plan: {words}"),
            [p.name for p in periods],
            {k: v for k, v in layers.items() if any(v)},
            "US dollars",
            charts.money,
        )
    ]
    found = [a for a in answer.alternatives if a.plan is not None]
    if len(found) > 1:
        parts.append(_alternatives(plan, found))
    names = [a.name for a in found] or ["the plan"]
    plans = [a.plan for a in found if a.plan] or [plan]
    every = [kind for kind in COSTS if any(kind in p.by_kind() for p in plans)]
    rows = [(kind, *(dollars(p.by_kind().get(kind, 0.0)) for p in plans)) for kind in every]
    rows += [
        ("total", *(format_money(p.usd) for p in plans)),
        ("proved gap", *(percent(p.gap, 2) for p in plans)),
        ("utilization", *(percent(p.utilization()) for p in plans)),
        ("most kW", *(f"{max(p.kw(), default=0.0):,.0f}" for p in plans)),
        ("t CO2", *(f"{sum(p.kg()) / 1e3:,.0f}" for p in plans)),
    ]
    parts.append(
        Table(
            ("kind", *names),
            tuple(rows),
            left=frozenset({"kind"}),
            strong=frozenset({len(every)}),
            title="Cost of the plans side by side",
        )
    )
    if plan.after():
        parts.append(
            Prose(
                f"{dollars(plan.after())} of the total fall after the plan's end: what commitments still "
                "ask for, less what purchases are then worth."
            )
        )
    why = tuple(f"{a.name}: {a.why}" for a in answer.alternatives if a.plan is None)
    if why:
        parts.append(Points("Plans that do not exist", why))
    return Section("costs", "What it costs", tuple(parts))


def _alternatives(plan: FleetPlan, found: Sequence[Alternative]) -> Figure:
    bars = [
        charts.Bar(a.name, a.plan.usd, min(a.plan.bound, a.plan.usd), a.plan.usd, a.plan.usd == plan.usd)
        for a in found
        if a.plan
    ]
    words = "; ".join(f"{b.label} {format_money(b.value)}" for b in bars)
    return charts.bars(
        charts.Labels(
            "fig-alternatives",
            "Cost of the plan with all chips allowed and with some left out; lines reach down to what no plan can "
            "undercut",
            f"Cost of the plans: {words}",
        ),
        bars,
        "US dollars over the plan",
    )


def limits_section(answer: FleetAnswer, plan: FleetPlan) -> Section:
    """What loosening one limit would save."""
    shadows = table(
        limits(plan.problem),
        answer.shadows,
        title="What loosening one limit would save",
        notes=("Each was solved again. Proved: the saving is larger than what the gaps leave open.",),
    )
    return Section("limits", "Limits that cost money", (shadows,) if answer.shadows else ())


def sensitivity_section(answer: FleetAnswer, plan: FleetPlan) -> Section:
    """The plan solved again with demand, prices or speeds changed."""
    solved = [s for s in answer.sensitivity if s.plan is not None]
    parts: list[Part] = []
    if solved:
        bars = [charts.Bar("as planned", plan.usd, plan.usd, plan.usd, True)]
        bars += [charts.Bar(s.name, s.plan.usd, s.plan.usd, s.plan.usd) for s in solved if s.plan]
        words = "; ".join(f"{b.label} {format_money(b.value)}" for b in bars)
        parts.append(
            charts.bars(
                charts.Labels(
                    "fig-sensitivity",
                    "Cost of the best plan when demand, prices or speeds differ",
                    f"Cost of the best plan: {words}",
                ),
                bars,
                "US dollars over the plan",
            )
        )
    if answer.sensitivity:
        parts.append(table(sensitivity(plan), answer.sensitivity, title="The plan solved again"))
    return Section("sensitivity", "Sensitivity", tuple(parts))
