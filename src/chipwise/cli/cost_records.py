"""What `chipwise cost` prints as JSON, CSV and rows of a FOCUS bill. Documented in docs/json.md."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

from chipwise.cli.records import accelerators, head

if TYPE_CHECKING:
    from chipwise.catalog.economics import Assumption
    from chipwise.cost import Costs, Port, Statement, TermCost
    from chipwise.cost.commitment import BreakEven
    from chipwise.cost.spot import Expected
    from chipwise.cost.statement import Purchase, Source, Spread
    from chipwise.prices.focus import Charge

PRICING = {
    "on demand": "Standard",
    "1 year": "Committed",
    "3 years": "Committed",
    "spot": "Dynamic",
    "on-premises": "Standard",
}
SERVICES = {
    "compute": "compute",
    "storage": "storage",
    "egress": "network",
    "energy": "energy",
    "staff": "staff",
    "port": "port",
}


def costs(c: Costs) -> dict[str, Any]:
    """The whole answer."""
    from chipwise.workload.model import Workload

    trained = isinstance(c.workload, Workload)
    place = c.asked.site
    return {
        **head("cost"),
        "workload": c.workload.to_dict(),
        "kind": "train" if trained else "serve",
        "date": c.asked.knowledge.today.isoformat(),
        "years": c.asked.years,
        "site": {
            "name": place.id,
            "usd_per_kwh": place.usd_kwh.value if place.usd_kwh else None,
            "pue": place.pue.value,
            "grams_co2_per_kwh": place.g_kwh.value,
        },
        "draws": c.asked.draws,
        "seed": c.asked.knowledge.seed,
        "prices": c.asked.knowledge.prices.origin,
        "statements": [statement(s) for s in c.statements],
        "refused": [r.to_dict() for r in c.refused],
    }


def statement(s: Statement) -> dict[str, Any]:
    """What the work costs on one set of chips."""
    from chipwise.compare.columns import SERVING, TRAINING
    from chipwise.compare.training.comparer import TrainingRow
    from chipwise.present.columns import record

    answer = record(TRAINING, s.answer) if isinstance(s.answer, TrainingRow) else record(SERVING, s.answer)
    best = s.cheapest
    return {
        "accelerators": accelerators(s.accelerators),
        "basis": s.basis,
        "evidence": s.evidence,
        "because": s.because,
        "cheapest": best.kind if best else None,
        "terms": [term(t) for t in s.terms],
        "missing": [{"kind": m.kind, "reason": m.reason} for m in s.missing],
        "commitments": [commitment(b) for b in s.commitments],
        "purchase": None if s.purchase is None else purchase(s.purchase),
        "port": port(s.port),
        "answer": answer,
        "assumed": [assumption(a) for a in s.used],
        "notes": list(s.notes),
    }


def term(t: TermCost) -> dict[str, Any]:
    """The bill on one kind of terms."""
    from chipwise.cost import PARTS

    return {
        "kind": t.kind,
        "usd": t.total,
        "usd_range": spread(t.usd),
        "split_usd": {part: getattr(t.split, part) for part in PARTS},
        "per": [{"unit": name, "usd": usd} for name, usd in t.per],
        "source": source(t.source),
        "hours": t.hours,
        "hours_range": spread(t.hours_range),
        "chip_hours": t.chip_hours,
        "utilisation": t.utilisation,
        "kwh": t.kwh,
        "kg_co2": t.kg_co2,
        "interruptions_per_hour": t.interruptions_h,
        "expected": None if t.expected is None else expected(t.expected),
        "tornado": [
            {"input": w.name, "low": w.low, "high": w.high, "usd_low": w.usd_low, "usd_high": w.usd_high}
            for w in t.tornado
        ],
    }


def source(s: Source) -> dict[str, Any]:
    """Where a price comes from."""
    return {
        "cloud": s.cloud or None,
        "region": s.region,
        "instance": s.instance,
        "usd_per_chip_hour": s.usd_per_chip_hour,
        "date": s.date,
        "stale": s.stale,
        "own": s.own,
        "source": s.source,
        "note": s.note,
    }


def spread(s: Spread) -> dict[str, float | None]:
    """Percentiles; one that is never reached is missing."""
    return {
        name: value if isfinite(value) else None for name, value in (("p10", s.p10), ("p50", s.p50), ("p90", s.p90))
    }


def expected(e: Expected) -> dict[str, Any]:
    """The expected course of a run."""
    return {
        "work_seconds": e.work_s,
        "interval_seconds": e.interval_s,
        "checkpoints": e.segments,
        "checkpoint_seconds": e.checkpoints_s / e.segments,
        "checkpoints_seconds": e.checkpoints_s,
        "lost_seconds": e.lost_s,
        "restarts_seconds": e.restarts_s,
        "wait_seconds": e.wait_s,
        "interruptions": e.interruptions,
        "wall_seconds": e.wall_s,
        "stretch": e.stretch,
    }


def commitment(b: BreakEven) -> dict[str, Any]:
    """A commitment and the use from which it is cheaper."""
    c = b.commitment
    return {
        "cloud": c.cloud,
        "region": c.region,
        "instance": c.instance,
        "years": c.years,
        "usd_per_chip_hour": c.usd_per_chip_hour,
        "ondemand_usd_per_chip_hour": b.ondemand_usd_per_chip_hour,
        "against": b.against,
        "break_even_utilisation": b.utilisation,
        "date": c.date,
        "stale": b.stale,
        "source": c.source,
    }


def purchase(p: Purchase) -> dict[str, Any]:
    """Servers of one's own; dollars of one server."""
    o = p.owned
    return {
        "server": o.server.id,
        "servers": o.servers,
        "racks": o.racks,
        "chips": o.chips,
        "years": o.years,
        "capex_usd": o.capex_usd,
        "residual_usd": o.residual_usd,
        "payment_usd_per_month": o.payment_usd_month,
        "maintenance_usd_per_month": o.maintenance_usd_month,
        "colocation_usd_per_month": o.colocation_usd_month,
        "staff_usd_per_month": o.staff_usd_month,
        "energy_usd_per_hour": o.energy_usd_per_hour(p.chip_w),
        "idle_energy_usd_per_hour": o.idle_usd_per_hour,
        "watts": o.server_w(p.chip_w),
        "rack_units": o.server.rack_units,
        "curve": [{"utilisation": share, "usd_per_chip_hour": usd} for share, usd in p.curve],
        "break_even": [
            {"kind": r.kind, **source(r.source), "utilisation": r.utilisation if isfinite(r.utilisation) else None}
            for r in p.offers
        ],
        "date": o.server.price_date,
        "source": o.server.price_source,
        "note": o.server.note,
    }


def port(p: Port) -> dict[str, Any]:
    """The effort of a port."""
    return {
        "weeks": p.weeks,
        "weeks_low": p.weeks_low,
        "weeks_high": p.weeks_high,
        "usd_per_week": p.week.value,
        "runs": p.runs,
        "usd_per_run": p.usd_run,
        "reasons": list(p.reasons),
    }


def assumption(a: Assumption) -> dict[str, Any]:
    """A number that is not known."""
    return {
        "name": a.name,
        "value": a.value,
        "low": a.low,
        "high": a.high,
        "unit": a.unit,
        "source": a.source,
        "date": a.date,
        "note": a.note,
    }


def rows(c: Costs) -> list[dict[str, Any]]:
    """Flat rows, one a kind of terms, for CSV."""
    from chipwise.cost import PARTS

    units = dict.fromkeys(name for s in c.statements for t in s.terms for name, _ in t.per)
    out: list[dict[str, Any]] = []
    for s in c.statements:
        for t in s.terms:
            per, where = dict(t.per), t.source
            out.append(
                {
                    "accelerators": str(s.accelerators),
                    "chip": s.accelerators.chip.id,
                    "chips": s.accelerators.count,
                    "terms": t.kind,
                    "basis": s.basis,
                    "usd": t.total,
                    **{f"usd_{name}": _blank(value) for name, value in spread(t.usd).items()},
                    **{f"{part}_usd": getattr(t.split, part) for part in PARTS},
                    **{f"usd_per_{name.replace(' ', '_').replace(',', '')}": per.get(name, "") for name in units},
                    "hours": t.hours,
                    **{f"hours_{name}": _blank(value) for name, value in spread(t.hours_range).items()},
                    "chip_hours": t.chip_hours,
                    "utilisation": t.utilisation,
                    "kwh": t.kwh,
                    "kg_co2": t.kg_co2,
                    "usd_per_chip_hour": where.usd_per_chip_hour,
                    "cloud": where.cloud,
                    "region": where.region,
                    "instance": where.instance,
                    "date": where.date,
                    "stale": where.stale,
                    "evidence": s.evidence,
                    "missing": "",
                }
            )
    if not out:
        return [
            {"accelerators": str(s.accelerators), "terms": m.kind, "missing": m.reason}
            for s in c.statements
            for m in s.missing
        ]
    blank = dict.fromkeys(out[0], "")
    for s in c.statements:
        out += [
            {
                **blank,
                "accelerators": str(s.accelerators),
                "chip": s.accelerators.chip.id,
                "terms": m.kind,
                "chips": s.accelerators.count,
                "basis": s.basis,
                "missing": m.reason,
            }
            for m in s.missing
        ]
    for r in c.refused:
        why = f"{r.reason}; {r.unlock}" if r.unlock else r.reason
        out.append({**blank, "accelerators": str(r.accelerators or r.chip.id), "chip": r.chip.id, "missing": why})
    return out


def _blank(value: float | None) -> float | str:
    return "" if value is None else value


def focus(c: Costs) -> list[dict[str, str]]:
    """Rows of a FOCUS 1.1 bill: a charge for every part of every kind of terms, from the day of asking on.

    Each kind of terms is an alternative, told apart by the tag `terms`: add up one of them, not all.
    """
    from chipwise.prices.focus import focus_rows

    return focus_rows([charge for s in c.statements for t in s.terms for charge in charges(s, t)])


def charges(s: Statement, t: TermCost) -> list[Charge]:
    """The charges of one kind of terms."""
    from chipwise.cost import PARTS
    from chipwise.prices.focus import Charge

    end = s.today + timedelta(days=max(1, ceil(t.hours / 24)))
    provider = t.source.cloud or "on-premises"
    tags = {"workload": s.workload.name, "accelerators": str(s.accelerators), "terms": t.kind, "basis": s.basis}
    what = f"{s.workload.name} on {s.accelerators}, {t.kind}"
    made = _compute(
        t,
        Charge(
            provider,
            t.source.region,
            t.source.instance,
            s.accelerators.chip.id,
            t.source.chips,
            f"{what}: compute",
            "Usage",
            PRICING[t.kind],
            s.today,
            end,
            0.0,
            0.0,
            0.0,
            tags=tags,
        ),
    )
    for part in PARTS[1:]:
        usd = getattr(t.split, part)
        if usd:
            made.append(
                Charge(
                    provider,
                    t.source.region,
                    "",
                    "",
                    0.0,
                    f"{what}: {part}",
                    "Usage",
                    "Standard",
                    s.today,
                    end,
                    1.0,
                    usd,
                    usd,
                    "Each",
                    None,
                    SERVICES[part],
                    tags,
                )
            )
    return made


def _compute(t: TermCost, blank: Charge) -> list[Charge]:
    """What chips cost. A commitment is bought; its used hours and its idle ones then bear their shares of that."""
    from chipwise.prices.focus import CHIP_HOURS

    usd, hours = t.split.compute, t.chip_hours
    listed = t.source.list_usd_per_chip_hour or usd / hours
    if blank.pricing_category != "Committed":
        return [replace(blank, quantity=hours, unit=CHIP_HOURS, list_unit_price=listed, effective_cost=usd)]
    used = replace(
        blank,
        quantity=hours * t.utilisation,
        unit=CHIP_HOURS,
        list_unit_price=listed,
        effective_cost=usd * t.utilisation,
    )
    bought = replace(
        blank,
        description=f"{blank.description}, the commitment's share",
        category="Purchase",
        pricing_category="Standard",
        quantity=hours,
        unit=CHIP_HOURS,
        list_unit_price=usd / hours,
        billed_cost=usd,
    )
    idle = replace(
        used,
        description=f"{blank.description}, not used",
        quantity=hours * (1 - t.utilisation),
        list_unit_price=0.0,
        effective_cost=usd * (1 - t.utilisation),
        idle=True,
    )
    return [bought, used, idle] if t.utilisation < 1 else [bought, used]
