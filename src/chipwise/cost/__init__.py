"""What a run or a service really costs: on demand, committed, on spot and owned, with the range of each."""

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
