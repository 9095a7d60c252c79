"""A fleet plan as plain dictionaries: what `-o json`, `-o csv` and `-o focus` print. Documented in docs/json.md."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from chipwise.cli.records import accelerators, estimate, head

if TYPE_CHECKING:
    from chipwise.fleet.advice import Advice
    from chipwise.fleet.options import DemandRequest, Placed
    from chipwise.fleet.plan import FleetAnswer, FleetPlan
    from chipwise.fleet.planned import Wanted
    from chipwise.prices.focus import Charge

PRICING = {
    "ondemand": "Standard",
    "spot": "Dynamic",
    "year1": "Committed",
    "year3": "Committed",
    "existing": "Committed",
    "owned": "Standard",
}
SERVICES = {"energy": "energy", "space, upkeep, staff, interest": "other", "capex": "compute"}


def record(asked: DemandRequest, found: FleetAnswer, wanted: Wanted) -> dict[str, Any]:
    """The whole answer."""
    p = asked.problem
    return {
        **head("fleet plan"),
        "name": asked.demand.name,
        "asked": {"gap": wanted.gap, "time_limit_seconds": wanted.time_limit, "cautious": wanted.cautious},
        "periods": [{"name": x.name, "hours": x.hours} for x in p.periods],
        "blocks": [{"name": b.name, "share": b.share} for b in p.blocks],
        "supplies": [_supply(asked, s.id) for s in p.supplies],
        "plan": _plan(asked, found.plan) if found.plan else None,
        "alternatives": [{"name": a.name, "why": a.why, "plan": _summary(a.plan)} for a in found.alternatives],
        "limits": [
            {
                "limit": s.limit,
                "period": None if s.period is None else p.periods[s.period].name,
                "more": s.amount,
                "unit": s.unit,
                "saves_usd": s.saves,
                "proved": s.proved,
                "words": s.words,
            }
            for s in found.shadows
        ],
        "sensitivity": [
            {"name": s.name, "why": s.why, "change": s.change, "plan": _summary(s.plan)} for s in found.sensitivity
        ],
        "relax": _relax(found),
        "advice": [_advice(a) for a in found.advice],
        "refused": [{"workload": w, "place": x, "reason": why} for w, x, why in dict.fromkeys(found.refused)],
        "assumptions": list(found.assumptions),
    }


def _advice(a: Advice) -> dict[str, Any]:
    n, s = a.network, a.storage
    least = n.suffices
    return {
        "workload": a.workload,
        "pool": a.pool,
        "accelerators": a.accelerators,
        "split": a.split,
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
            "suffices": least.id if least else None,
        },
        "storage": {
            "nodes": s.nodes,
            "checkpoint_bytes": s.checkpoint,
            "write_bytes_per_second": s.write,
            "read_bytes_per_second": s.read,
            "weights_bytes": s.weights,
            "load_bytes_per_second": s.load,
        },
        "words": list(a.words),
    }


def _supply(asked: DemandRequest, name: str) -> dict[str, Any]:
    p, o = asked.problem, asked.origins[name]
    s = p.supply(name)
    pool = p.pool(s.pool)
    return {
        "id": name,
        "chip": pool.chip,
        "family": pool.family,
        "chips_per_unit": pool.chips,
        "terms": s.terms,
        "cloud": o.cloud or None,
        "region": o.region,
        "instance": o.instance,
        "usd_per_unit_hour": s.usd_per_unit_hour,
        "capex_usd": s.capex,
        "usd_per_unit_period": s.usd_period,
        "lead_periods": s.lead,
        "date": o.date or None,
        "source": o.source,
        "stale": o.stale,
    }


def _summary(plan: FleetPlan | None) -> dict[str, Any] | None:
    if plan is None:
        return None
    return {
        "usd": plan.usd,
        "bound_usd": plan.bound,
        "gap": plan.gap,
        "timed_out": plan.timed_out,
        "costs": plan.by_kind(),
        "utilisation": plan.utilisation(),
        "kw": max(plan.kw()),
        "kg_co2": sum(plan.kg()),
        "mix": plan.mix(),
    }


def _plan(asked: DemandRequest, plan: FleetPlan) -> dict[str, Any]:
    names = [x.name for x in plan.problem.periods]
    blocks = [b.name for b in plan.problem.blocks]
    chips = {p.id: p.chips for p in plan.problem.pools}
    return {
        **(_summary(plan) or {}),
        "after_usd": plan.after(),
        "usd_by_period": list(plan.by_period()),
        "kw_by_period": list(plan.kw()),
        "kg_co2_by_period": list(plan.kg()),
        "holdings": [
            {
                "supply": h.supply,
                "period": names[h.period],
                "units": h.units,
                "chips": h.units * chips[plan.problem.supply(h.supply).pool],
                "started": h.started,
                "unit_hours": h.unit_hours,
                "usd": h.usd,
            }
            for h in plan.holdings
        ],
        "runs": [
            {
                "run": r.run,
                "period": names[r.period],
                "pool": r.option.pool,
                "supply": r.option.supply or None,
                "units": r.option.units,
                "spare": r.option.spare,
                "chips": r.option.units * chips[r.option.pool],
                "hours": r.hours,
            }
            for r in plan.running
        ],
        "services": [
            {
                "service": s.service,
                "period": names[s.period],
                "block": blocks[s.block],
                "pool": s.pool,
                "units": s.units,
                "chips": s.units * chips[s.pool],
            }
            for s in plan.serving
        ],
        "costs_by_period": [
            {"period": None if c.period is None else names[c.period], "kind": c.kind, "for": c.supply, "usd": c.usd}
            for c in plan.costs
        ],
        "usage": [
            {
                "pool": u.pool,
                "period": names[u.period],
                "held": u.held,
                "rented": u.rented,
                "used_unit_hours": u.used_hours,
                "paid_unit_hours": u.paid_hours,
                "utilisation": u.utilisation,
                "kw": u.kw,
                "kg_co2": u.kg,
            }
            for u in plan.usage
        ],
        "placed": [_placed(x) for x in asked.placed.values()],
    }


def _placed(x: Placed) -> dict[str, Any]:
    return {
        "workload": x.work,
        "accelerators": accelerators(x.accelerators),
        "layout": x.layout,
        "seconds" if x.prediction else "requests_per_second": estimate(x.estimate),
    }


def _relax(found: FleetAnswer) -> list[dict[str, Any]]:
    return [
        {"constraint": r.name, "amount": r.amount, "unit": r.unit, "words": r.words, "proved": r.proved}
        for r in found.relax
    ]


def rows(asked: DemandRequest, found: FleetAnswer) -> list[dict[str, Any]]:
    """A row for each supply and period of the plan, for CSV; what gives way where there is none."""
    plan = found.plan
    if plan is None:
        return _relax(found)
    out = []
    for h in plan.holdings:
        s = plan.problem.supply(h.supply)
        pool = plan.problem.pool(s.pool)
        out.append(
            {
                "period": plan.problem.periods[h.period].name,
                "supply": h.supply,
                "chip": pool.chip,
                "terms": s.terms,
                "cloud": asked.origins[h.supply].cloud,
                "region": pool.region,
                "units": h.units,
                "chips": h.units * pool.chips,
                "started": h.started,
                "unit_hours": h.unit_hours,
                "usd": h.usd,
            }
        )
    return out


def focus(asked: DemandRequest, found: FleetAnswer) -> list[dict[str, str]]:
    """Rows of a FOCUS 1.1 bill: what is paid in each period of the plan, by supply and kind of cost."""
    from chipwise.errors import Refusal
    from chipwise.prices.focus import focus_rows

    if found.plan is None:
        raise Refusal("no plan meets the demand", "; ".join(r.words for r in found.relax))
    plan = found.plan
    return focus_rows(
        [
            charge
            for c in plan.costs
            if c.period is not None and c.usd > 0
            for charge in [_charge(asked, plan, c.period, c.kind, c.supply, c.usd)]
        ]
    )


def _charge(asked: DemandRequest, plan: FleetPlan, t: int, kind: str, name: str, usd: float) -> Charge:
    from chipwise.prices.focus import CHIP_HOURS, Charge

    calendar = asked.demand.calendar
    begin, end = (_day(calendar.month((t + i) * calendar.each)) for i in (0, 1))
    supply = next((s for s in plan.problem.supplies if s.id == name), None)
    pool = plan.problem.pool(supply.pool if supply else name)
    origin = asked.origins.get(name)
    chip = supply is not None and kind in ("on demand", "spot", "commitments", "existing")
    hours = next((h.unit_hours for h in plan.holdings if h.supply == name and h.period == t), 0.0) * pool.chips
    quantity = hours if chip and hours else 1.0
    return Charge(
        asked.clouds[pool.id] or "on-premises",
        pool.region,
        origin.instance if origin and chip else "",
        pool.chip if chip else "",
        1.0 if chip else 0.0,
        f"{asked.demand.name}: {name}, {kind}",
        "Usage",
        PRICING[supply.terms] if supply and chip else "Standard",
        begin,
        end,
        quantity,
        usd / quantity,
        usd,
        CHIP_HOURS if chip else "Each",
        usd,
        SERVICES.get(kind, "compute"),
        {"plan": asked.demand.name, "kind": kind},
    )


def _day(month: str) -> date:
    return date(int(month[:4]), int(month[5:7]), 1)
