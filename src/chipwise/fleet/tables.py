"""The columns of a fleet plan, each declared once: terminal, JSON, CSV, HTML and the report are drawn from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chipwise.fleet.plan import (
    COSTS,
    Alternative,
    Cost,
    FleetPlan,
    Holding,
    Relaxation,
    Running,
    Sensitivity,
    Serving,
    Shadow,
)
from chipwise.fleet.plan import Usage as PoolUsage
from chipwise.fleet.problem import Problem
from chipwise.fleet.sizing import Placed
from chipwise.predict.model.layouts import Layout
from chipwise.present.blocks import Cell, Link
from chipwise.present.columns import Column, record
from chipwise.present.numbers import number, spread
from chipwise.serving.split import Split
from chipwise.units import format_money, format_seconds

if TYPE_CHECKING:
    from chipwise.fleet.request import DemandRequest
    from chipwise.fleet.units import Origin

PRICING = {
    "ondemand": "on demand",
    "spot": "spot",
    "year1": "1-year commitment",
    "year3": "3-year commitment",
    "owned": "bought",
    "existing": "there already",
}


def money(usd: float) -> str:
    """Dollars that may be negative."""
    return f"-{format_money(-usd)}" if usd < 0 else format_money(usd)


def supplies(request: DemandRequest) -> list[Column[str]]:
    """What can be had, by the name of a supply."""
    problem, origins = request.problem, request.origins
    return [
        Column("id", lambda s: s, "supply", words=True, help="name of the supply"),
        Column("chip", lambda s: problem.pool(problem.supply(s).pool).chip, help="its name in the catalog"),
        Column("family", lambda s: problem.pool(problem.supply(s).pool).family, help="gpu or tpu"),
        Column(
            "chips_per_unit",
            lambda s: problem.pool(problem.supply(s).pool).chips,
            help="in one instance, server or slice",
        ),
        Column("pricing", lambda s: problem.supply(s).pricing, help="ondemand, spot, year1, year3, owned, existing"),
        Column(
            "cloud",
            lambda s: origins[s].cloud or None,
            "cloud",
            lambda s: origins[s].cloud or "own",
            words=True,
            help="who rents it out; null: nobody, it is one's own",
        ),
        Column("region", lambda s: origins[s].region, "region", lambda s: origins[s].region or "–", words=True),
        Column("instance", lambda s: origins[s].instance, "instance", lambda s: origins[s].instance or "–", words=True),
        Column("usd_per_unit_hour", lambda s: problem.supply(s).usd_per_unit_hour, help="of one unit", unit="USD"),
        Column("capex_usd", lambda s: problem.supply(s).capex, help="of one unit, where it is bought", unit="USD"),
        Column(
            "usd_per_unit_period",
            lambda s: problem.supply(s).usd_period,
            help="of one unit held, whether used or not",
            unit="USD",
        ),
        Column(
            "lead_periods", lambda s: problem.supply(s).lead, help="from the order to the first use", unit="periods"
        ),
        Column("", None, "$/chip-h", lambda s: _price(request, s)),
        Column(
            "date",
            lambda s: origins[s].date or None,
            "dated",
            lambda s: _dated(request, s),
            words=True,
            help="of the price",
        ),
        Column(
            "source",
            lambda s: origins[s].source,
            "source",
            lambda s: _link(origins[s].source),
            words=True,
            help="where the price comes from",
        ),
        Column("stale", lambda s: origins[s].stale, help="a price older than 90 days"),
    ]


def _link(source: str) -> Cell:
    return Link(source, source)


def _price(request: DemandRequest, name: str) -> str:
    origin, supply = request.origins[name], request.problem.supply(name)
    if origin.usd_per_chip_hour:
        return f"${origin.usd_per_chip_hour:.2f}"
    return f"{format_money(supply.capex)} a server" if supply.capex else "–"


def _dated(request: DemandRequest, name: str) -> str:
    origin = request.origins[name]
    return f"{origin.date} stale" if origin.stale else origin.date or "–"


def holdings(p: Problem, origins: Mapping[str, Origin] | None = None) -> list[Column[Holding]]:
    """Units of one supply in one period; `origins` say whose they are."""
    clouds = {name: origin.cloud or None for name, origin in (origins or {}).items()}

    def chips(h: Holding) -> int:
        return p.pool(p.supply(h.supply).pool).chips

    return [
        Column("period", lambda h: p.periods[h.period].name, "period", words=True, help="month or quarter"),
        Column("supply", lambda h: h.supply, "supply", words=True, help="name of the supply"),
        Column("chip", lambda h: p.pool(p.supply(h.supply).pool).chip, help="its name in the catalog"),
        Column("pricing", lambda h: p.supply(h.supply).pricing, help="as of the supply"),
        Column(
            "cloud",
            lambda h: clouds[h.supply],
            help="who rents it out; null: nobody, it is one's own",
        ),
        Column("region", lambda h: p.pool(p.supply(h.supply).pool).region),
        Column("units", lambda h: h.units, help="at once"),
        Column("chips", lambda h: h.units * chips(h), help="at once", unit="chips"),
        Column(
            "started",
            lambda h: h.started,
            "units",
            lambda h: f"{h.started:,}",
            help="ordered or committed",
            unit="units",
        ),
        Column("", None, "chips", lambda h: f"{h.started * chips(h):,}"),
        Column("unit_hours", lambda h: h.unit_hours, help="paid for", unit="h"),
        Column("usd", lambda h: h.usd, help="paid in this period", unit="USD"),
    ]


def runs(p: Problem) -> list[Column[Running]]:
    """Hours of a training run in one period."""
    return [
        Column("run", lambda r: r.run, "run", words=True, help="name of the training run"),
        Column("", None, "chip", lambda r: p.pool(r.option.pool).chip, words=True),
        Column("period", lambda r: p.periods[r.period].name, "period", words=True, help="month or quarter"),
        Column("pool", lambda r: r.option.pool, help="chips of one kind in one place"),
        Column(
            "supply",
            lambda r: r.option.supply or None,
            "on",
            lambda r: r.option.supply or f"held units of {r.option.pool}",
            words=True,
        ),
        Column("units", lambda r: r.option.units, "units", lambda r: f"{r.option.units:,}", help="at work at once"),
        Column("spare", lambda r: r.option.spare, help="units beside them, for failures"),
        Column("chips", lambda r: r.option.units * p.pool(r.option.pool).chips, help="of those units"),
        Column(
            "hours", lambda r: r.hours, "hours", lambda r: number(r.hours), help="of the run in that period", unit="h"
        ),
    ]


def services(p: Problem) -> list[Column[Serving]]:
    """Units that answer for a service during one block of a period."""
    return [
        Column("service", lambda s: s.service, help="name of the service"),
        Column("period", lambda s: p.periods[s.period].name, help="month or quarter"),
        Column("block", lambda s: p.blocks[s.block].name, help="hours of the day that are alike"),
        Column("pool", lambda s: s.pool, help="chips of one kind in one place"),
        Column("units", lambda s: s.units, help="that answer"),
        Column("chips", lambda s: s.units * p.pool(s.pool).chips, help="of those units"),
    ]


def costs(p: Problem) -> list[Column[Cost]]:
    """Dollars of one kind in one period."""
    return [
        Column("period", lambda c: None if c.period is None else p.periods[c.period].name, help="null: after the plan"),
        Column("kind", lambda c: COSTS[c.kind], help="as the keys of `costs`"),
        Column("for", lambda c: c.supply, help="supply, or pool for energy at work"),
        Column("usd", lambda c: c.usd, help="paid then", unit="USD"),
    ]


def usage(p: Problem) -> list[Column[PoolUsage]]:
    """How a pool is used in a period."""
    return [
        Column("pool", lambda u: u.pool, help="chips of one kind in one place"),
        Column("period", lambda u: p.periods[u.period].name, help="month or quarter"),
        Column("held", lambda u: u.held, help="units held"),
        Column("rented", lambda u: u.rented, help="units rented by the hour, mean"),
        Column("used_unit_hours", lambda u: u.used_hours, help="at work", unit="h"),
        Column("paid_unit_hours", lambda u: u.paid_hours, help="paid for", unit="h"),
        Column("utilization", lambda u: u.utilization, help="of the hours paid for that is used", unit="share"),
        Column("kw", lambda u: u.kw, help="most power at once", unit="kW"),
        Column("kg_co2", lambda u: u.kg, help="of the grid", unit="kg"),
    ]


def _pace(x: Placed) -> str:
    """The time of a run, or the load that a replica carries."""
    return format_seconds(x.estimate.value) if x.prediction else f"{number(x.estimate.value)} requests/s"


PLACED: list[Column[Placed]] = [
    Column("workload", lambda x: x.work, "work", words=True),
    Column("accelerators", lambda x: x.accelerators, "chips", words=True),
    Column("", None, "split", lambda x: str(x.layout), words=True),
    Column("", None, "takes or carries", _pace),
    Column("", None, "90 %", lambda x: spread(x.estimate)),
    Column("", None, "evidence", lambda x: x.estimate.evidence, words=True),
    Column("", None, "because", lambda x: x.estimate.because or "–", words=True),
]


def split_record(split: Layout | Split) -> dict[str, Any]:
    """How work is split: the layout of a run as `--layout` reads it, or the split of one replica; the other is null."""
    if isinstance(split, Split):
        return {"layout": None, "split": split}
    return {"layout": str(split), "split": None}


def placed(x: Placed) -> dict[str, Any]:
    """A sized workload as JSON has it."""
    split = split_record(x.capacity.service.replica.split) if x.capacity else {"layout": x.layout, "split": None}
    return {**record(PLACED, x), **split, "duration_seconds" if x.prediction else "requests_per_second": x.estimate}


@dataclass(frozen=True, slots=True)
class Row:
    """What runs where, for people."""

    work: str
    on: str
    chips: str
    when: str
    hours: str
    placed: Placed | None


WORK: list[Column[Row]] = [
    Column("", None, "workload", lambda r: r.work, words=True),
    Column("", None, "runs on", lambda r: r.on, words=True),
    Column("", None, "chips", lambda r: r.chips),
    Column("", None, "when", lambda r: r.when, words=True),
    Column("", None, "hours", lambda r: r.hours),
    Column("", None, "layout", lambda r: r.placed.layout if r.placed else "", words=True, drop=2),
    Column("", None, "evidence", lambda r: r.placed.estimate.evidence if r.placed else "", words=True, drop=1),
]


def _mix(plan: FleetPlan) -> str:
    mix = sorted(plan.mix().items(), key=lambda pair: -pair[1])
    return ", ".join(f"{chip} {share:.0%}" for chip, share in mix if share >= 0.005)


ALTERNATIVES: list[Column[Alternative]] = [
    Column("name", lambda a: a.name, "plan", words=True),
    Column("why", lambda a: a.why),
    Column("plan", lambda a: summary(a.plan), "USD", lambda a: money(a.plan.usd) if a.plan else "none"),
    Column("", None, "gap", lambda a: f"{a.plan.gap:.2%}" if a.plan else ""),
    Column("", None, "used", lambda a: f"{a.plan.utilization():.0%}" if a.plan else ""),
    Column("", None, "kW", lambda a: f"{max(a.plan.kw()):,.0f}" if a.plan else ""),
    Column("", None, "t CO2", lambda a: f"{sum(a.plan.kg()) / 1000:,.0f}" if a.plan else ""),
    Column("", None, "chip-hours", lambda a: _mix(a.plan) if a.plan else a.why, words=True),
]


def limits(p: Problem) -> list[Column[Shadow]]:
    """What loosening one limit saves."""
    return [
        Column("limit", lambda s: s.limit, "limit", words=True),
        Column("period", lambda s: None if s.period is None else p.periods[s.period].name),
        Column("more", lambda s: s.amount, "more", lambda s: f"{number(s.amount)} {s.unit}".strip()),
        Column("unit", lambda s: s.unit),
        Column("saves_usd", lambda s: s.saves, "saves", lambda s: format_money(s.saves) if s.saves > 0 else "–"),
        Column("proved", lambda s: s.proved, "proved", lambda s: "yes" if s.proved else "no", words=True),
        Column("words", lambda s: s.words, "in words", words=True),
    ]


def sensitivity(plan: FleetPlan | None) -> list[Column[Sensitivity]]:
    """The plan solved again with demand, prices or speeds changed."""

    def change(s: Sensitivity) -> str:
        return f"{s.plan.usd / plan.usd - 1:+.0%}" if s.plan and plan and plan.usd else ""

    return [
        Column("name", lambda s: s.name, "if", words=True),
        Column("why", lambda s: s.why),
        Column("plan", lambda s: summary(s.plan), "USD", lambda s: money(s.plan.usd) if s.plan else "none"),
        Column("", None, "change", change),
        Column("change", lambda s: s.change, "what changes in the mix", lambda s: s.change or s.why or "–", words=True),
    ]


RELAX: list[Column[Relaxation]] = [
    Column("constraint", lambda r: r.name),
    Column("amount", lambda r: r.amount),
    Column("unit", lambda r: r.unit),
    Column("words", lambda r: r.words),
    Column("proved", lambda r: r.proved, help="whether no smaller set would do"),
]
REFUSED: list[Column[tuple[str, str, str]]] = [
    Column("workload", lambda r: r[0], "workload", words=True),
    Column("place", lambda r: r[1], "chip or offer", words=True),
    Column("reason", lambda r: r[2], "why", words=True),
]


def summary(plan: FleetPlan | None) -> dict[str, Any] | None:
    """The totals of a plan."""
    if plan is None:
        return None
    return {
        "usd": plan.usd,
        "bound_usd": plan.bound,
        "gap": plan.gap,
        "timed_out": plan.timed_out,
        "costs": {COSTS[kind]: usd for kind, usd in plan.by_kind().items()},
        "utilization": plan.utilization(),
        "kw": max(plan.kw()),
        "kg_co2": sum(plan.kg()),
        "mix": plan.mix(),
    }
