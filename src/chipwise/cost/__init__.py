"""What a run or a service really costs: on demand, committed, on spot and owned, with the range of each."""

from chipwise.cost.answer import CostAssumptions, state_cost
from chipwise.cost.choose import chosen
from chipwise.cost.costs import Costs, cost_of
from chipwise.cost.onprem import Owned, owned
from chipwise.cost.port import Port, Program
from chipwise.cost.spot import Hazard, expected, stretch
from chipwise.cost.statement import KINDS, PARTS, Split, Spread, Statement, TermCost

__all__ = [
    "KINDS",
    "PARTS",
    "CostAssumptions",
    "Costs",
    "Hazard",
    "Owned",
    "Port",
    "Program",
    "Split",
    "Spread",
    "Statement",
    "TermCost",
    "chosen",
    "cost_of",
    "expected",
    "owned",
    "state_cost",
    "stretch",
]
