"""Reports from what people have: a workload of either kind, or a demand.

A report of a workload compares chips, bills the leading rows, and puts both on paper; one of a demand plans its fleet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chipwise.compare import AnyComparison, Candidate, Terms, compare
from chipwise.compare.comparison import AnyRow
from chipwise.compiled.evidence import better_evidence
from chipwise.cost import CostAssumptions, Statement, state_cost
from chipwise.errors import Conflict
from chipwise.fleet.demand import Demand
from chipwise.fleet.planned import PlanOptions, plan_demand
from chipwise.knowledge import Knowledge
from chipwise.observe.advice.view import PoolAdvice
from chipwise.report.comparison import comparison_report
from chipwise.report.fleet import fleet_report
from chipwise.report.parts import Report
from chipwise.workload.model import Workload
from chipwise.workload.serve import ServingWorkload

Progress = Callable[[str], None]
BILLED = 5  # rows with a bill by every pricing model: the pick and those that rank next,
ON_SPOT = 3  # and those that cost least on spot


def report_workload(
    workload: Workload | ServingWorkload,
    candidates: Sequence[Candidate] | None,
    terms: Terms,
    assumptions: CostAssumptions,
    evidence: str = "modelled",
    progress: Progress | None = None,
) -> Report:
    """The report of a workload: chips compared, the leading ones billed."""
    known, tell = assumptions.knowledge, progress or (lambda _: None)
    change = better_evidence(evidence, known.calibration)

    def step(done: int, total: int, what: str) -> None:
        tell(f"comparing {done}/{total}: {what}")

    comparison = compare(workload, candidates, known, terms, step, change)
    statements = bills(comparison, assumptions, tell)
    tell("drawing")
    return comparison_report(comparison, statements)


def bills(comparison: AnyComparison, assumptions: CostAssumptions, tell: Progress) -> list[Statement]:
    """What the leading rows cost by every pricing model, the pick first."""
    out = []
    for row in leading(comparison):
        tell(f"what {row.accelerators} costs")
        out.append(state_cost(row, assumptions))
    return out


def leading(comparison: AnyComparison) -> list[AnyRow]:
    """The rows that get a bill: the pick, those with a price that rank next, and the cheapest on spot."""
    rows, pick = comparison.rows, comparison.pick
    if pick is None:
        return []
    priced = [row for row in rows if row is not pick and row.ondemand]
    by_spot = sorted((row for row in rows if row.spot), key=lambda row: row.spot.usd.value if row.spot else 0.0)
    first: list[AnyRow] = [pick, *priced[: BILLED - 1]]
    return [*first, *(row for row in by_spot[:ON_SPOT] if not any(row is known for known in first))]


def report_demand(
    demand: Demand,
    knowledge: Knowledge,
    options: PlanOptions | None = None,
    progress: Progress | None = None,
    advice: PoolAdvice | None = None,
) -> Report:
    """The report of a demand: its fleet planned; `advice` is on the pools that there are."""
    tell = progress or (lambda _: None)
    fleet = plan_demand(demand, knowledge, options, lambda what: tell(f"planning: {what}"))
    tell("drawing")
    return fleet_report(fleet.name, fleet.answer, knowledge, fleet.request, advice)


def refuse_beside_demand(given: Mapping[str, Any]) -> None:
    """Refuse options that a demand file decides."""
    for name, value in given.items():
        if value is not None:
            raise Conflict(name, "a demand file", "it says what may be used")
