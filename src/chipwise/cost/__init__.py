"""What a run or a service really costs: on demand, committed, on spot and owned, with the range of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.lazy import lazily

if TYPE_CHECKING:
    from chipwise.cost.answer import CostAssumptions, state_cost
    from chipwise.cost.choose import chosen, read_pricing, read_utilization
    from chipwise.cost.costs import Costs, cost_of
    from chipwise.cost.migration import Migration, Program
    from chipwise.cost.onprem import Owned, owned
    from chipwise.cost.spot import Hazard, expected, stretch
    from chipwise.cost.statement import PARTS, PRICING_MODELS, CostOption, Split, Spread, Statement

__all__ = [
    "PARTS",
    "PRICING_MODELS",
    "CostAssumptions",
    "CostOption",
    "Costs",
    "Hazard",
    "Migration",
    "Owned",
    "Program",
    "Split",
    "Spread",
    "Statement",
    "chosen",
    "cost_of",
    "expected",
    "owned",
    "read_pricing",
    "read_utilization",
    "state_cost",
    "stretch",
]
_HOMES = {
    "CostAssumptions": "answer",
    "CostOption": "statement",
    "Costs": "costs",
    "Hazard": "spot",
    "Migration": "migration",
    "Owned": "onprem",
    "PARTS": "statement",
    "PRICING_MODELS": "statement",
    "Program": "migration",
    "Split": "statement",
    "Spread": "statement",
    "Statement": "statement",
    "chosen": "choose",
    "cost_of": "costs",
    "expected": "spot",
    "owned": "onprem",
    "read_pricing": "choose",
    "read_utilization": "choose",
    "state_cost": "answer",
    "stretch": "spot",
}
__getattr__ = lazily(__name__, _HOMES)  # what needs one module of bills does not load comparisons
