"""A fleet plan as every face shows it: its record, its rows, and its text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.fleet.advice import Advice
from chipwise.fleet.plan import FleetAnswer, FleetPlan
from chipwise.fleet.request import DemandRequest
from chipwise.fleet.tables import (
    ALTERNATIVES,
    REFUSED,
    RELAX,
    WORK,
    Row,
    costs,
    holdings,
    limits,
    money,
    placed,
    runs,
    sensitivity,
    services,
    split_record,
    summary,
    supplies,
    usage,
)
from chipwise.present.blocks import Block, Table, Text
from chipwise.present.columns import flat, table
from chipwise.present.columns import record as row_record
from chipwise.prices import STALE_DAYS
from chipwise.units import format_seconds

if TYPE_CHECKING:
    from chipwise.fleet.planned import PlannedFleet

MOST_COLUMNS = 12  # periods, or groups of them, beside each other


def record(fleet: PlannedFleet) -> dict[str, Any]:
    """The plan as JSON has it."""
    request, answer, options = fleet.request, fleet.answer, fleet.options
    p = request.problem
    return {
        "name": fleet.name,
        "options": {"gap": options.gap, "time_limit_seconds": options.time_limit, "cautious": options.cautious},
        "periods": [{"name": x.name, "hours": x.hours} for x in p.periods],
        "blocks": [{"name": b.name, "share": b.share} for b in p.blocks],
        "supplies": [row_record(supplies(request), s.id) for s in p.supplies],
        "plan": _plan(request, answer.plan) if answer.plan else None,
        "alternatives": [row_record(ALTERNATIVES, a) for a in answer.alternatives],
        "limits": [row_record(limits(p), s) for s in answer.shadows],
        "sensitivity": [row_record(sensitivity(answer.plan), s) for s in answer.sensitivity],
        "relax": [row_record(RELAX, r) for r in answer.relax],
        "advice": [_advice(a) for a in answer.advice],
        "refused": [row_record(REFUSED, r) for r in dict.fromkeys(answer.refused)],
        "assumptions": answer.assumptions,
    }


def _plan(request: DemandRequest, plan: FleetPlan) -> dict[str, Any]:
    p = plan.problem
    return {
        **(summary(plan) or {}),
        "after_usd": plan.after(),
        "usd_by_period": plan.by_period(),
        "kw_by_period": plan.kw(),
        "kg_co2_by_period": plan.kg(),
        "holdings": [row_record(holdings(p, request.origins), h) for h in plan.holdings],
        "runs": [row_record(runs(p), r) for r in plan.running],
        "services": [row_record(services(p), s) for s in plan.serving],
        "costs_by_period": [row_record(costs(p), c) for c in plan.costs],
        "usage": [row_record(usage(p), u) for u in plan.usage],
        "placed": [placed(x) for x in request.placed.values()],
    }


def _advice(a: Advice) -> dict[str, Any]:
    n, s = a.network, a.storage
    return {
        "workload": a.workload,
        "pool": a.pool,
        "accelerators": a.accelerators,
        **split_record(a.split),
        "network": {
            "crosses": n.crosses,
            "carries": n.carries,
            "node_chips": n.node_chips,
            "needed_bytes_per_second": n.needed,
            "has_bytes_per_second": n.has,
            "name": n.network,
            "source": n.source,
            "slower": n.slower,
            "enough": n.enough,
            "suffices": n.suffices.id if n.suffices else None,
        },
        "storage": {
            "nodes": s.nodes,
            "checkpoint_bytes": s.checkpoint,
            "write_bytes_per_second": s.write,
            "read_bytes_per_second": s.read,
            "weights_bytes": s.weights,
            "load_bytes_per_second": s.load,
        },
        "words": a.words,
    }


def flat_rows(fleet: PlannedFleet) -> list[dict[str, Any]]:
    """A row for each supply and period of the plan; what gives way where there is none."""
    if fleet.plan is None:
        return [flat(RELAX, r) for r in fleet.answer.relax]
    return [flat(holdings(fleet.plan.problem, fleet.request.origins), h) for h in fleet.plan.holdings]


def blocks(fleet: PlannedFleet) -> list[Block]:
    """The plan for people."""
    answer, plan = fleet.answer, fleet.plan
    if plan is None:
        return [*_infeasible(fleet), *_refused(answer), *_listed("Assumptions", answer.assumptions)]
    by = sensitivity(plan)
    return [
        *_head(fleet, plan),
        *_holdings(fleet.request, plan),
        table(WORK, work_rows(fleet.request, plan), title="What runs where"),
        *_costs(plan),
        _use(plan),
        table(ALTERNATIVES, answer.alternatives, strong=_last(answer), title="One family or both"),
        *(
            _listed("What limits it", [s.words for s in answer.shadows])
            or _listed("What limits it", ["no limit binds"])
        ),
        *([table(by, answer.sensitivity, title="Sensitivity")] if answer.sensitivity else []),
        *_interconnect(answer),
        *_refused(answer),
        *_listed("Assumptions", answer.assumptions),
    ]


def _listed(title: str, lines: Any) -> list[Block]:
    return [Text(title, heading=True), *(Text(f"- {line}") for line in lines)] if lines else []


def _last(answer: FleetAnswer) -> frozenset[int]:
    return frozenset({len(answer.alternatives) - 1})


def _head(fleet: PlannedFleet, plan: FleetPlan) -> list[Block]:
    periods = plan.problem.periods
    late = f" (the time limit of {format_seconds(fleet.options.time_limit)} was reached)" if plan.timed_out else ""
    return [
        Text(f"{fleet.name}: {periods[0].name} to {periods[-1].name}, {money(plan.usd)}"),
        Text(f"Proved: no plan is cheaper by more than {plan.gap:.2%}{late}."),
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


def _holdings(request: DemandRequest, plan: FleetPlan) -> list[Block]:
    groups, p = _groups(plan), plan.problem
    rows = []
    for name in plan.used():
        chips = p.pool(p.supply(name).pool).chips
        units = plan.units(name)
        stale = "*" if request.origins[name].stale else ""
        rows.append([name + stale, str(chips), *(f"{max(units[t] for t in g) * chips:,}" for _, g in groups)])
    headers = ["supply", "unit", *(name for name, _ in groups)]
    title = "Chips held or rented, the most at once" + ("" if len(groups[0][1]) == 1 else " in those months")
    out: list[Block] = [Table(headers, rows, frozenset({"supply"}), title=title)]
    started = [
        f"{h.started * p.pool(p.supply(h.supply).pool).chips:,} chips of {h.supply} in {p.periods[h.period].name}"
        for h in plan.holdings
        if h.started
    ]
    if started:
        out.append(Text(f"Ordered: {'; '.join(started)}."))
    if any(request.origins[name].stale for name in plan.used()):
        out.append(Text(f"*: a price older than {STALE_DAYS} days."))
    return out


def work_rows(request: DemandRequest, plan: FleetPlan) -> list[Row]:
    """What runs where: training runs, then services."""
    p, rows = plan.problem, []
    for work in dict.fromkeys(request.works.values()):
        mine = [r for r in plan.running if request.works[r.run] == work]
        for option in dict.fromkeys(r.option for r in mine):
            at = sorted((r for r in mine if r.option == option), key=lambda r: r.period)
            pool = p.pool(option.pool)
            chips = option.units * pool.chips
            times = len({r.run for r in at})
            rows.append(
                Row(
                    f"{work} ({times} times)" if times > 1 else work,
                    option.supply or f"{option.pool} (held)",
                    f"{chips:,}",
                    _span(plan, at[0].period, at[-1].period),
                    f"{sum(r.hours for r in at):,.0f} h",
                    request.placed.get((work, pool.chip, chips)),
                )
            )
    for service in p.services:
        mine_s = [s for s in plan.serving if s.service == service.name]
        for name in dict.fromkeys(s.pool for s in mine_s):
            pool = p.pool(name)
            at_s = [s for s in mine_s if s.pool == name]
            low, high = min(s.units for s in at_s) * pool.chips, max(s.units for s in at_s) * pool.chips
            rows.append(
                Row(
                    service.name,
                    name,
                    f"{low:,}" if low == high else f"{low:,} to {high:,}",
                    _span(plan, min(s.period for s in at_s), max(s.period for s in at_s)),
                    "",
                    request.placed.get((service.name, pool.chip, pool.chips)),
                )
            )
    return rows


def _span(plan: FleetPlan, first: int, last: int) -> str:
    names = [plan.problem.periods[t].name for t in (first, last)]
    return names[0] if first == last else " to ".join(names)


def _costs(plan: FleetPlan) -> list[Block]:
    rows = [[kind, money(usd), f"{usd / plan.usd:.0%}"] for kind, usd in plan.by_kind().items()]
    rows.append(["total", money(plan.usd), ""])
    last = frozenset({len(rows) - 1})
    out: list[Block] = [Table(["cost", "USD", "share"], rows, frozenset({"cost"}), last, title="What it costs")]
    if plan.after():
        out.append(
            Text(
                f"Of that {money(plan.after())} falls after the plan: what commitments still ask for, less what "
                "servers are worth then."
            )
        )
    return out


def _use(plan: FleetPlan) -> Text:
    kw = plan.kw()
    top = max(range(len(kw)), key=lambda t: kw[t])
    return Text(
        f"Utilization {plan.utilization():.0%} of the chip-hours paid for; at most {kw[top]:,.0f} kW "
        f"({plan.problem.periods[top].name}); {sum(plan.kg()) / 1000:,.0f} t of CO2."
    )


def _interconnect(answer: FleetAnswer) -> list[Block]:
    out: list[Block] = [Text("Interconnect and storage", heading=True)]
    for advice in answer.advice:
        out.append(Text(f"{advice.workload} on {advice.pool}, {advice.accelerators}, {advice.split}:"))
        out += [Text(f"- {words}") for words in advice.words]
    return out


def _infeasible(fleet: PlannedFleet) -> list[Block]:
    relax = fleet.answer.relax
    late = "The time ran out: fewer may do than these constraints"
    fewest = "The fewest constraints" if all(r.proved for r in relax) else late
    return [
        Text(f"{fleet.name}: no plan meets the demand"),
        Text(f"{fewest} that would have to give way ({len(relax)}):"),
        *(Text(f"- {r.words}") for r in relax),
    ]


def _refused(answer: FleetAnswer) -> list[Block]:
    return [table(REFUSED, list(dict.fromkeys(answer.refused)), title="Left out")] if answer.refused else []
