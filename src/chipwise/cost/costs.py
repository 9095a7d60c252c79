"""Chips side by side by what a workload costs on them, trained or served."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chipwise.catalog.calibration import Calibration
from chipwise.catalog.taught import Taught
from chipwise.compare import Candidate, Refused, Terms
from chipwise.compare.serving.comparer import ServingComparer, ServingRow, demand_of
from chipwise.compare.serving_comparison import within
from chipwise.compare.training.comparer import Change, TrainingComparer, TrainingRow
from chipwise.cost.answer import CostAssumptions, state_cost
from chipwise.cost.statement import Statement
from chipwise.errors import Refusal
from chipwise.predict.setup import named_stack
from chipwise.workload.model import Workload
from chipwise.workload.serve import ServingWorkload

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """A statement for each set of chips that can do the work, in the order asked for, and those that can't."""

    workload: Workload | ServingWorkload
    asked: CostAssumptions
    statements: tuple[Statement, ...]
    refused: tuple[Refused, ...]


def cost_of(
    workload: Workload | ServingWorkload,
    candidates: Sequence[Candidate],
    asked: CostAssumptions,
    calibration: Calibration,
    taught: Callable[[], Taught],
    terms: Terms | None = None,
    progress: Progress | None = None,
    change: Change | None = None,
) -> Costs:
    """What a workload costs on chips; a `Refusal` where none of them can do it.

    `taught` is called for workloads that are served alone, which need what serving rows taught.
    """
    work, row_of = _rows(workload, asked, calibration, taught, terms or Terms(), change)
    statements: list[Statement] = []
    refused: list[Refused] = []
    for i, candidate in enumerate(candidates):
        if progress:
            progress(i, len(candidates), candidate.chip.id)
        row = row_of(candidate)
        if isinstance(row, Refused):
            refused.append(row)
        else:
            statements.append(state_cost(row, asked))
    if not statements:
        first = refused[0]
        raise Refusal(first.reason, first.unlock)
    return Costs(work, asked, tuple(statements), tuple(refused))


RowOf = Callable[[Candidate], TrainingRow | ServingRow | Refused]


def _rows(
    workload: Workload | ServingWorkload,
    asked: CostAssumptions,
    calibration: Calibration,
    taught: Callable[[], Taught],
    terms: Terms,
    change: Change | None,
) -> tuple[Workload | ServingWorkload, RowOf]:
    """The workload as it is costed, and what finds the row of a candidate."""
    if isinstance(workload, Workload):
        place = TrainingComparer(workload, terms, calibration, named_stack(workload), asked.today, asked.book)

        def trained(candidate: Candidate) -> TrainingRow | Refused:
            row = place.evaluate(candidate)
            return place.changed(row, change) if change and isinstance(row, TrainingRow) else row

        return workload, trained
    work = within(workload, terms)
    market = ServingComparer(
        work, terms, calibration, taught(), work.serve.stack, asked.today, demand_of(work), asked.book
    )
    return work, market.evaluate
