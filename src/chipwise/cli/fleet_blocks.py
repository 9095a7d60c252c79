"""A fleet plan for people: what to have when, what runs where, what it costs and what that rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.present.blocks import Block, Table, Text
from chipwise.units import format_money, format_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chipwise.fleet.options import DemandRequest
    from chipwise.fleet.plan import FleetAnswer, FleetPlan
    from chipwise.fleet.planned import Wanted

MOST_COLUMNS = 12


def money(usd: float) -> str:
    """Dollars that may be negative."""
    return f"-{format_money(-usd)}" if usd < 0 else format_money(usd)


def blocks(asked: DemandRequest, found: FleetAnswer, wanted: Wanted) -> list[Block]:
    """The whole answer."""
    if found.plan is None:
        return [*_infeasible(asked, found), *_refused(found), *_assumptions(found)]
    plan = found.plan
    return [
        *_head(asked, plan, wanted),
        *_holdings(asked, plan),
        *_work(asked, plan),
        *_costs(plan),
        *_use(plan),
        *_alternatives(found),
        *_limits(found),
        *_sensitivity(found),
        *_advice(found),
        *_refused(found),
        *_assumptions(found),
    ]


def _head(asked: DemandRequest, plan: FleetPlan, wanted: Wanted) -> list[Block]:
    periods = plan.problem.periods
    proved = f"no plan is cheaper by more than {plan.gap:.2%}"
    late = f" (the time limit of {format_seconds(wanted.time_limit)} was reached)" if plan.timed_out else ""
    return [
        Text(f"{asked.demand.name}: {periods[0].name} to {periods[-1].name}, {money(plan.usd)}"),
        Text(f"Proved: {proved}{late}."),
    ]


def _groups(plan: FleetPlan) -> list[tuple[str, range]]:
    """Columns of the table: periods, or several together where there are many."""
    periods = plan.problem.periods
    size = -(-len(periods) // MOST_COLUMNS)
    if size == 2:
        size = 3
    groups = [range(t, min(t + size, len(periods))) for t in range(0, len(periods), size)]
    return [
        (periods[g[0]].name if size == 1 else f"{periods[g[0]].name}..{periods[g[-1]].name[5:]}", g) for g in groups
    ]


def _holdings(asked: DemandRequest, plan: FleetPlan) -> list[Block]:
    groups = _groups(plan)
    rows = []
    for name in plan.used():
        supply = plan.problem.supply(name)
        chips = plan.problem.pool(supply.pool).chips
        units = plan.units(name)
        stale = "*" if asked.origins[name].stale else ""
        rows.append([name + stale, str(chips), *(f"{max(units[t] for t in g) * chips:,}" for _, g in groups)])
    headers = ["supply", "unit", *(name for name, _ in groups)]
    title = "Chips held or rented, the most at once" + ("" if len(groups[0][1]) == 1 else " in those months")
    out: list[Block] = [Table(headers, rows, frozenset({"supply"}), title=title)]
    started = [
        f"{h.started * plan.problem.pool(plan.problem.supply(h.supply).pool).chips:,} chips of {h.supply} "
        f"in {plan.problem.periods[h.period].name}"
        for h in plan.holdings
        if h.started
    ]
    if started:
        out.append(Text(f"Ordered: {'; '.join(started)}."))
    if any(asked.origins[name].stale for name in plan.used()):
        out.append(Text("*: a price older than 90 days."))
    return out


def _work(asked: DemandRequest, plan: FleetPlan) -> list[Block]:
    rows: list[list[str]] = []
    periods = plan.problem.periods
    for work in dict.fromkeys(asked.works.values()):
        mine = [r for r in plan.running if asked.works[r.run] == work]
        for option in dict.fromkeys(r.option for r in mine):
            at = sorted((r for r in mine if r.option == option), key=lambda r: r.period)
            pool = plan.problem.pool(option.pool)
            chips = option.units * pool.chips
            key = asked.placed.get((work, pool.chip, chips))
            times = len({r.run for r in at})
            span = periods[at[0].period].name
            if at[-1].period != at[0].period:
                span += f" to {periods[at[-1].period].name}"
            name = f"{work} ({times} times)" if times > 1 else work
            rows.append(
                [
                    name,
                    option.supply or f"{option.pool} (held)",
                    f"{chips:,}",
                    span,
                    f"{sum(r.hours for r in at):,.0f} h",
                    key.layout if key else "",
                    key.estimate.evidence if key else "",
                ]
            )
    for service in plan.problem.services:
        mine_s = [s for s in plan.serving if s.service == service.name]
        for name in dict.fromkeys(s.pool for s in mine_s):
            pool = plan.problem.pool(name)
            at_s = [s for s in mine_s if s.pool == name]
            first, last = min(s.period for s in at_s), max(s.period for s in at_s)
            low, high = min(s.units for s in at_s) * pool.chips, max(s.units for s in at_s) * pool.chips
            placed = asked.placed.get((service.name, pool.chip, 0))
            rows.append(
                [
                    service.name,
                    name,
                    f"{low:,}" if low == high else f"{low:,} to {high:,}",
                    periods[first].name if first == last else f"{periods[first].name} to {periods[last].name}",
                    "",
                    placed.layout if placed else "",
                    placed.estimate.evidence if placed else "",
                ]
            )
    headers = ["workload", "runs on", "chips", "when", "hours", "layout", "evidence"]
    return [
        Table(
            headers,
            rows,
            frozenset({"workload", "runs on", "when", "layout", "evidence"}),
            title="What runs where",
            drop=("evidence", "layout"),
        )
    ]


def _costs(plan: FleetPlan) -> list[Block]:
    rows = [[kind, money(usd), f"{usd / plan.usd:.0%}"] for kind, usd in plan.by_kind().items()]
    rows.append(["total", money(plan.usd), ""])
    out: list[Block] = [
        Table(["cost", "USD", "share"], rows, frozenset({"cost"}), frozenset({len(rows) - 1}), title="What it costs")
    ]
    if plan.after():
        out.append(
            Text(
                f"Of that {money(plan.after())} falls after the plan: what commitments still ask for, less "
                "what servers are worth then."
            )
        )
    return out


def _use(plan: FleetPlan) -> list[Block]:
    periods = plan.problem.periods
    kw = plan.kw()
    top = max(range(len(kw)), key=lambda t: kw[t])
    return [
        Text(
            f"Utilisation {plan.utilisation():.0%} of the chip-hours paid for; at most {kw[top]:,.0f} kW "
            f"({periods[top].name}); {sum(plan.kg()) / 1000:,.0f} t of CO2."
        )
    ]


def _alternatives(found: FleetAnswer) -> list[Block]:
    rows = []
    for other in found.alternatives:
        p = other.plan
        if p is None:
            rows.append([other.name, "none", "", "", "", "", other.why])
            continue
        mix = ", ".join(
            f"{chip} {share:.0%}"
            for chip, share in sorted(p.mix().items(), key=lambda pair: -pair[1])
            if share >= 0.005
        )
        rows.append(
            [
                other.name,
                money(p.usd),
                f"{p.gap:.2%}",
                f"{p.utilisation():.0%}",
                f"{max(p.kw()):,.0f}",
                f"{sum(p.kg()) / 1000:,.0f}",
                mix,
            ]
        )
    return [
        Table(
            ["plan", "USD", "gap", "used", "kW", "t CO2", "chip-hours"],
            rows,
            frozenset({"plan", "chip-hours"}),
            frozenset({len(rows) - 1}),
            title="One family or both",
        )
    ]


def _limits(found: FleetAnswer) -> list[Block]:
    if not found.shadows:
        return [Text("What limits it", heading=True), Text("No limit binds.")]
    return [Text("What limits it", heading=True), *(Text(f"- {s.words}") for s in found.shadows)]


def _sensitivity(found: FleetAnswer) -> list[Block]:
    if not found.sensitivity or found.plan is None:
        return []
    rows = []
    for s in found.sensitivity:
        if s.plan is None:
            rows.append([s.name, "none", "", s.why])
        else:
            rows.append([s.name, money(s.plan.usd), f"{s.plan.usd / found.plan.usd - 1:+.0%}", s.change])
    headers = ["if", "USD", "change", "what changes in the mix"]
    return [Table(headers, rows, frozenset({headers[0], headers[-1]}), title="Sensitivity")]


def _advice(found: FleetAnswer) -> list[Block]:
    out: list[Block] = [Text("Interconnect and storage", heading=True)]
    for each in found.advice:
        out.append(Text(f"{each.workload} on {each.pool}, {each.accelerators}, {each.split}:"))
        out += [Text(f"- {words}") for words in each.words]
    return out


def _infeasible(asked: DemandRequest, found: FleetAnswer) -> list[Block]:
    many = len(found.relax)
    fewest = (
        "The fewest constraints"
        if all(r.proved for r in found.relax)
        else ("The time ran out: fewer may do than these constraints")
    )
    return [
        Text(f"{asked.demand.name}: no plan meets the demand"),
        Text(f"{fewest} that would have to give way ({many}):"),
        *(Text(f"- {r.words}") for r in found.relax),
    ]


def _refused(found: FleetAnswer) -> list[Block]:
    if not found.refused:
        return []
    rows: Sequence[Sequence[str]] = [list(r) for r in dict.fromkeys(found.refused)]
    return [
        Table(
            ["workload", "chip or offer", "why"],
            rows,
            frozenset({"workload", "chip or offer", "why"}),
            title="Left out",
        )
    ]


def _assumptions(found: FleetAnswer) -> list[Block]:
    return [Text("Assumptions", heading=True), *(Text(f"- {a}") for a in found.assumptions)]
