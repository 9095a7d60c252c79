"""Bills as rows of FOCUS, the FinOps Open Cost and Usage Specification."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING

from chipwise.cost.statement import ONDEMAND, ONE_YEAR, OWNED, PARTS, SPOT, THREE_YEARS, CostOption, Statement
from chipwise.prices.focus import CHIP_HOURS, Charge, focus_rows

if TYPE_CHECKING:
    from chipwise.cost.costs import Costs

CATEGORIES = {
    ONDEMAND: "Standard",
    ONE_YEAR: "Committed",
    THREE_YEARS: "Committed",
    SPOT: "Dynamic",
    OWNED: "Standard",
}
SERVICES = {
    "compute": "compute",
    "storage": "storage",
    "egress": "network",
    "energy": "energy",
    "staff": "staff",
    "migration": "migration",
}


def focus_bill(c: Costs) -> list[dict[str, str]]:
    """Rows of a FOCUS 1.1 bill: a charge for every part of every pricing model, from the day of asking on.

    Each pricing model is an alternative, told apart by the tag `pricing`: add up one of them, not all.
    """
    return focus_rows([charge for s in c.statements for option in s.options for charge in charges(s, option)])


def charges(s: Statement, option: CostOption) -> list[Charge]:
    """The charges of one pricing model."""
    end = s.today + timedelta(days=max(1, ceil(option.hours / 24)))
    provider = option.source.cloud or "on-premises"
    tags = {
        "workload": s.workload.name,
        "accelerators": str(s.accelerators),
        "pricing": option.pricing,
        "basis": s.basis,
    }
    what = f"{s.workload.name} on {s.accelerators}, {option.pricing}"
    made = _compute(
        option,
        Charge(
            provider,
            option.source.region,
            option.source.instance,
            s.accelerators.chip.id,
            option.source.chips,
            f"{what}: compute",
            "Usage",
            CATEGORIES[option.pricing],
            s.today,
            end,
            0.0,
            0.0,
            0.0,
            tags=tags,
        ),
    )
    for part in PARTS[1:]:
        usd = getattr(option.split, part)
        if usd:
            made.append(
                Charge(
                    provider,
                    option.source.region,
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


def _compute(option: CostOption, blank: Charge) -> list[Charge]:
    """What chips cost. A commitment is bought; its used hours and its idle ones then bear their shares of that."""
    usd, hours = option.split.compute, option.chip_hours
    listed = option.source.list_usd_per_chip_hour or usd / hours
    if blank.pricing_category != "Committed":
        return [replace(blank, quantity=hours, unit=CHIP_HOURS, list_unit_price=listed, effective_cost=usd)]
    used = replace(
        blank,
        quantity=hours * option.utilization,
        unit=CHIP_HOURS,
        list_unit_price=listed,
        effective_cost=usd * option.utilization,
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
        quantity=hours * (1 - option.utilization),
        list_unit_price=0.0,
        effective_cost=usd * (1 - option.utilization),
        idle=True,
    )
    return [bought, used, idle] if option.utilization < 1 else [bought, used]
