"""Chips side by side by what a workload costs on them, trained or served."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chipwise.compare import Candidate, Refused, Terms, comparer_of
from chipwise.compare.training.comparer import Change
from chipwise.cost.answer import CostAssumptions, state_cost
from chipwise.cost.statement import Statement
from chipwise.errors import Refusal
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
    terms: Terms | None = None,
    progress: Progress | None = None,
    change: Change | None = None,
) -> Costs:
    """What a workload costs on chips; a `Refusal` where none of them can do it."""
    comparer = comparer_of(workload, terms or Terms(), asked.knowledge, change)
    statements: list[Statement] = []
    refused: list[Refused] = []
    for i, candidate in enumerate(candidates):
        if progress:
            progress(i, len(candidates), candidate.chip.id)
        row = comparer.evaluate(candidate)
        if isinstance(row, Refused):
            refused.append(row)
        else:
            statements.append(state_cost(row, asked))
    if not statements:
        first = refused[0]
        raise Refusal(first.reason, first.unlock)
    return Costs(comparer.workload, asked, tuple(statements), tuple(refused))
