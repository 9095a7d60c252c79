"""What a run or a service really costs: on demand, committed, on spot and owned, with the range of each."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    """A name from its module, at its first use: what needs one module of bills does not load comparisons."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
