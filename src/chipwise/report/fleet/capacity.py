"""Chips of a fleet plan over time: what to order, what is held, and what is at work."""

from __future__ import annotations

from chipwise.fleet.plan import FleetPlan
from chipwise.fleet.problem import Pool
from chipwise.fleet.tables import PRICING, holdings
from chipwise.present.columns import Column, table
from chipwise.present.numbers import dollars, number, percent
from chipwise.report import charts
from chipwise.report.parts import Figure, Part, Section

MOST_LAYERS = 8  # supplies with a color of their own


def chips(plan: FleetPlan, supply: str) -> list[float]:
    """Chips of a supply in each period, the most at once."""
    each = plan.problem.pool(plan.problem.supply(supply).pool).chips
    return [float(units * each) for units in plan.units(supply)]


def layers(plan: FleetPlan) -> dict[str, list[float]]:
    """Chips by supply and period; the small ones together."""
    used = sorted(plan.used(), key=lambda s: -sum(chips(plan, s)))
    out: dict[str, list[float]] = {}
    for i, supply in enumerate(used):
        label = supply if i < MOST_LAYERS - 1 or len(used) == MOST_LAYERS else "others"
        before = out.get(label, [0.0] * len(plan.problem.periods))
        out[label] = [a + b for a, b in zip(before, chips(plan, supply), strict=True)]
    return out


def by_period(plan: FleetPlan) -> Figure:
    """Chips by supply over time."""
    names, by_supply = [p.name for p in plan.problem.periods], layers(plan)
    words = "; ".join(
        f"{label}: {number(v[0])} at first, {number(max(v))} at most, {number(v[-1])} at last"
        for label, v in by_supply.items()
    )
    return charts.over_time(
        charts.Labels(
            "fig-plan", "Chips by period and pricing model, the most at once", f"Chips held and rented: {words}"
        ),
        names,
        by_supply,
        "chips",
        number,
    )


def plan_section(plan: FleetPlan) -> Section:
    """What to order, what is used, and what is held in each period."""
    ordered = sorted((h for h in plan.holdings if h.started), key=lambda h: (h.period, h.supply))
    used = sorted(plan.used(), key=lambda s: -sum(chips(plan, s)))
    parts: list[Part] = [_capacity(plan)]
    if ordered:
        parts.append(table(holdings(plan.problem), ordered, title="What to sign or order, and when"))
    parts.append(table(_supplies(plan), used, title="What the plan uses"))
    parts.append(
        table(
            _periods(plan),
            range(len(plan.problem.periods)),
            title="Chips by period, the most at once",
            notes=("Used: the share of the chip-hours paid for that are at work.",),
        )
    )
    return Section("plan", "Fleet plan", tuple(parts))


def _supplies(plan: FleetPlan) -> list[Column[str]]:
    """What is used of a supply, by its name."""

    def pool(name: str) -> Pool:
        return plan.problem.pool(plan.problem.supply(name).pool)

    def pricing(name: str) -> str:
        return PRICING.get(kind := plan.problem.supply(name).pricing, kind)

    def hours(name: str) -> float:
        return sum(h.unit_hours for h in plan.holdings if h.supply == name) * pool(name).chips

    def paid(name: str) -> float:
        return sum(c.usd for c in plan.costs if c.supply == name and c.period is not None)

    return [
        Column("", None, "supply", lambda name: name, words=True),
        Column("", None, "chip", lambda name: pool(name).chip, words=True),
        Column("", None, "pricing", pricing, words=True),
        Column("", None, "chips at most", lambda name: f"{max(chips(plan, name)):,.0f}"),
        Column("", None, "chip-hours", lambda name: f"{hours(name):,.0f}"),
        Column("", None, "paid", lambda name: dollars(paid(name))),
    ]


def _periods(plan: FleetPlan) -> list[Column[int]]:
    """What is held and paid in a period, by its place."""

    def held(supply: str, chips: list[float]) -> Column[int]:
        return Column("", None, supply, lambda t: f"{chips[t]:,.0f}")

    usd, kw = plan.by_period(), plan.kw()
    return [
        Column("", None, "period", lambda t: plan.problem.periods[t].name, words=True),
        *(held(supply, chips) for supply, chips in layers(plan).items()),
        Column("", None, "paid", lambda t: dollars(usd[t])),
        Column("", None, "used", lambda t: _use(plan, t)),
        Column("", None, "kW", lambda t: f"{kw[t]:,.0f}"),
    ]


def _use(plan: FleetPlan, period: int) -> str:
    chips = {p.id: p.chips for p in plan.problem.pools}
    here = [u for u in plan.usage if u.period == period]
    paid = sum(u.paid_hours * chips[u.pool] for u in here)
    return percent(sum(u.used_hours * chips[u.pool] for u in here) / paid) if paid else "–"


def _capacity(plan: FleetPlan) -> Figure:
    """Chips paid for by kind of chip, and those at work."""
    pools, periods = {p.id: p for p in plan.problem.pools}, plan.problem.periods
    layers: dict[str, list[float]] = {}
    work = [0.0] * len(periods)
    for u in plan.usage:
        pool, hours = pools[u.pool], periods[u.period].hours
        layers.setdefault(f"{pool.chip} paid for", [0.0] * len(periods))[u.period] += u.paid_hours * pool.chips / hours
        work[u.period] += u.used_hours * pool.chips / hours
    layers = dict(sorted(layers.items(), key=lambda pair: -sum(pair[1])))
    words = "; ".join(
        f"{p.name}: {number(work[t])} of {number(sum(v[t] for v in layers.values()))} chips at work"
        for t, p in enumerate(periods)
    )
    return charts.over_time(
        charts.Labels(
            "fig-capacity", "Demand against capacity: chips paid for and chips at work, means over each period", words
        ),
        [p.name for p in periods],
        layers,
        "chips",
        number,
        {"at work": work},
    )
