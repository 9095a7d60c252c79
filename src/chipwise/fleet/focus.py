"""A fleet plan as rows of FOCUS, the FinOps Open Cost and Usage Specification."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from chipwise.errors import Refusal
from chipwise.fleet.plan import Cost, FleetPlan
from chipwise.fleet.request import DemandRequest
from chipwise.prices.focus import CHIP_HOURS, Charge, focus_rows

if TYPE_CHECKING:
    from chipwise.fleet.planned import PlannedFleet

CATEGORIES = {
    "ondemand": "Standard",
    "spot": "Dynamic",
    "year1": "Committed",
    "year3": "Committed",
    "existing": "Committed",
    "owned": "Standard",
}
SERVICES = {"energy": "energy", "space, upkeep, staff, interest": "other", "capex": "compute"}


def focus_bill(fleet: PlannedFleet) -> list[dict[str, str]]:
    """Rows of a FOCUS 1.1 bill: what is paid in each period of the plan, by supply and kind of cost."""
    plan, request = fleet.plan, fleet.request
    if plan is None:
        raise Refusal("no plan meets the demand", "; ".join(r.words for r in fleet.answer.relax))
    return focus_rows([_charge(request, plan, c) for c in plan.costs if c.period is not None and c.usd > 0])


def _charge(request: DemandRequest, plan: FleetPlan, cost: Cost) -> Charge:
    assert cost.period is not None  # what falls after the plan is on no bill
    t, kind, name, usd = cost.period, cost.kind, cost.supply, cost.usd
    calendar = request.demand.calendar
    begin, end = (_day(calendar.month((t + i) * calendar.each)) for i in (0, 1))
    supply = next((s for s in plan.problem.supplies if s.id == name), None)
    pool = plan.problem.pool(supply.pool if supply else name)
    origin = request.origins.get(name)
    chip = supply is not None and kind in ("on demand", "spot", "commitments", "existing")
    hours = next((h.unit_hours for h in plan.holdings if h.supply == name and h.period == t), 0.0) * pool.chips
    quantity = hours if chip and hours else 1.0
    return Charge(
        request.clouds[pool.id] or "on-premises",
        pool.region,
        origin.instance if origin and chip else "",
        pool.chip if chip else "",
        1.0 if chip else 0.0,
        f"{request.demand.name}: {name}, {kind}",
        "Usage",
        CATEGORIES[supply.pricing] if supply and chip else "Standard",
        begin,
        end,
        quantity,
        usd / quantity,
        usd,
        CHIP_HOURS if chip else "Each",
        usd,
        SERVICES.get(kind, "compute"),
        {"plan": request.demand.name, "kind": kind},
    )


def _day(month: str) -> date:
    return date(int(month[:4]), int(month[5:7]), 1)
